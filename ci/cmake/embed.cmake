# SPDX-License-Identifier: Apache-2.0
# scankit_embed(TARGET SYMBOL FILE [DEPENDS target])
# Puts FILE's bytes into TARGET as `extern "C" const unsigned char SYMBOL[]` with `SYMBOL_end` after the last one.
# .incbin, not `ld -r -b binary`: that one derives symbol names from the path, so the bytes would depend on it.
function(scankit_embed target symbol file)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
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
