// SPDX-License-Identifier: Apache-2.0
// scankit-gpu: what the static scankit cannot do, which is to load the vendor's libraries. It runs as a child
// with a timeout, prints one record a line (KIND<TAB>key=value<TAB>...) and exits with one of the statuses of
// library.h.
#include <stdio.h>
#include <string.h>

#include "builder/gpu_helper/library.h"

namespace {

struct Verb {
  const char* name;
  int (*run)(int, char**);
  const char* usage;
};

constexpr Verb kVerbs[] = {
    {"nvml", scankit_gpu::run_nvml, "nvml"},
    {"nvrtc", scankit_gpu::run_nvrtc,
     "nvrtc --lib FILE [--builtins FILE] --arch sm_90|compute_75 --ptx|--cubin --out FILE [OPTION ...] "
     "SOURCE"},
    {"nvrtc-info", scankit_gpu::run_nvrtc_info, "nvrtc-info --lib FILE [--builtins FILE]"},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Verb& verb : kVerbs)
    if (argc > 1 && strcmp(argv[1], verb.name) == 0) return verb.run(argc - 2, argv + 2);
  for (const Verb& verb : kVerbs) fprintf(stderr, "usage: scankit-gpu %s\n", verb.usage);
  return scankit_gpu::kUsage;
}
