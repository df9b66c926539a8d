# SPDX-License-Identifier: Apache-2.0
# scankit_component(NAME [SMALL] SOURCES a.cc ... [DEPENDS ...] [TESTS a_test.cc ...] [ALONE b_test.cc ...])
# SMALL: what asks, prints and decides, and never loops over a file's bytes. -Os makes its code a third smaller and takes a
# fifth less of the compiler's time.
# g++'s passes in scankit_passes_that_gain_nothing are a sixth of its time for such code, and change its size by 0.2 %.
# ALONE: tests with a name of another one's anonymous namespace, which are compiled by themselves.
# One component: a static library scankit_NAME, and scankit_NAME_test with CTest labels "ci" and "unit".
# scankit_unit_tests builds those programs and what they run, nothing else. Under the sanitizers one CTest test is one
# whole program: 2200 starts of an instrumented one took longer than what they tested.
include(GoogleTest OPTIONAL)
if(SCANKIT_TESTS)
  add_custom_target(scankit_unit_tests)
endif()

# Checks of alignment and of wrapping pointers are a third of what the compiler has to do, at every access to a member.
# A misaligned pointer comes of a cast to a wider type; only `base` and the kernels have one. Test programs have no arithmetic
# on pointers; the libraries keep that check.
function(scankit_sanitize_less name)
  if(NOT name MATCHES "^(base|cuda_launch)$")
    target_compile_options(scankit_${name} PRIVATE -fno-sanitize=alignment)
  endif()
  target_compile_options(scankit_${name}_test PRIVATE -fno-sanitize=alignment,pointer-overflow)
endfunction()

# scankit_compile_as_test(TARGET): half of the time to compile without optimisation, and a test runs once; two thirds of the
# rest goes to headers and to templates that the neighbours instantiate too.
function(scankit_compile_as_test target)
  target_compile_options(${target} PRIVATE -O0)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${SCANKIT_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

set(scankit_passes_that_gain_nothing
    -fno-dse -fno-tree-pre -fno-code-hoisting -fno-schedule-insns2 -fno-ipa-modref -fno-tree-pta
    -fno-gcse -fno-tree-loop-optimize -fno-ivopts -fno-tree-slsr)

function(scankit_component name)
  cmake_parse_arguments(ARG "SMALL" "" "SOURCES;DEPENDS;TESTS;ALONE;TEST_DEPENDS" ${ARGN})
  add_library(scankit_${name} STATIC ${ARG_SOURCES})
  # Most of the time to compile a small file goes to templates that its neighbours instantiate too. The price: names in
  # anonymous namespaces are unique within a component.
  set_target_properties(scankit_${name} PROPERTIES UNITY_BUILD ${SCANKIT_UNITY} UNITY_BUILD_BATCH_SIZE 30)
  target_include_directories(scankit_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(scankit_${name} PUBLIC ${ARG_DEPENDS} PRIVATE scankit_warnings scankit_hardening)
  if(ARG_SMALL)
    target_compile_options(scankit_${name} PRIVATE $<$<CONFIG:Release>:-Os>
                           "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:${scankit_passes_that_gain_nothing}>")
  endif()
  if(SCANKIT_TESTS AND ARG_TESTS)
    add_executable(scankit_${name}_test ${ARG_TESTS} ${ARG_ALONE})
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_link_libraries(scankit_${name}_test PRIVATE scankit_${name} ${ARG_TEST_DEPENDS} scankit_warnings
                          GTest::gtest GTest::gtest_main Threads::Threads)
    target_compile_definitions(scankit_${name}_test PRIVATE SCANKIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                               SCANKIT_BINARY_DIR="${PROJECT_BINARY_DIR}")
    add_dependencies(scankit_unit_tests scankit_${name}_test)
    scankit_compile_as_test(scankit_${name}_test)
    if(SCANKIT_SANITIZE)
      scankit_sanitize_less(${name})
      add_test(NAME ${name} COMMAND scankit_${name}_test --gtest_brief=1)
      set_tests_properties(${name} PROPERTIES LABELS "ci;unit;component" TIMEOUT 600)
      return()
    endif()
    gtest_discover_tests(scankit_${name}_test DISCOVERY_TIMEOUT 60 TEST_LIST scankit_${name}_tests
                         PROPERTIES TIMEOUT 300)
    # gtest_discover_tests flattens a list among its PROPERTIES, so that "unit" would become a property's name.
    set(labels ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(CONFIGURE OUTPUT ${labels} CONTENT [[
foreach(test IN LISTS scankit_@name@_tests)
  set_tests_properties("${test}" PROPERTIES LABELS "ci;unit")
endforeach()
]] @ONLY)
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
  endif()
endfunction()
