// SPDX-License-Identifier: Apache-2.0
#pragma once
// Included before everything else in every file of the universal module (-include): binds the functions whose
// newest version is younger than glibc 2.17 to the one that glibc 2.17 has. glibc 2.34 moved libpthread and
// libdl into libc and 2.33 made the stat family real functions; version tables of x86_64. The module's link
// names libpthread.so.0 and libdl.so.2, where the old versions live on old systems.
#if defined(__linux__) && defined(__x86_64__)
#define SCANKIT_GLIBC_2_2_5(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
SCANKIT_GLIBC_2_2_5(pthread_create);
SCANKIT_GLIBC_2_2_5(pthread_sigmask);
SCANKIT_GLIBC_2_2_5(pthread_once);
SCANKIT_GLIBC_2_2_5(dlopen);
SCANKIT_GLIBC_2_2_5(dlsym);
SCANKIT_GLIBC_2_2_5(dlerror);
SCANKIT_GLIBC_2_2_5(dlclose);
SCANKIT_GLIBC_2_2_5(dladdr);
SCANKIT_GLIBC_2_2_5(exp);  // 2.29 has one that leaves errno alone
#undef SCANKIT_GLIBC_2_2_5
#endif
