# SPDX-License-Identifier: Apache-2.0
# scankit_device_source(KERNEL): ${PROJECT_BINARY_DIR}/generated/KERNEL.cu, target scankit_device_source_KERNEL: the
# device code of kernels/KERNEL/cuda as one text without #include (what NVRTC and nvcc compile, and scankit embeds).
function(scankit_device_source kernel)
  set(source ${PROJECT_BINARY_DIR}/generated/${kernel}.cu)
  set(script ${PROJECT_SOURCE_DIR}/kernels/common/amalgamate.cmake)
  set(folder ${PROJECT_SOURCE_DIR}/kernels/${kernel})
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/cuda/*.cuh ${folder}/cuda/*.h ${folder}/cuda/*.def)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DFIRST=kernels/${kernel}/cuda/entry.cuh -DOUT=${source}
            -P ${script}
    DEPENDS ${parts} ${folder}/params.h ${script} VERBATIM)
  add_custom_target(scankit_device_source_${kernel} DEPENDS ${source})
  if(SCANKIT_TESTS)
    add_test(NAME kernels.${kernel}.device_source_compiles
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DUNITS=${folder}/cuda/units.def
              -DWORK=${CMAKE_CURRENT_BINARY_DIR}/compile_${kernel} -P ${PROJECT_SOURCE_DIR}/kernels/common/compile_test.cmake)
    set_tests_properties(kernels.${kernel}.device_source_compiles PROPERTIES LABELS ci TIMEOUT 1800
      SKIP_REGULAR_EXPRESSION "SKIPPED: ")
  endif()
endfunction()
