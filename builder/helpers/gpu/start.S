// SPDX-License-Identifier: Apache-2.0
// The entry point. The distribution's crt1.o refers to __libc_start_main@GLIBC_2.34, which is the one thing in a small
// program that lifts its glibc floor; the older version of the same function is in every glibc. It takes init and fini
// of the program: null, since nothing here has a constructor (a glibc without the 2.34 change skips null ones).
    .symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
    .text
    .globl _start
    .type _start, @function
_start:
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
    .size _start, . - _start
    .section .note.GNU-stack, "", %progbits
