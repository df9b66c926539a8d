// SPDX-License-Identifier: Apache-2.0
#include "doctor/matrix/places.h"

#include <algorithm>
#include <map>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/base/version.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit::matrix {
namespace {

constexpr std::string_view kTo = "..";
constexpr unsigned kOldestGlibc = 5, kNewestGlibc = 43;  // 2.5: manylinux1 (PEP 513)

// "2.6" of "2.6.1"; whole where it has no second dot.
std::string minor_of(const std::string& value) {
  const auto first = value.find('.');
  const auto second = first == std::string::npos ? first : value.find('.', first + 1);
  return value.substr(0, second);
}

Error not_known(std::string_view option, const std::string& value, const std::vector<std::string>& known) {
  return {Errc::InvalidArgument, message("{} {}: this value is not known", option, printable(value)),
          message("the known values are {}; a range is written {}..{}", join(known), known.front(),
                  known.back())};
}

}  // namespace

Result<std::vector<std::string>> values_of_axis(std::string_view option, const std::string& text,
                                                const std::vector<std::string>& known) {
  if (known.empty())
    return Error{Errc::Malformed, message("{}: the tables of this build cannot be read", option), {}};
  const auto place_of = [&](const std::string& value) {
    return std::ranges::find(known, minor_of(value)) - known.begin();
  };
  const auto end = static_cast<std::ptrdiff_t>(known.size());
  std::set<std::ptrdiff_t> chosen;
  for (const std::string& part : split(text, ",")) {
    const auto to = part.find(kTo);
    std::string low = part.substr(0, to), high = to == std::string::npos ? low : part.substr(to + kTo.size());
    if (part == "all")
      low = high = "";
    else if (part.empty() || part == kTo)
      return not_known(option, part, known);
    const auto from = low.empty() ? 0 : place_of(low), until = high.empty() ? end - 1 : place_of(high);
    if (from == end) return not_known(option, low, known);
    if (until == end) return not_known(option, high, known);
    if (from > until)
      return Error{Errc::InvalidArgument,
                   message("{} {}: the range has its ends exchanged", option, printable(part)),
                   message("write {}..{}", high, low)};
    for (auto i = from; i <= until; ++i) chosen.insert(i);
  }
  std::vector<std::string> values;
  for (const auto i : chosen) values.push_back(known[static_cast<std::size_t>(i)]);
  return values;
}

bool is_python_axis(std::string_view text) {
  return text == "all" || (text.find_first_not_of("0123456789.,") == std::string_view::npos &&
                           text.find_first_of("0123456789") != std::string_view::npos);
}

std::vector<std::string> known_torch_releases() {
  std::vector<std::string> known;
  for (const torch_abi::IndexedRelease& release : torch_abi::SymbolIndex::built_in().releases())
    known.push_back(release.minor);
  return known;
}

// Of " cp39 cp313t ": free-threaded ones are left out, of which the index knows too few.
std::vector<std::string> known_pythons() {
  std::set<unsigned> minors;
  for (const torch_abi::IndexedRelease& release : torch_abi::SymbolIndex::built_in().releases())
    for (const std::string& tag : split_nonempty(release.python_tags, " "))
      if (tag.starts_with("cp3") && tag.find_first_not_of("0123456789", 2) == std::string::npos)
        minors.insert(static_cast<unsigned>(std::stoul(tag.substr(3))));
  std::vector<std::string> known;
  for (const unsigned minor : minors) known.push_back("3." + std::to_string(minor));
  return known;
}

// Source: the suffixes (+cu118) of the wheels that the PyTorch project lists for torch 1.11 and newer.
std::vector<std::string> known_cuda_releases() {
  return {"10.2", "11.3", "11.5", "11.6", "11.7", "11.8", "12.1", "12.4", "12.6", "12.8", "12.9", "13.0"};
}

std::vector<std::string> known_glibcs() {
  std::vector<std::string> known;
  for (unsigned minor = kOldestGlibc; minor <= kNewestGlibc; ++minor)
    known.push_back("2." + std::to_string(minor));
  return known;
}

// Source: `nvcc --list-gpu-arch` of CUDA 12.9 and 13.0.
std::vector<std::string> known_gpus() {
  return {"sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62",  "sm_70",  "sm_72",  "sm_75",  "sm_80",
          "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};
}

namespace {

const std::string kSite = "/described/site-packages";

const torch_abi::IndexedRelease* release_of(const std::string& minor) {
  const auto& releases = torch_abi::SymbolIndex::built_in().releases();
  const auto found = std::ranges::find(releases, minor, &torch_abi::IndexedRelease::minor);
  return found == releases.end() ? nullptr : &*found;
}

// The libraries of CUDA that a build of torch loads, by CUDA's major release. Source: the sonames in the toolkits of 10.2, 11.8,
// 12.9 and 13.0; cuFFT, cuRAND, cuSOLVER and cuSPARSE count on their own. cuDNN and NCCL are the same for all of them.
const std::map<unsigned, std::vector<std::string>>& cuda_libraries() {
  static const std::map<unsigned, std::vector<std::string>> kLibraries{
      {10,
       {"libcudart.so.10.2", "libcublas.so.10", "libcufft.so.10", "libcurand.so.10", "libcusolver.so.10",
        "libcusparse.so.10", "libnvrtc.so.10.2", "libnvToolsExt.so.1"}},
      {11,
       {"libcudart.so.11.0", "libcublas.so.11", "libcublasLt.so.11", "libcufft.so.10", "libcurand.so.10",
        "libcusolver.so.11", "libcusparse.so.11", "libnvrtc.so.11.2", "libcupti.so.11.8",
        "libnvToolsExt.so.1"}},
      {12,
       {"libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11", "libcurand.so.10",
        "libcusolver.so.11", "libcusparse.so.12", "libnvrtc.so.12", "libnvJitLink.so.12", "libcupti.so.12",
        "libnvToolsExt.so.1"}},
      {13,
       {"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.12", "libcurand.so.10",
        "libcusolver.so.12", "libcusparse.so.12", "libnvrtc.so.13", "libnvJitLink.so.13", "libcupti.so.13"}}};
  return kLibraries;
}

unsigned major_of(const std::string& version) {
  const auto parsed = Version::parse(version);
  return parsed ? static_cast<unsigned>(parsed->part(0)) : 0;
}

Torch torch_of(const Place& place, const torch_abi::IndexedRelease* release) {
  Torch torch;
  torch.version = place.torch + ".0";
  torch.cuda = place.cuda;
  torch.string_abi = release != nullptr && release->new_strings ? "new" : "old";
  torch.location = kSite + "/torch";
  std::vector<std::string> loaded{"libtorch.so", "libtorch_cpu.so", "libc10.so", "libshm.so", "libgomp.so.1"};
  if (!place.cuda.empty()) {
    loaded.insert(loaded.end(),
                  {"libtorch_cuda.so", "libc10_cuda.so", "libnccl.so.2", "libcudnn.so.8", "libcudnn.so.9"});
    if (const auto cuda = cuda_libraries().find(major_of(place.cuda)); cuda != cuda_libraries().end())
      loaded.insert(loaded.end(), cuda->second.begin(), cuda->second.end());
  }
  for (const char* root : {"libtorch_global_deps.so", "libtorch_python.so"})
    torch.libraries.push_back({torch.location + "/lib/" + root, root, "", loaded});
  for (const std::string& soname : loaded)
    if (soname.starts_with("libtorch") || soname.starts_with("libc10"))
      torch.libraries.push_back({torch.location + "/lib/" + soname, soname, "", {}});
  return torch;
}

Python python_of(const Place& place) {
  Python python;
  python.executable = python.requested = "/described/bin/python" + place.python;
  python.version = place.python + ".0";
  python.implementation = "cpython";
  std::string digits = place.python;
  std::erase(digits, '.');
  python.soabi = "cpython-" + digits + "-" + place.machine + "-linux-gnu";
  python.extension_suffixes = {"." + python.soabi + ".so", ".abi3.so", ".so"};
  python.prefix = python.base_prefix = "/described";
  python.kind = "other";
  python.sys_path = {{kSite, "site", true}};
  return python;
}

}  // namespace

bool depends_on_an_axis(const std::string& soname) {
  return is_torch_library(soname) || std::ranges::any_of(cuda_libraries(), [&](const auto& release) {
           return std::ranges::find(release.second, soname) != release.second.end();
         });
}

bool torch_has_wheels_for(const std::string& torch, const std::string& python) {
  const torch_abi::IndexedRelease* release = release_of(torch);
  if (release == nullptr) return false;
  std::string tag = " cp" + python + " ";
  std::erase(tag, '.');
  return release->python_tags.find(tag) != std::string::npos;
}

Snapshot described_machine(const Place& place) {
  Snapshot machine;
  machine.tool_version = kToolVersion;
  Os os;
  os.machine = place.machine;
  machine.os = Probed<Os>::of(std::move(os));
  machine.libc = Probed<LibC>::of({"glibc", place.glibc, ""});
  // Above every release there is: which libstdc++ a process loads is a matter of the distribution and of conda, not of an axis.
  machine.libstdcxx = Probed<LibStdCxx>::of({"", "3.4.9999", "1.3.9999"});
  Driver driver;
  driver.version = place.driver.empty() ? "9999.0" : place.driver;
  driver.source = "described";
  driver.libcuda = "/described/libcuda.so.1";
  driver.libcuda_reached = "default folder";
  machine.driver = Probed<Driver>::of(std::move(driver));
  machine.python = Probed<Python>::of(python_of(place));
  machine.torch = Probed<Torch>::of(torch_of(place, release_of(place.torch)));
  machine.reachable = Probed<std::vector<std::string>>::of(place.system_libraries);
  if (place.gpu.empty()) {
    machine.gpus = Probed<std::vector<Gpu>>::absent(message("no GPU was asked about"));
  } else {
    Gpu gpu;
    gpu.name = "described";
    gpu.sm = place.gpu.substr(place.gpu.find('_') + 1);
    gpu.sm_source = "described";
    machine.gpus = Probed<std::vector<Gpu>>::of({std::move(gpu)});
  }
  return machine;
}

}  // namespace scankit::matrix
