// SPDX-License-Identifier: Apache-2.0
// scankit-gpu: what the static scankit cannot do, which is to load the vendor's
// libraries. It runs as a child with a timeout, prints one record a line
// (KIND<TAB>key=value<TAB>...) and exits with one of the statuses of library.h.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "builder/helpers/gpu/library.h"

namespace {

// `run` gets the arguments after the verb; `usage` is what is printed for an unknown verb.
struct Verb {
  const char* name;
  int (*run)(int, char**);
  const char* usage;
};

constexpr Verb kVerbs[] = {
    {"nvml", scankit_gpu::run_nvml, "nvml"},
    {"nvml-details", scankit_gpu::run_nvml_details, "nvml-details"},
    {"cuda-details", scankit_gpu::run_cuda_details, "cuda-details"},
    {"nvrtc", scankit_gpu::run_nvrtc,
     "nvrtc --lib FILE [--builtins FILE] --arch sm_90|compute_75 --ptx|--cubin --out FILE [OPTION ...] "
     "SOURCE"},
    {"nvrtc-info", scankit_gpu::run_nvrtc_info, "nvrtc-info --lib FILE [--builtins FILE]"},
};

// NVRTC 13.0 orders things by their addresses: with others the same source gives other registers and other
// bytes from run to run (measured on a kernel of 600 KB of PTX). So this program starts itself again with
// addresses that are not randomised, with no environment but a filler: what the kernel puts below the stack
// (arguments and variables) has one size whatever the paths. Where the sandbox forbids it (Docker's default
// filter), the code is as right, only not the same.
void fix_addresses(char** argv) {
  static char filler[8192];
  // 0xffffffff only reads the persona. The flag survives execve, so the second start returns here.
  const int now = personality(0xffffffff);
  if (now == -1 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) == -1) return;
  // execve copies argv and the environment onto the stack. The filler takes what argv leaves of a fixed size.
  size_t used = 0;
  for (char** word = argv; *word != nullptr; ++word) used += strlen(*word) + 1;
  if (used + 16 > sizeof(filler)) return;
  memset(filler, 'x', sizeof(filler) - used - 1);
  filler[1] = '=';
  char* const environment[] = {filler, nullptr};
  // execve returns only if it fails; the program then runs with random addresses.
  execve("/proc/self/exe", argv, environment);
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scankit that is killed leaves no compiler behind
  if (argc > 1 && strcmp(argv[1], "nvrtc") == 0) fix_addresses(argv);
  for (const Verb& verb : kVerbs)
    if (argc > 1 && strcmp(argv[1], verb.name) == 0) return verb.run(argc - 2, argv + 2);
  for (const Verb& verb : kVerbs) fprintf(stderr, "usage: scankit-gpu %s\n", verb.usage);
  return scankit_gpu::kUsage;
}
