# SPDX-License-Identifier: Apache-2.0
# scankit_embed(TARGET SYMBOL FILE [COMPRESSED] [DEPENDS target])
# Puts FILE's bytes, or with COMPRESSED what gzip makes of them (builder/module/bundled.h), into TARGET as `extern "C" const unsigned char SYMBOL[]` with `SYMBOL_end` after the last one.
# .incbin, not `ld -r -b binary`: that one derives symbol names from the path, so the bytes would depend on it.
function(scankit_embed target symbol file)
  cmake_parse_arguments(ARG "COMPRESSED" "" "DEPENDS" ${ARGN})
  if(ARG_COMPRESSED)
    set(compressed ${CMAKE_CURRENT_BINARY_DIR}/embed_${symbol}.gz)
    # -n: no name and no time, so that the same file gives the same program.
    add_custom_command(OUTPUT ${compressed} COMMAND gzip -9nc ${file} > ${compressed} DEPENDS ${file} ${ARG_DEPENDS} VERBATIM)
    set(file ${compressed})
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
