// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/missing.h"

#include <algorithm>
#include <array>

#include "doctor/base/message.h"
#include "doctor/base/text.h"

namespace scankit::checks {
namespace {

template <std::size_t N>
bool starts_with_one(const std::string& text, const std::array<std::string_view, N>& prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// Whether a parameter may be a string, by either ABI.
bool takes_strings(const MissingSymbol& symbol) {
  return symbol.name.find("__cxx11") != std::string::npos ||
         symbol.demangled.find("std::string") != std::string::npos ||
         symbol.demangled.find("basic_string") != std::string::npos;
}

// The newest version node of a library may be older than its release: libc.so.6 of glibc 2.31 ends
// at GLIBC_2.30.
Message provided_in_words(const Snapshot& snapshot, const UnmetVersion& unmet) {
  if (!unmet.version.starts_with("GLIBC_") || !snapshot.libc.present() || snapshot.libc.value.kind != "glibc")
    return message("{} ends at {}", unmet.library, unmet.provided_max);
  return message("{} of glibc {} ends at {}", unmet.library, snapshot.libc.value.version, unmet.provided_max);
}

Message need_in_words(const Snapshot& snapshot, const UnmetVersion& unmet) {
  const Message need = message("{} needs {}, {}", path_basename(unmet.needed_by), unmet.version,
                               provided_in_words(snapshot, unmet));
  return unmet.symbols.empty() ? need : message("{} (for {})", need, join(unmet.symbols));
}

}  // namespace

bool is_torch_cuda_library(const std::string& soname) {
  return soname.starts_with("libc10_cuda.so") || soname.starts_with("libtorch_cuda");
}

bool is_cuda_library(const std::string& soname) {
  constexpr std::array<std::string_view, 19> kPrefixes{
      "libcudart.so", "libcublas",   "libcusparse",   "libcusolver", "libcurand.so", "libcufft", "libnvrtc",
      "libnvJitLink", "libcupti.so", "libnvToolsExt", "libnpp",      "libcufile",    "libcudnn", "libnccl.so",
      "libcutensor",  "libnvshmem",  "libnvtx",       "libcudss",    "libnvjpeg"};
  return starts_with_one(soname, kPrefixes);
}

bool is_driver_library(const std::string& soname) {
  return soname.starts_with("libcuda.so") || soname.starts_with("libnvidia-");
}

bool is_compiler_runtime_version(const std::string& version) {
  return starts_with_one(version, kCompilerRuntimeVersions);
}

bool is_library_of_another_python(const std::string& soname) {
  constexpr std::array<std::string_view, 4> kPrefixes{"libpython", "libpypy", "libc.musl-", "ld-musl-"};
  return starts_with_one(soname, kPrefixes);
}

// Order matters: a name that torch exports from another library is never a mismatch, and a flip is proven
// before drift is assumed.
TorchNames torch_names(const Copy& copy) {
  TorchNames names;
  const auto& missing = copy->missing_symbols;
  // If one of torch's libraries is missing, a name that resembles no exported one may well belong
  // to that library.
  const bool library_missing =
      std::ranges::any_of(copy->missing_libraries,
                          [](const MissingLibrary& library) { return is_torch_library(library.soname); });
  const bool flips = std::ranges::any_of(
      missing, [](const MissingSymbol& s) { return s.owner == "torch" && !s.flipped_exported_by.empty(); });
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const MissingSymbol& symbol = missing[i];
    if (symbol.owner != "torch") continue;
    if (!symbol.exported_by_torch.empty()) names.not_linked.push_back(i);
    // If flips are proven for other names, a name that takes strings is counted as one too: its spelling
    // in the other ABI could not be formed.
    else if (!symbol.flipped_exported_by.empty() || (flips && takes_strings(symbol)))
      names.flipped.push_back(i);
    else if (!library_missing || !symbol.near.empty())
      names.drifted.push_back(i);
  }
  return names;
}

void add_built_for(const Copy& copy, Finding& finding) {
  const auto& evidence = copy->built_for.evidence;
  for (std::size_t i = 0; copy->built_for.dated && i < evidence.size(); ++i)
    finding.evidence.push_back(copy.at("built_for/evidence", i, "", english(evidence[i])));
}

// One finding for each module, with all of its unmet versions.
std::vector<Finding> unmet_versions(const Snapshot& snapshot, Cause cause,
                                    const std::vector<std::string_view>& prefixes, const Message& otherwise) {
  std::vector<Finding> findings;
  for (const Copy& copy : resolved_copies(snapshot)) {
    Finding finding{.cause = cause, .subject = copy->path, .module = copy->module};
    const auto& unmet = copy->unmet_versions;
    for (std::size_t i = 0; i < unmet.size(); ++i) {
      const std::string& version = unmet[i].version;
      if (std::ranges::none_of(prefixes,
                               [&](std::string_view prefix) { return version.starts_with(prefix); }))
        continue;
      finding.summary = clauses_of({finding.summary, need_in_words(snapshot, unmet[i])});
      finding.evidence.push_back(copy.at("unmet_versions", i, "version", version));
      finding.evidence.push_back(copy.at("unmet_versions", i, "provided_max", unmet[i].provided_max));
    }
    if (finding.evidence.empty()) continue;
    finding.fixes = rebuild_fixes(snapshot, copy, otherwise);
    findings.push_back(finding);
  }
  return findings;
}

bool torch_lost(const Snapshot& snapshot, const std::string& soname) {
  return std::ranges::any_of(snapshot.torch.value.missing_libraries,
                             [&](const TorchNeed& need) { return need.soname == soname; });
}

std::vector<std::size_t> foreign_torch_libraries(const Snapshot& snapshot, const Copy& copy) {
  std::vector<std::size_t> foreign;
  const Torch& torch = snapshot.torch.value;
  if (torch.libraries.empty()) return foreign;  // it has none of its own either: torch-complete says so
  for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
    const std::string& soname = copy->missing_libraries[i].soname;
    if (!is_torch_library(soname) || (is_torch_cuda_library(soname) && torch.cuda.empty())) continue;
    if (!torch_lost(snapshot, soname)) foreign.push_back(i);
  }
  return foreign;
}

}  // namespace scankit::checks
