// SPDX-License-Identifier: Apache-2.0
#include "doctor/torch_abi/names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/elf/mangling.h"

namespace scankit {
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

bool is_local_or_function_type(std::string_view name) {
  constexpr std::array<std::string_view, 8> kStarts{"_ZZ",    "_ZGVZ", "_ZTIPF", "_ZTIF",
                                                    "_ZTSPF", "_ZTSF", "_ZTIP",  "_ZTSP"};
  return std::ranges::any_of(kStarts, [&](std::string_view start) { return name.starts_with(start); });
}

}  // namespace

bool tells_a_release(std::string_view name, std::string_view version) {
  if (symbol_owner(name, version) != "torch") return false;
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

}  // namespace scankit
