// SPDX-License-Identifier: Apache-2.0
// extension_benchmark PYTHON MODULE...: how long reading and resolving the
// modules takes, page cache warm, and the peak memory of the process that
// did it. The environment's own facts are probed before and not counted.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"

int main(int count, char** arguments) {
  using namespace scankit;
  if (count < 3) {
    std::fputs("usage: extension_benchmark PYTHON MODULE...\n", stderr);
    return 2;
  }
  const auto host = make_real_host();
  Snapshot snapshot;
  snapshot.python = probes::probe_python(*host, arguments[1]);
  snapshot.distributions = probes::probe_distributions(*host, snapshot.python.value);
  snapshot.torch = probes::probe_torch(*host, snapshot.python.value, snapshot.distributions.value);
  const std::vector<std::string> modules(arguments + 2, arguments + count);
  std::vector<double> times;
  std::vector<Extension> copies;
  for (int i = 0; i < 21; ++i) {
    std::vector<TorchNeed> torch_missing;
    const auto start = std::chrono::steady_clock::now();
    copies = probes::probe_extensions(*host, snapshot, modules, torch_missing).value;
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(times);
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  for (const Extension& copy : copies)
    std::printf("%s: %zu files in its closure, %u strong undefined names, %u provided\n", copy.path.c_str(),
                copy.closure.size(), copy.undefined, copy.provided);
  std::printf("median %.1f ms, best %.1f ms of %zu; peak memory %.1f MiB\n", times[times.size() / 2],
              times.front(), times.size(), static_cast<double>(usage.ru_maxrss) / 1024);
  return copies.empty() ? 1 : 0;
}
