// SPDX-License-Identifier: Apache-2.0
// The entry point. The distribution's crt1.o refers to __libc_start_main@GLIBC_2.34, which is the one thing in a small
// program that lifts its glibc floor; the older version of the same function is in every glibc. It takes init and fini
// of the program: null, since nothing here has a constructor (a glibc without the 2.34 change skips null ones).
#ifdef __aarch64__
    .symver __libc_start_main, __libc_start_main@GLIBC_2.17
#else
    .symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
#endif
    .text
    .globl _start
    .type _start, %function
_start:
#ifdef __aarch64__
    mov x29, #0
    mov x30, #0
    mov x5, x0                // the loader's fini
    ldr x1, [sp]              // argc
    add x2, sp, #8            // argv
    mov x6, sp                // end of the stack, aligned by the kernel
    mov x3, #0
    mov x4, #0
    adrp x0, main
    add x0, x0, :lo12:main
    bl __libc_start_main
    brk #1                    // it does not return
#else
    xorl %ebp, %ebp
    movq %rdx, %r9            // the loader's fini
    popq %rsi                 // argc
    movq %rsp, %rdx           // argv
    andq $-16, %rsp
    pushq %rax
    pushq %rsp                // end of the stack
    xorl %r8d, %r8d
    xorl %ecx, %ecx
    leaq main(%rip), %rdi
    call *__libc_start_main@GOTPCREL(%rip)
    hlt
#endif
    .size _start, . - _start
    .section .note.GNU-stack, "", %progbits
