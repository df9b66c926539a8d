# SPDX-License-Identifier: Apache-2.0
# scankit_pytest_suite(FOLDER): CTest tests of a folder of pytest files, one for each test function or parameter, so that a
# failure has a name, and `ctest -R`, -L, -j and the time limits hold. doctor/tests/e2e/ctest_list.py reads the names from the
# sources and says how; pytest itself is only needed when a test runs. A skip ends with status 77 (suite.py).
# The Debian package python3-pytest belongs to the system's Python, which is not always the first of PATH.
find_program(SCANKIT_PYTEST_PYTHON python3 HINTS /usr/bin)

function(scankit_pytest name test)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "LABELS;TIMEOUT;FIXTURES;PROCESSORS;DEPENDS;CONDITION" "")
  if(arg_CONDITION AND NOT ${arg_CONDITION})
    return()
  endif()
  add_test(NAME ${name} COMMAND ${SCANKIT_PYTEST_PYTHON} -B -m pytest --build=${PROJECT_BINARY_DIR} -- ${test}
           WORKING_DIRECTORY ${scankit_pytest_folder})
  math(EXPR usual "${arg_TIMEOUT} / 10")  # the longest begin first
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST ${usual} FIXTURES_REQUIRED "${arg_FIXTURES}"
                       PROCESSORS ${arg_PROCESSORS} SKIP_RETURN_CODE 77
                       ENVIRONMENT SCANKIT_FIX_CACHE=${PROJECT_BINARY_DIR}/fixtures/images)
  if(arg_DEPENDS)
    get_property(others DIRECTORY PROPERTY TESTS)
    list(FILTER others INCLUDE REGEX "^${arg_DEPENDS}\\.")
    list(REMOVE_ITEM others ${name})
    set_tests_properties(${name} PROPERTIES DEPENDS "${others}")
  endif()
endfunction()

function(scankit_pytest_suite scankit_pytest_folder)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/pytest_tests.cmake)
  file(GLOB sources CONFIGURE_DEPENDS ${scankit_pytest_folder}/*.py)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  execute_process(COMMAND ${SCANKIT_PYTEST_PYTHON} -B ${PROJECT_SOURCE_DIR}/doctor/tests/e2e/ctest_list.py ${scankit_pytest_folder}
                  OUTPUT_FILE ${list} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the tests of ${scankit_pytest_folder} cannot be listed")
  endif()
  include(${list})
endfunction()
