# SPDX-License-Identifier: Apache-2.0
# scankit_component(NAME SOURCES a.cc ... [DEPENDS ...] [TESTS a_test.cc ...])
# One component: a static library scankit_NAME, and scankit_NAME_test with CTest labels "ci" and "unit".
# scankit_unit_tests builds those programs and what they run, nothing else.
include(GoogleTest OPTIONAL)
if(SCANKIT_TESTS)
  add_custom_target(scankit_unit_tests)
endif()
function(scankit_component name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;TESTS;TEST_DEPENDS" ${ARGN})
  add_library(scankit_${name} STATIC ${ARG_SOURCES})
  target_include_directories(scankit_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(scankit_${name} PUBLIC ${ARG_DEPENDS} PRIVATE scankit_warnings)
  if(SCANKIT_TESTS AND ARG_TESTS)
    add_executable(scankit_${name}_test ${ARG_TESTS})
    target_link_libraries(scankit_${name}_test PRIVATE scankit_${name} ${ARG_TEST_DEPENDS} scankit_warnings
                          GTest::gtest GTest::gtest_main Threads::Threads)
    target_compile_definitions(scankit_${name}_test PRIVATE SCANKIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                               SCANKIT_BINARY_DIR="${PROJECT_BINARY_DIR}")
    add_dependencies(scankit_unit_tests scankit_${name}_test)
    target_compile_options(scankit_${name}_test PRIVATE -O0)  # half of the time to compile, and a test runs once
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
