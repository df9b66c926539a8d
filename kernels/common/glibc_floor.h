// SPDX-License-Identifier: Apache-2.0
#pragma once
// Included before everything else in every file of the universal module (-include): binds the functions whose
// newest version is younger than glibc 2.17 to the one that glibc 2.17 has. glibc 2.34 moved libpthread and
// libdl into libc and 2.33 made the stat family real functions. The module's link names libpthread.so.0 and
// libdl.so.2, where the old versions live on old systems.
//
// A version table begins with the first glibc of the processor.
#if defined(__linux__) && defined(__x86_64__)
#define SCANKIT_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__linux__) && defined(__aarch64__)
#define SCANKIT_FIRST_GLIBC "GLIBC_2.17"
#endif
#ifdef SCANKIT_FIRST_GLIBC
#define SCANKIT_OF_FIRST_GLIBC(name) __asm__(".symver " #name "," #name "@" SCANKIT_FIRST_GLIBC)
SCANKIT_OF_FIRST_GLIBC(pthread_create);
SCANKIT_OF_FIRST_GLIBC(pthread_sigmask);
SCANKIT_OF_FIRST_GLIBC(pthread_once);
SCANKIT_OF_FIRST_GLIBC(dlopen);
SCANKIT_OF_FIRST_GLIBC(dlsym);
SCANKIT_OF_FIRST_GLIBC(dlerror);
SCANKIT_OF_FIRST_GLIBC(dlclose);
SCANKIT_OF_FIRST_GLIBC(dladdr);
SCANKIT_OF_FIRST_GLIBC(exp);  // 2.29 has one that leaves errno alone
#undef SCANKIT_OF_FIRST_GLIBC
#endif
