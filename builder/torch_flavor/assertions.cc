// SPDX-License-Identifier: Apache-2.0
#include "builder/torch_flavor/assertions.h"

#include <algorithm>
#include <array>

#include "doctor/base/say.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/extensions.h"

namespace scankit {
namespace {

// What a module may name in DT_NEEDED. The C++ run-time libraries are loaded for torch anyway.
constexpr std::array<std::string_view, 10> kAllowed = {
    "libtorch_python.so", "libtorch_cpu.so", "libc10.so",  "libstdc++.so.6", "libgcc_s.so.1",
    "libc.so.6",          "libpthread.so.0", "libdl.so.2", "libm.so.6",      "ld-linux-x86-64.so.2"};

Error broken_torch_module(const std::string& path, const std::string& what, std::string hint) {
  return {Errc::Malformed, say("the built module {} failed its checks: {}", path, what), std::move(hint)};
}

std::string report_it() {
  return say("nothing was installed; please report this with the output of `scankit build --explain`");
}

// A compiler of another distribution links against a newer libstdc++ than the environment's processes load.
Error newer_runtime(const std::string& path, const UnmetVersion& unmet, const TorchEnvironment& environment) {
  return broken_torch_module(
      path, say("it needs {} of {}, which has at most {}", unmet.version, unmet.library, unmet.provided_max),
      say("build it with an older compiler than {} {}: CXX=PATH", environment.compiler.kind,
          environment.compiler.version));
}

// Binds every undefined symbol and version as the loader would after `import torch`.
Result<void> check_resolution(const Host& host, const Snapshot& snapshot, const TorchEnvironment& environment,
                              Extension& copy) {
  ExtensionResolver resolver(host, snapshot);
  if (!resolver.failure().empty()) return broken_torch_module(copy.path, tr(resolver.failure()), report_it());
  resolver.resolve(copy);
  if (!copy.resolved) return broken_torch_module(copy.path, tr(copy.resolution_note), report_it());
  if (!copy.missing_libraries.empty())
    return broken_torch_module(copy.path,
                               say("the loader does not find its {}", copy.missing_libraries.front().soname),
                               report_it());
  if (!copy.missing_symbols.empty())
    return broken_torch_module(copy.path,
                               say_n(copy.missing_symbols.size(), "{} symbol that it needs was not found: {}",
                                     "{} symbols that it needs were not found, the first is {}",
                                     copy.missing_symbols.size(), copy.missing_symbols.front().name),
                               say("the headers of this torch do not match its libraries: reinstall torch"));
  if (!copy.unmet_versions.empty()) return newer_runtime(copy.path, copy.unmet_versions.front(), environment);
  return {};
}

}  // namespace

Result<void> assert_torch_module(const Host& host, const Snapshot& snapshot,
                                 const TorchEnvironment& environment, const std::string& module,
                                 const std::string& path) {
  Extension copy;
  copy.path = copy.real_path = path;
  copy.module = module;
  const auto library = inspect_file(host, copy);
  if (!library) return broken_torch_module(path, tr(copy.file_detail), report_it());
  for (const std::string& needed : copy.needed)
    if (std::find(kAllowed.begin(), kAllowed.end(), needed) == kAllowed.end())
      return broken_torch_module(path, say("it needs {}", needed), report_it());
  if (copy.string_abi != environment.string_abi)
    return broken_torch_module(
        path, say("its string ABI is {}, and torch's is {}", copy.string_abi, environment.string_abi),
        say("build it with a compiler that supports -D_GLIBCXX_USE_CXX11_ABI: CXX=PATH"));
  return check_resolution(host, snapshot, environment, copy);
}

}  // namespace scankit
