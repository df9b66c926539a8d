// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/mangling.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace scankit {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Reads the front of a mangled name by the Itanium C++ ABI, "Mangling": as far as the first thing that is not
// an identifier, which is as far as a question about its owner goes.
class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}
  bool take(std::string_view text) {
    if (!name_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  // <source-name>: its length, then the name.
  std::optional<std::string_view> identifier() {
    std::size_t i = at_, length = 0;
    while (i < name_.size() && is_digit(name_[i]) && length < name_.size())
      length = length * 10 + static_cast<std::size_t>(name_[i++] - '0');
    if (i == at_ || length == 0 || length > name_.size() - i) return std::nullopt;
    at_ = i + length;
    return name_.substr(i, length);
  }
  // <number> and '_' of a thunk's offsets.
  void skip_offset() {
    while (at_ < name_.size() && (is_digit(name_[at_]) || name_[at_] == 'n')) ++at_;
    take("_");
  }
  void skip_qualifiers() {
    while (take("r") || take("V") || take("K") || take("R") || take("O")) {
    }
  }
  std::string_view read() const { return name_.substr(0, at_); }
  std::string_view rest() const { return name_.substr(at_); }

 private:
  std::string_view name_;
  std::size_t at_ = 0;
};

// Past "_Z" and what marks a special name: virtual tables, type information, guards, thunks, local entities.
bool enter(Reader& reader) {
  if (!reader.take("_Z")) return false;
  for (bool again = true; again;) {
    again = false;
    for (std::string_view special : {"TV", "TT", "TI", "TS", "TH", "TW", "GV", "GR", "GTt", "Z", "L"})
      if (reader.take(special)) again = true;
    if (reader.take("Th")) reader.skip_offset(), again = true;
    if (reader.take("Tv")) reader.skip_offset(), reader.skip_offset(), again = true;
  }
  return true;
}

struct Scope {
  std::string name;
  bool nested = false;
};

Scope scope_of(std::string_view name) {
  Reader reader(name);
  if (!enter(reader)) return {};
  const bool nested = reader.take("N");
  if (nested) reader.skip_qualifiers();
  reader.take("L");
  if (reader.take("St")) return {"std", true};
  for (std::string_view abbreviation :
       {"Sa", "Sb", "Ss", "Si", "So", "Sd"})  // all of them are classes of std
    if (reader.take(abbreviation)) return {"std", true};
  const auto first = reader.identifier();
  if (!first) return {};
  // A variable or a type of the global namespace stands alone; only a nested name has a scope.
  return {nested ? std::string(*first) : "", nested};
}

struct Rule {
  std::string_view start, owner;
};
// Names of C functions by their prefix. Sources: CPython's Include/ (every public name starts with Py or
// _Py), torch's csrc (THP*, aoti_torch_*, torch_*), NVIDIA's API references, glibc and the Itanium C++ ABI's
// runtime.
constexpr std::array kCNames{Rule{"PyInit_", "own"},        Rule{"Py", "python"},
                             Rule{"_Py", "python"},         Rule{"THP", "torch"},
                             Rule{"THC", "torch"},          Rule{"aoti_torch_", "torch"},
                             Rule{"torch_", "torch"},       Rule{"cudnn", "cuda"},
                             Rule{"cuda", "cuda"},          Rule{"__cuda", "cuda"},
                             Rule{"cublas", "cuda"},        Rule{"cufft", "cuda"},
                             Rule{"curand", "cuda"},        Rule{"cusparse", "cuda"},
                             Rule{"cusolver", "cuda"},      Rule{"cufile", "cuda"},
                             Rule{"cuFile", "cuda"},        Rule{"cupti", "cuda"},
                             Rule{"nccl", "cuda"},          Rule{"nvml", "cuda"},
                             Rule{"nvrtc", "cuda"},         Rule{"nvtx", "cuda"},
                             Rule{"nvJitLink", "cuda"},     Rule{"__nvJitLink", "cuda"},
                             Rule{"nvshmem", "cuda"},       Rule{"__cxa_", "libstdc++"},
                             Rule{"__gxx_", "libstdc++"},   Rule{"__dynamic_cast", "libstdc++"},
                             Rule{"_Unwind_", "libstdc++"}, Rule{"__libc_", "libc"},
                             Rule{"__isoc", "libc"},        Rule{"pthread_", "libc"},
                             Rule{"dlopen", "libc"},        Rule{"dlsym", "libc"},
                             Rule{"dlclose", "libc"},       Rule{"dlerror", "libc"}};

std::string_view owner_of_version(std::string_view version) {
  if (version.starts_with("GLIBCXX_") || version.starts_with("CXXABI_") || version.starts_with("GCC_"))
    return "libstdc++";
  if (version.starts_with("GLIBC_")) return "libc";
  for (std::string_view lib : {"libcu", "libnv", "libnccl"})
    if (version.starts_with(lib)) return "cuda";
  return "";
}

constexpr std::array<std::string_view, 6> kTorchScopes{"c10", "at", "torch", "caffe2", "c10d", "THPVariable"};

bool names_torch_type(std::string_view name) {
  return std::ranges::any_of(
      std::array<std::string_view, 5>{"N2at", "N3c10", "N5torch", "NS_2at", "6caffe2"},
      [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// A driver function: "cu" and a capital, as in cuLaunchKernel.
bool is_driver_name(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && std::isupper(static_cast<unsigned char>(name[2])) != 0;
}

}  // namespace

std::string outermost_scope(std::string_view name) { return scope_of(name).name; }

std::string symbol_owner(std::string_view name, std::string_view version) {
  if (const auto owner = owner_of_version(version); !owner.empty()) return std::string(owner);
  if (!name.starts_with("_Z")) {
    for (const Rule& rule : kCNames)
      if (name.starts_with(rule.start)) return std::string(rule.owner);
    return is_driver_name(name) ? "cuda" : "own";
  }
  const std::string scope = outermost_scope(name);
  if (std::ranges::find(kTorchScopes, scope) != kTorchScopes.end()) return "torch";
  // libtorch_python exports the casters and the containers of its own types; nobody else could.
  if ((scope == "pybind11" || scope == "std") && names_torch_type(name)) return "torch";
  if (scope == "std" || scope == "__cxxabiv1" || scope == "__gnu_cxx") return "libstdc++";
  // operator new and delete of the global namespace.
  for (std::string_view op : {"_Znw", "_Zna", "_Zdl", "_Zda"})
    if (name.starts_with(op)) return "libstdc++";
  if (name.starts_with("_Z16THPVariable_")) return "torch";
  return "own";
}

std::string overload_prefix(std::string_view name) {
  Reader reader(name);
  if (!enter(reader)) return "";
  const bool nested = reader.take("N");
  if (nested) reader.skip_qualifiers();
  reader.take("L");
  reader.take("St");
  bool any = false;
  while (reader.identifier()) {
    any = true;
    if (!nested) break;
  }
  if (!any) return "";
  // Constructors and destructors have a letter each where others have a name.
  if (nested)
    for (std::string_view structor : {"C", "D"})
      if (reader.rest().starts_with(structor)) reader.take(structor);
  return std::string(reader.read());
}

}  // namespace scankit
