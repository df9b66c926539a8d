# SPDX-License-Identifier: Apache-2.0
# scankit_torch_parts(OBJECTS ... SOURCES ...): what `scankit build --flavor torch` compiles and links, both embedded:
# ${PROJECT_BINARY_DIR}/generated/libtorch.cc, binding_torch's one file with our headers in it, and the target
# scankit_torch_parts, an archive of everything in the modules that includes no header of torch. That part is the same for
# every torch and compiler, so no user waits for it; SOURCES hold the modules' PyInit_, which the link picks one of.
function(scankit_torch_parts)
  cmake_parse_arguments(ARG "" "" "OBJECTS;SOURCES" ${ARGN})
  list(TRANSFORM ARG_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:scankit_objects_\\1>")
  add_library(scankit_torch_parts STATIC ${ARG_SOURCES} ${ARG_OBJECTS})
  scankit_universal_compile_options(scankit_torch_parts)
  set_target_properties(scankit_torch_parts PROPERTIES OUTPUT_NAME scankit_parts
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
  set(source ${PROJECT_BINARY_DIR}/generated/libtorch.cc)
  set(script ${PROJECT_SOURCE_DIR}/kernels/common/amalgamate.cmake)
  set(folder ${PROJECT_SOURCE_DIR}/kernels)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/binding/*.h)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DFIRST=kernels/binding_torch/libtorch.cc -DOUT=${source}
            -DFOREIGN=ON -P ${script}
    DEPENDS ${folder}/binding_torch/libtorch.cc ${headers} ${folder}/common/driver_plan.h ${script} VERBATIM)
  add_custom_target(scankit_torch_binding_source DEPENDS ${source})
endfunction()
