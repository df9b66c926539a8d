# SPDX-License-Identifier: Apache-2.0
# cmake -P join.cmake OUT FILE...: the files one after the other behind a list of them, "SIZE NAME" a line and an empty line
# at its end, as EmbeddedFiles of doctor/base/embedded.h reads it.
math(EXPR last "${CMAKE_ARGC} - 1")
set(out ${CMAKE_ARGV3})
set(list "")
set(files ${out}.list)
foreach(i RANGE 4 ${last})
  set(file ${CMAKE_ARGV${i}})
  file(SIZE ${file} size)
  cmake_path(GET file FILENAME name)
  string(APPEND list "${size} ${name}\n")
  list(APPEND files ${file})
endforeach()
file(WRITE ${out}.list "${list}\n")
execute_process(COMMAND cat ${files} OUTPUT_FILE ${out} COMMAND_ERROR_IS_FATAL ANY)
