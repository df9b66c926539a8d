# SPDX-License-Identifier: Apache-2.0
# scankit_build_facts(): writes generated/doctor/build_facts.h, of which `scankit --version --json` tells. A new commit
# configures the tree again, which compiles one small file: a binary that names another commit would be worse than one
# that names none.
function(scankit_git variable)  # the words of git
  execute_process(COMMAND git ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE said ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    set(said "")
  endif()
  set(${variable} "${said}" PARENT_SCOPE)
endfunction()

function(scankit_build_facts)
  # A copy of the sources below another repository is not of that repository's commit.
  scankit_git(prefix rev-parse --show-prefix)
  set(scankit_commit "")
  set(scankit_symbol_index_date "")
  if(prefix STREQUAL "")
    scankit_git(scankit_commit rev-parse HEAD)
    scankit_git(scankit_symbol_index_date log -1 --format=%cs -- doctor/torch_abi/symbol_index.bin)
    # Its log grows with each commit and checkout, HEAD itself does not.
    scankit_git(log rev-parse --git-path logs/HEAD)
    get_filename_component(log "${log}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(scankit_commit AND EXISTS "${log}")
      set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${log}")
    endif()
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/doctor/build_facts.h.in ${PROJECT_BINARY_DIR}/generated/doctor/build_facts.h @ONLY)
endfunction()
