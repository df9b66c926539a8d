# SPDX-License-Identifier: Apache-2.0
# How the modules, their archives for the torch flavor and their device code are built.
#
# scankit_universal_objects(NAME SOURCES ... ): objects that several modules share.
# scankit_universal_module(NAME OBJECTS ... SOURCES ...): ${PROJECT_BINARY_DIR}/modules/NAME.abi3.so, target
# scankit_module_NAME. The same bytes whatever the build type, the sanitizer switch and the folder: no C++ runtime,
# limited API of Python 3.8, glibc 2.17.
foreach(minor RANGE 30 8 -1)
  list(APPEND SCANKIT_PYTHON_FOLDERS python3.${minor})
endforeach()
find_path(SCANKIT_PYTHON_INCLUDE Python.h PATH_SUFFIXES ${SCANKIT_PYTHON_FOLDERS}
          REQUIRED DOC "Headers of any CPython from 3.8 on: the limited API is the same in all")

function(scankit_universal_compile_options target)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    COMPILE_OPTIONS "" LINK_OPTIONS "")  # what the folder set, the sanitizers' flags above all, is not for these files
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${SCANKIT_PYTHON_INCLUDE})
  target_compile_definitions(${target} PRIVATE Py_LIMITED_API=0x03080000 SCANKIT_VERSION="${PROJECT_VERSION}" NDEBUG)
  target_compile_options(${target} PRIVATE
    -O3 -g0 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-asynchronous-unwind-tables
    -fno-math-errno -fno-trapping-math -fwrapv  # never -ffast-math: it folds the rounding of exp2 away
    -fstack-protector-strong -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffunction-sections -fdata-sections
    -include ${PROJECT_SOURCE_DIR}/kernels/common/glibc_floor.h)
  target_link_libraries(${target} PRIVATE scankit_warnings)
endfunction()

function(scankit_universal_objects name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(scankit_objects_${name} OBJECT ${ARG_SOURCES})
  scankit_universal_compile_options(scankit_objects_${name})
endfunction()

function(scankit_universal_module name)
  cmake_parse_arguments(ARG "" "" "OBJECTS;SOURCES" ${ARGN})
  set(target scankit_module_${name})
  set(exports ${CMAKE_CURRENT_BINARY_DIR}/${name}.map)
  file(CONFIGURE OUTPUT ${exports} CONTENT "{ global: PyInit_${name}; local: *; };\n")
  list(TRANSFORM ARG_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:scankit_objects_\\1>")
  add_library(${target} MODULE ${ARG_SOURCES} ${ARG_OBJECTS})
  scankit_universal_compile_options(${target})
  target_link_libraries(${target} PRIVATE m)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name}.abi3 PREFIX "" SUFFIX .so LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules
    LINKER_LANGUAGE C  # g++ would link libstdc++ and libgcc_s
    LINK_DEPENDS ${exports})
  target_link_options(${target} PRIVATE
    -static-libgcc -Wl,--version-script=${exports}
    -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--build-id=sha1 -s
    -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--as-needed)
endfunction()

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

# scankit_compile_test(KERNEL NAME ARCHS LABEL): the test kernels.KERNEL.NAME, every unit compiled for each of ARCHS.
function(scankit_compile_test kernel name archs label)
  add_test(NAME kernels.${kernel}.${name}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_BINARY_DIR}/generated/${kernel}.cu
            -DUNITS=${PROJECT_SOURCE_DIR}/kernels/${kernel}/cuda/units.def -DARCHS=${archs}
            -DWORK=${CMAKE_CURRENT_BINARY_DIR}/${name}_${kernel} -P ${PROJECT_SOURCE_DIR}/kernels/common/compile_test.cmake)
  set_tests_properties(kernels.${kernel}.${name} PROPERTIES LABELS ${label} TIMEOUT 1800 COST 60 SKIP_REGULAR_EXPRESSION "SKIPPED: ")
endfunction()

# scankit_device_source(KERNEL): ${PROJECT_BINARY_DIR}/generated/KERNEL.cu, target scankit_device_source_KERNEL: the
# device code of kernels/KERNEL/cuda as one text without #include (what NVRTC and nvcc compile, and scankit embeds).
function(scankit_device_source kernel)
  set(source ${PROJECT_BINARY_DIR}/generated/${kernel}.cu)
  set(script ${PROJECT_SOURCE_DIR}/kernels/common/amalgamate.cmake)
  set(folder ${PROJECT_SOURCE_DIR}/kernels/${kernel})
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/cuda/*.cuh ${folder}/cuda/*.h ${folder}/cuda/*.def
       ${PROJECT_SOURCE_DIR}/kernels/common/*.cuh)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DFIRST=kernels/${kernel}/cuda/entry.cuh -DOUT=${source}
            -P ${script}
    DEPENDS ${parts} ${folder}/params.h ${script} VERBATIM)
  add_custom_target(scankit_device_source_${kernel} DEPENDS ${source})
  if(SCANKIT_TESTS)
    # Six architectures take as long as all other tests of the kernels: CI takes the one whose spills are judged, and
    # the others in turn.
    scankit_compile_test(${kernel} device_source_compiles "sm_90" ci)
    scankit_compile_test(${kernel} device_source_compiles_for_others "sm_60 sm_75 sm_80 sm_100 sm_120" matrix)
  endif()
endfunction()
