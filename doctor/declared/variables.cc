// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/declared/module_file.h"

namespace scankit::declared {
namespace {

// Read by torch's cpp_extension, CMake and the setup.py files of several projects.
constexpr std::array<std::string_view, 10> kNames = {"BUILD_CUDA_EXT",  "CMAKE_BUILD_PARALLEL_LEVEL",
                                                     "CUDAARCHS",       "FORCE_CUDA",
                                                     "FORCE_ONLY_CUDA", "MAX_JOBS",
                                                     "NVCC_THREADS",    "USE_NINJA",
                                                     "WITH_CUDA",       "TORCH_CUDA_ARCH_LIST"};
// Of a project's own switches: FLASH_ATTENTION_FORCE_BUILD, NATTEN_CUDA_ARCH, MMCV_WITH_OPS, DS_BUILD_OPS.
constexpr std::array<std::string_view, 14> kEndings = {
    "_BUILD_CUDA",      "_BUILD_OPS",       "_CUDA_ARCH",       "_CUDA_ARCHITECTURES",
    "_CUDA_ARCHS",      "_CUDA_ARCH_LIST",  "_CUDA_EXT",        "_FORCE_BUILD",
    "_FORCE_CUDA",      "_FORCE_CXX11_ABI", "_KEEP_CUDA_BUILD", "_N_WORKERS",
    "_SKIP_CUDA_BUILD", "_WITH_OPS"};
// Programs that obey variables of these prefixes are run by the build itself.
constexpr std::array<std::string_view, 14> kTaken = {"PIP_", "UV_",      "PYTHON", "LD_",    "CONDA_",
                                                     "GIT_", "SCANKIT_", "HTTP",   "SSL_",   "CCACHE_",
                                                     "XDG_", "DYLD_",    "GLIBC_", "MALLOC_"};

constexpr std::size_t kLongestName = 64, kLongestValue = 200;
constexpr std::string_view kBesidesWords = ".,;+-_= ";  // in a value

std::string listed(const auto& words) {
  std::vector<std::string> all(words.begin(), words.end());
  return join(all);
}

}  // namespace

bool is_build_switch(std::string_view name) {
  const auto part = [](char c) { return (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; };
  if (name.empty() || name.size() > kLongestName || is_digit(name.front()) ||
      !std::ranges::all_of(name, part))
    return false;
  if (std::ranges::find(kNames, name) != kNames.end()) return true;
  if (std::ranges::any_of(kTaken, [&](std::string_view prefix) { return name.starts_with(prefix); }))
    return false;
  const auto ends = [&](std::string_view ending) {
    return name.size() > ending.size() && name.ends_with(ending);
  };
  return std::ranges::any_of(kEndings, ends);
}

bool is_switch_value(std::string_view value) {
  const auto part = [](char c) {
    return is_identifier_char(c) || kBesidesWords.find(c) != std::string_view::npos;
  };
  return !value.empty() && value.size() <= kLongestValue && std::ranges::all_of(value, part);
}

std::string build_switches_in_words() {
  return say("{}, and names that end in {}", listed(kNames), listed(kEndings));
}

}  // namespace scankit::declared
