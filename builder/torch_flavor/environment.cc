// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "builder/compile/build.h"
#include "builder/torch_flavor/torch_flavor.h"
#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/preflight/probes/sources.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/machine/system.h"

namespace scankit::torch_flavor {
namespace {

// g++ 12 peaks at 0.58 GB with the headers of torch 2.11 and at 0.93 GB with those of 2.15.
constexpr std::uint64_t kMemory = 1'000'000'000, kDisk = 64'000'000;

std::string megabytes(std::uint64_t bytes) { return std::to_string(bytes / 1'000'000); }

// The way out that every Error here offers.
std::string or_universal() {
  return say("scankit build without --flavor torch builds a module that needs neither");
}

// The torch flavor needs one CPython with the GIL, and the name that this Python gives its extensions.
Result<void> judge_python(const Snapshot& snapshot) {
  if (!snapshot.python.present())
    return Error{Errc::NotFound,
                 message("the torch flavor is built for one Python and its torch: {}", snapshot.python.note),
                 message("choose the environment: --python PATH")};
  const Python& python = snapshot.python.value;
  if (python.free_threaded)
    return Error{Errc::Unsupported,
                 message("{} is a free-threaded Python {}, which the torch flavor does not support",
                         python.executable, python.version),
                 message("scankit build without --flavor torch builds a module for it")};
  if (python.extension_suffixes.empty())
    return Error{Errc::Unsupported,
                 message("{} does not report the suffix of its extensions", python.executable), ""};
  return {};
}

// A torch for CUDA or the CPU, with its headers and a known string ABI; a guessed one may not load.
Result<void> judge_torch(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  if (!snapshot.torch.present())
    return Error{Errc::NotFound,
                 message("the torch flavor is linked to the environment's torch, and {} has no torch: {}",
                         snapshot.python.value.executable, tr(snapshot.torch.note)),
                 or_universal()};
  if (!torch.hip.empty())
    return Error{Errc::Unsupported,
                 message("torch {} is built for ROCm, and the kernels are for CUDA", torch.version), ""};
  if (torch.cxx_standard.empty())
    return Error{
        Errc::NotFound,
        message("the headers of torch {} do not say which C++ they need: {} is missing or does not say so",
                torch.version, path_join(torch.location, "include/ATen/ATen.h")),
        message("reinstall torch from a wheel, which contains its headers; {}", or_universal())};
  if (torch.string_abi != "old" && torch.string_abi != "new")
    return Error{Errc::Unsupported,
                 message("the string ABI of torch {} could not be read from its libc10.so: {}", torch.version,
                         tr(snapshot.torch.note)),
                 or_universal()};
  return {};
}

// Finds the three libraries where distributions put them: with torch, in the environment's lib (conda-forge),
// or in the system's (Debian). Their identities go into the cache key, since a torch of the same version can
// be another build.
Result<void> find_libraries(const Host& host, const Snapshot& snapshot, TorchEnvironment& found) {
  const Torch& torch = snapshot.torch.value;
  const std::array folders{path_join(torch.location, "lib"), path_join(snapshot.python.value.prefix, "lib"),
                           std::string("/usr/lib/") + kMultiarch};
  for (const char* name : {"libtorch_python.so", "libtorch_cpu.so", "libc10.so"}) {
    const auto at = std::ranges::find_if(
        folders, [&](const std::string& folder) { return host.exists(path_join(folder, name)); });
    if (at == folders.end())
      return Error{Errc::NotFound,
                   message("torch {} lacks {}: found neither in {} nor in the environment's lib directory",
                           torch.version, name, folders[0]),
                   message("reinstall torch")};
    found.libraries.push_back(path_join(*at, name));
    std::string identity;
    for (const Library& library : torch.libraries)
      if (library.path == found.libraries.back()) identity = library.build_id;
    if (identity.empty())
      if (const auto info = host.stat(found.libraries.back())) identity = std::to_string(info->size);
    found.identities.push_back(std::string(name).append(" ").append(identity));
  }
  return {};
}

// A system's Python has its headers in a package of its own; any other brings them or has none.
Error no_python_header(const Python& python, const BuildTools& tools) {
  const auto version = Version::parse(python.version);
  const std::string series = version ? version->major_minor() : python.version;
  const std::string what =
      say("the torch flavor needs Python.h, and {}, the directory for Python {}, does not contain it",
          tools.python_include.empty() ? python.base_prefix : tools.python_include, python.version);
  if (python.base_prefix == "/usr")
    return {Errc::NotFound, what,
            message("install python{}-dev (Debian, Ubuntu) or python3-devel (Fedora, RHEL); {}", series,
                    or_universal())};
  return {Errc::NotFound, what,
          message("recreate the environment with a Python that has its headers, for example with uv python "
                  "install {}; {}",
                  series, or_universal())};
}

// What the doctor's probe finds for a directory of sources. This build has no such directory, so the snapshot
// gets one in its place.
BuildTools tools_of(const Host& host, const Snapshot& snapshot) {
  Snapshot asked = snapshot;
  asked.sources = Probed<SourceTree>::of({});
  asked.sources.value.folder = "/dev/null";
  asked.sources.value.build_file = "setup.py";
  return preflight::probe_build_tools(host, asked).value;
}

}  // namespace

// One compiler compiles one file, so that what it needs is known beforehand.
Result<void> evaluate_resources(const Probed<Memory>& known, const std::vector<BuildPlace>& places) {
  if (known.present()) {
    const Memory& memory = known.value;
    const std::uint64_t room = std::min(memory.available, memory.cgroup_limit.value_or(memory.available));
    if (room < kMemory)
      return Error{Errc::Unsupported,
                   message("compiling with torch's headers needs up to {} MB of memory, and {} MB are free",
                           megabytes(kMemory), megabytes(room)),
                   or_universal()};
  }
  for (const BuildPlace& place : places)
    if (place.role == "temporary files" && place.free < kDisk)
      return Error{Errc::Unsupported,
                   message("the build writes up to {} MB to {}, where only {} MB are free", megabytes(kDisk),
                           place.path, megabytes(place.free)),
                   message("choose another directory: TMPDIR=DIR")};
  return {};
}

Result<TorchEnvironment> torch_environment(const Host& host, const Snapshot& snapshot) {
  SCANKIT_CHECK(judge_python(snapshot));
  SCANKIT_CHECK(judge_torch(snapshot));
  const Torch& torch = snapshot.torch.value;
  const BuildTools tools = tools_of(host, snapshot);
  TorchEnvironment found;
  found.torch_version = torch.version;
  found.torch_cuda = torch.cuda;
  found.cxx_standard = torch.cxx_standard;
  found.string_abi = torch.string_abi;
  found.torch_folder = torch.location;
  found.python_include = tools.python_include;
  found.python_version = snapshot.python.value.version;
  found.suffix = snapshot.python.value.extension_suffixes.front();
  // Two of the headers that the binding includes; a distribution that strips headers lacks them.
  for (const char* header : {"torch/csrc/autograd/python_variable.h", "ATen/ops/empty_strided_ops.h"})
    if (!host.exists(path_join(path_join(torch.location, "include"), header)))
      return Error{Errc::NotFound, message("torch {} lacks its header {}", torch.version, header),
                   message("reinstall torch from a wheel, which contains its headers; {}", or_universal())};
  if (!tools.python_header) return no_python_header(snapshot.python.value, tools);
  SCANKIT_CHECK(find_libraries(host, snapshot, found));
  SCANKIT_TRY(found.compiler,
              choose_cxx_compiler(host, snapshot, {torch.cxx_standard, tools.gcc_min, torch.string_abi}));
  Probed<Memory> memory = snapshot.memory;
  if (memory.present()) memory.value.available = compile::free_memory(host, memory.value);
  if (auto room = evaluate_resources(memory, tools.places); !room) found.no_room = room.error();
  return found;
}

namespace {

// What a module may name in DT_NEEDED. The C++ run-time libraries are loaded for torch anyway.
constexpr std::array<std::string_view, 10> kAllowed = {
    "libtorch_python.so", "libtorch_cpu.so", "libc10.so",  "libstdc++.so.6", "libgcc_s.so.1",
    "libc.so.6",          "libpthread.so.0", "libdl.so.2", "libm.so.6",      kLoader};

Error broken_torch_module(const std::string& path, const std::string& what, std::string hint) {
  return {Errc::Malformed, message("the built module {} failed its checks: {}", path, what), std::move(hint)};
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
  probes::ExtensionResolver resolver(host, snapshot);
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
  const auto library = probes::inspect_file(host, copy);
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

}  // namespace scankit::torch_flavor
