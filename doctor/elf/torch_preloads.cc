// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include "doctor/elf/torch_load.h"

namespace scankit {
namespace {

// The body of `def NAME(`: up to the next line that starts at the left margin.
std::string_view function_body(std::string_view text, std::string_view name) {
  const auto start = text.find("\ndef " + std::string(name) + "(");
  if (start == std::string_view::npos) return {};
  auto end = text.find('\n', start + 1);
  while (end != std::string_view::npos && end + 1 < text.size()) {
    const char next = text[end + 1];
    if (next != ' ' && next != '\n' && next != ')' && next != '#') break;
    end = text.find('\n', end + 1);
  }
  return text.substr(start, end == std::string_view::npos ? text.npos : end - start);
}

// ("cublas", "libcublas.so.*[0-9]") of newer releases, "cublas": "libcublas.so.*[0-9]" of older ones.
std::vector<TorchPreloads::Pattern> patterns_in(std::string_view text) {
  static const std::regex pair(
      R"re("([A-Za-z0-9_]+)"\s*[,:]\s*"(lib[A-Za-z0-9_.+-]+\.so[^"\n]*)"\s*(,\s*required=False)?)re");
  std::vector<TorchPreloads::Pattern> found;
  const std::string copy(text);
  for (std::sregex_iterator it(copy.begin(), copy.end(), pair), end; it != end; ++it)
    if (!(*it)[3].matched) found.emplace_back((*it)[1], (*it)[2]);
  return found;
}

}  // namespace

TorchPreloads parse_torch_preloads(std::string_view init_py) {
  TorchPreloads preloads;
  const std::string_view load = function_body(init_py, "_load_global_deps");
  const std::string_view list = function_body(init_py, "_preload_cuda_deps");
  const auto failed = std::min(load.find("except OSError"), load.size());
  const std::string_view loaded_part = load.substr(0, failed), failed_part = load.substr(failed);

  preloads.after = patterns_in(loaded_part);
  if (loaded_part.find("_preload_cuda_deps()") != std::string_view::npos) preloads.after = patterns_in(list);
  preloads.on_failure = patterns_in(failed_part);
  if (preloads.on_failure.empty() && failed_part.find("_preload_cuda_deps(") != std::string_view::npos)
    preloads.on_failure = patterns_in(list);

  const std::string_view before = "if \"", behind = "\" not in _maps";
  const auto end = loaded_part.find(behind);
  if (end != std::string_view::npos) {
    const auto start = loaded_part.rfind(before, end);
    if (start != std::string_view::npos)
      preloads.condition = loaded_part.substr(start + before.size(), end - start - before.size());
  }
  return preloads;
}

}  // namespace scankit
