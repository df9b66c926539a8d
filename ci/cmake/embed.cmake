# SPDX-License-Identifier: Apache-2.0
# scankit_embed(TARGET SYMBOL FILE [COMPRESSED] [DEPENDS target])
# Puts FILE's bytes, or with COMPRESSED what zstd makes of them (doctor/base/embedded.h), into TARGET as `extern "C" const unsigned char SYMBOL[]` with `SYMBOL_end` after the last one.
# .incbin, not `ld -r -b binary`: that one derives symbol names from the path, so the bytes would depend on it.
function(scankit_embed target symbol file)
  cmake_parse_arguments(ARG "COMPRESSED" "" "DEPENDS" ${ARGN})
  if(ARG_COMPRESSED)
    scankit_compress(${symbol} ${file} ${ARG_DEPENDS})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/embed_${symbol}.zst)
  endif()
  set(stub ${CMAKE_CURRENT_BINARY_DIR}/embed_${symbol}.S)
  file(CONFIGURE OUTPUT ${stub} CONTENT [[
    .section .rodata.@symbol@,"a",%progbits
    .balign 64
    .globl @symbol@
    .globl @symbol@_end
    .hidden @symbol@
    .hidden @symbol@_end
@symbol@:
    .incbin "@file@"
@symbol@_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
]] @ONLY)
  target_sources(${target} PRIVATE ${stub})
  set_property(SOURCE ${stub} APPEND PROPERTY OBJECT_DEPENDS "${file};${ARG_DEPENDS}")
endfunction()

# scankit_embed_together(TARGET SYMBOL FILES file... [DEPENDS target...])
# Several files as one compressed text, for EmbeddedFiles: what they have in common is stored once. Their names are those of the files without folders.
function(scankit_embed_together target symbol)
  cmake_parse_arguments(ARG "" "" "FILES;DEPENDS" ${ARGN})
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/embed_${symbol}.joined)
  add_custom_command(OUTPUT ${joined} DEPENDS ${ARG_FILES} ${ARG_DEPENDS} ${PROJECT_SOURCE_DIR}/ci/cmake/join.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/ci/cmake/join.cmake ${joined} ${ARG_FILES})
  scankit_embed(${target} ${symbol} ${joined} COMPRESSED)
endfunction()

# One thread: with more, the bytes depend on their number in some releases of zstd. No checksum: it would be compared with each start of what
# cannot change.
function(scankit_compress symbol file)
  if(NOT ZSTD_PROGRAM)
    message(FATAL_ERROR "the build compresses what scankit carries by the program zstd: install the package zstd")
  endif()
  set(compressed ${CMAKE_CURRENT_BINARY_DIR}/embed_${symbol}.zst)
  add_custom_command(OUTPUT ${compressed} COMMAND ${ZSTD_PROGRAM} -q -f -19 -T1 --no-check -o ${compressed} ${file}
    DEPENDS ${file} ${ARGN} VERBATIM)
endfunction()
