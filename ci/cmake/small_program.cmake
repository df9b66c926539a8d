# SPDX-License-Identifier: Apache-2.0
# scankit_small_program(TARGET OUTPUT_NAME SOURCE...): a helper that runs on every host: dynamic, glibc 2.17 floor, no C++
# run-time library.
function(scankit_small_program target output_name)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE scankit_warnings scankit_hardening)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Os -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-asynchronous-unwind-tables
                              -fno-sanitize=all -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)
  target_link_options(${target} PRIVATE -nostartfiles -nodefaultlibs -fno-sanitize=all -pie -s
                      -Wl,--build-id=none -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  # By file name, not -ldl: a glibc from 2.34 on has an empty libdl.a, and ld would leave the name out of DT_NEEDED.
  target_link_libraries(${target} PRIVATE -Wl,--no-as-needed -l:libdl.so.2 -lc)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output_name} POSITION_INDEPENDENT_CODE ON)
endfunction()
