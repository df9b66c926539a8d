// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/elf/mangling.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit::torch_abi {
namespace {

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

// nvcc names the anonymous namespace of a file "_GLOBAL__N__<hash>_<file>_cu_<hash>_<n>": another one in
// every build.
bool has_build_hash(std::string_view name) {
  if (name.find("_GLOBAL__N") != std::string_view::npos) return true;
  for (auto at = name.find("_cu_"); at != std::string_view::npos; at = name.find("_cu_", at + 1)) {
    const std::string_view hash = name.substr(at + 4, 8);
    if (hash.size() == 8 && std::ranges::all_of(hash, is_hex)) return true;
  }
  return false;
}

// A lambda's type: "UlvE_", "UlT_E0_" (Itanium C++ ABI, "Closure types").
bool has_lambda(std::string_view name) {
  for (auto at = name.find("Ul"); at != std::string_view::npos; at = name.find("Ul", at + 1)) {
    const auto end = name.find("E_", at), numbered = name.find('E', at);
    if (end != std::string_view::npos) return true;
    if (numbered != std::string_view::npos && numbered + 1 < name.size() &&
        std::isdigit(static_cast<unsigned char>(name[numbered + 1])) != 0)
      return true;
  }
  return false;
}

// Entities local to a function (_ZZ, and _ZGVZ for their guards), and the type information of pointers and
// functions (Itanium C++ ABI, "RTTI"): compilers emit them in every file that uses them, so whether torch
// exports one depends on its build and not on the release.
bool is_local_or_function_type(std::string_view name) {
  constexpr std::array<std::string_view, 8> kStarts{"_ZZ",    "_ZGVZ", "_ZTIPF", "_ZTIF",
                                                    "_ZTSPF", "_ZTSF", "_ZTIP",  "_ZTSP"};
  return std::ranges::any_of(kStarts, [&](std::string_view start) { return name.starts_with(start); });
}

}  // namespace

bool tells_a_release(std::string_view name, std::string_view version) {
  if (elf::symbol_owner(name, version) != "torch") return false;
  // Both come from nvcc: the host's stub of each kernel, and its own helpers.
  if (name.find("__device_stub__") != std::string_view::npos || name.find("__nv_") != std::string_view::npos)
    return false;
  return !has_build_hash(name) && !has_lambda(name) && !is_local_or_function_type(name);
}

bool is_stable_c_name(std::string_view name) {
  return name.starts_with("aoti_torch_") || name.starts_with("torch_");
}

// The templates that libstdc++ keeps twice, in std and in std::__cxx11 (its manual, "Dual ABI"); Ss, Sb and
// Sd to So are the short forms of the old strings, and the new ones are always spelled.
bool differs_with_string_abi(std::string_view name) {
  constexpr std::array<std::string_view, 8> kMarks{
      "cxx11",          "Ss", "SbI", "basic_string", "St4listI", "basic_ostringstream", "basic_istringstream",
      "filesystem4path"};
  return std::ranges::any_of(
      kMarks, [&](std::string_view mark) { return name.find(mark) != std::string_view::npos; });
}

namespace {

constexpr std::size_t kLongestInvocation =
    32;  // lines; what is longer is not an invocation but a broken text

// The position of the parenthesis that closes the one at `open`. Parentheses in strings and comments count,
// too: kLongestInvocation bounds what such a mistake can add.
std::size_t closing(std::string_view source, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < source.size(); ++at) {
    if (source[at] == '(') ++depth;
    if (source[at] == ')' && --depth == 0) return at;
  }
  return source.size();
}

// Behind the name of a macro that begins before `at`: its parenthesis, or npos.
std::size_t opening(std::string_view source, std::size_t at) {
  const auto is_name = [](char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  while (at < source.size() && is_name(source[at])) ++at;
  while (at < source.size() && std::isspace(static_cast<unsigned char>(source[at])) != 0) ++at;
  return at < source.size() && source[at] == '(' ? at : std::string_view::npos;
}

}  // namespace

std::string torch_header(std::string_view path) {
  constexpr std::string_view kFolder = "/include/";
  constexpr std::array<std::string_view, 4> kOfTorch{"ATen/", "c10/", "torch/", "caffe2/"};
  if (const auto at = path.rfind(kFolder); at != std::string_view::npos)
    path.remove_prefix(at + kFolder.size());
  const bool ours = std::ranges::any_of(kOfTorch, [&](auto start) { return path.starts_with(start); });
  return ours ? std::string(path) : "";
}

std::string header_line(std::string_view text) {
  if (!text.starts_with(kAssertionMark)) return "";
  text.remove_prefix(kAssertionMark.size());
  const auto quote = text.find("\":");
  if (quote == std::string_view::npos || text.substr(0, quote).find("/include/") == std::string_view::npos)
    return "";
  const std::string header = torch_header(text.substr(0, quote));
  const std::string_view rest = text.substr(quote + 2);
  const auto digits = rest.substr(0, rest.find_first_not_of("0123456789"));
  if (header.empty() || digits.empty() || digits.size() > 6) return "";
  return header + ":" + std::string(digits);
}

std::set<unsigned> assertion_lines(std::string_view source) {
  // Every macro with ASSERT in its name counts. A line too many only makes the answer wider.
  constexpr std::string_view kWord = "ASSERT";
  std::set<unsigned> lines;
  unsigned line = 1;
  std::size_t counted = 0;
  for (auto at = source.find(kWord); at != std::string_view::npos; at = source.find(kWord, at + 1)) {
    const auto open = opening(source, at);
    if (open == std::string_view::npos) continue;
    // Counts from the last place on, so that the whole file is walked once.
    line += static_cast<unsigned>(std::ranges::count(source.substr(counted, at - counted), '\n'));
    counted = at;
    const auto inside = source.substr(at, closing(source, open) - at);
    const auto more =
        std::min<std::size_t>(static_cast<std::size_t>(std::ranges::count(inside, '\n')), kLongestInvocation);
    for (unsigned i = 0; i <= more; ++i) lines.insert(line + i);
  }
  return lines;
}

std::uint64_t releases_with_lines(const SymbolIndex& table, const std::vector<std::string>& lines) {
  std::uint64_t fits = ~std::uint64_t{0};
  for (const std::string& line : lines) {
    const std::string header = line.substr(0, line.rfind(':') + 1);
    if (const auto known = table.find(line))
      fits &= known->exact;
    else if (!table.with_prefix(header, 1).empty())
      fits = 0;  // a header that we know, and an assertion that no release has there
  }
  return fits;
}

}  // namespace scankit::torch_abi
