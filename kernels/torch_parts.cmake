# SPDX-License-Identifier: Apache-2.0
# scankit_torch_parts(OBJECTS ... SOURCES ...): what `scankit build --flavor torch` compiles and links, embedded:
# ${PROJECT_BINARY_DIR}/generated/libtorch.cc, binding_torch's one file with our headers in it, and the targets
# scankit_torch_entries and scankit_torch_parts, archives of everything in the modules that includes no header of torch.
# That is the same for every torch and compiler, so no user waits for it. SOURCES hold the modules' PyInit_ and kModule:
# an archive of their own, linked first, or the linker would take any one's kModule before it looks for PyInit_NAME.
function(scankit_torch_parts)
  cmake_parse_arguments(ARG "" "" "OBJECTS;SOURCES" ${ARGN})
  list(TRANSFORM ARG_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:scankit_objects_\\1>")
  add_library(scankit_torch_entries STATIC ${ARG_SOURCES})
  scankit_universal_compile_options(scankit_torch_entries)
  add_library(scankit_torch_parts STATIC ${ARG_OBJECTS})
  set_target_properties(scankit_torch_parts PROPERTIES LINKER_LANGUAGE C)
  foreach(part entries parts)
    set_target_properties(scankit_torch_${part} PROPERTIES OUTPUT_NAME scankit_${part}
      ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
  endforeach()
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
