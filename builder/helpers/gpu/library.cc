// SPDX-License-Identifier: Apache-2.0
#include "builder/helpers/gpu/library.h"

#include <stdio.h>

// glibc 2.34 moved these into libc under a new version; the old one, of the first glibc of the processor,
// stayed. The file's DT_NEEDED names libdl.so.2, where a glibc before 2.34 keeps them.
extern "C" {
void* dlopen_first(const char* path, int mode);
void* dlsym_first(void* library, const char* name);
char* dlerror_first();
}
#ifdef __aarch64__
#define FIRST_GLIBC "GLIBC_2.17"
#else
#define FIRST_GLIBC "GLIBC_2.2.5"
#endif
__asm__(".symver dlopen_first, dlopen@" FIRST_GLIBC);
__asm__(".symver dlsym_first, dlsym@" FIRST_GLIBC);
__asm__(".symver dlerror_first, dlerror@" FIRST_GLIBC);

namespace scankit_gpu {

void* load_library(const char* path) {
  // With lazy binding an undefined symbol would end the process at the first call.
  constexpr int kRtldNow = 2;  // RTLD_NOW | RTLD_LOCAL
  return dlopen_first(path, kRtldNow);
}

void* find_symbol(void* library, const char* name) { return dlsym_first(library, name); }

// Writes piece by piece: no allocation, and no C++ string, since this program has no C++ run-time library.
void report_error(const char* english, const char* first, const char* second, const char* third) {
  const char* next = first;
  for (const char* c = english; *c != 0; ++c) {
    if (c[0] == '{' && c[1] == '}') {
      fputs(next, stderr);
      next = second;
      second = third;
      ++c;
    } else {
      fputc(*c, stderr);
    }
  }
  fputc('\n', stderr);
}

// dlerror() returns null if nothing has failed since the last call (dlerror(3)).
const char* load_error() {
  const char* text = dlerror_first();
  return text != nullptr ? text : "unknown error of the loader";
}

}  // namespace scankit_gpu
