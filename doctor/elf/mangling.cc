// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/mangling.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csetjmp>
#include <cstddef>
#include <optional>

#include "doctor/base/text.h"

// libiberty's demangler behind __cxa_demangle, which libstdc++.so keeps to itself: CMakeLists.txt takes its
// object file out of libstdc++.a. 0 is success (libiberty, cp-demangle.c).
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __gcclibcxx_demangle_callback(const char* mangled,
                                             void (*callback)(const char*, std::size_t, void*), void* opaque);

namespace scankit::elf {
namespace {

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

// Skips "_Z" and the codes of special names (Itanium C++ ABI, "Special Names"): virtual tables, VTTs, type
// information and its name (TV, TT, TI, TS), thread-local wrappers (TH, TW), guards (GV), temporaries (GR),
// transactional clones (GTt), local entities (Z), internal linkage (L) and thunks with offsets (Th, Tv).
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
// Names of C functions by their prefix. Sources: CPython's Include/ (every
// public name starts with Py or _Py), torch's csrc (THP*, aoti_torch_*,
// torch_*), NVIDIA's API references, glibc and the Itanium C++ ABI's runtime.
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

// CUDA's libraries name their symbol versions after their own sonames: "libcudart.so.12".
std::string_view owner_of_version(std::string_view version) {
  if (version.starts_with("GLIBCXX_") || version.starts_with("CXXABI_") || version.starts_with("GCC_"))
    return "libstdc++";
  if (version.starts_with("GLIBC_")) return "libc";
  for (std::string_view lib : {"libcu", "libnv", "libnccl"})
    if (version.starts_with(lib)) return "cuda";
  return "";
}

constexpr std::array<std::string_view, 6> kTorchScopes{"c10", "at", "torch", "caffe2", "c10d", "THPVariable"};

// As source names with their lengths, at any depth: template arguments count too.
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

// Ends where reading needs a grammar: at template arguments, operators and substitutions.
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

namespace {

constexpr std::size_t kNameLimit = 16u << 10, kTextLimit = 64u << 10;

struct Sink {
  std::string text;
  std::jmp_buf too_long;
};

// Substitutions let a name of 200 bytes stand for gigabytes of text; only leaving the demangler ends that.
// It is C without anything to clean up, so a jump out of it is sound. Neither this function nor
// demangle_bounded() may own an object with a destructor.
void take(const char* piece, std::size_t length, void* opaque) {
  auto* sink = static_cast<Sink*>(opaque);
  if (sink->text.size() + length > kTextLimit) std::longjmp(sink->too_long, 1);
  sink->text.append(piece, length);
}

// A function of its own because the frame of setjmp must outlive the jump. `sink` belongs to the caller, so
// its contents are defined after the jump, which those of a changed local variable would not be.
bool demangle_bounded(const char* name, Sink& sink) {
  if (setjmp(sink.too_long) != 0) return false;
  return __gcclibcxx_demangle_callback(name, take, &sink) == 0;
}

}  // namespace

std::string demangle(const std::string& name) {
  if (!name.starts_with("_Z") || name.size() > kNameLimit) return name;
  Sink sink;
  if (!demangle_bounded(name.c_str(), sink) || sink.text.empty()) return name;
  return sink.text;
}

namespace {

constexpr std::string_view kOldString = "std::string";
constexpr std::string_view kLongString =
    "std::basic_string<char, std::char_traits<char>, std::allocator<char> >";

bool is_word_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void erase_all(std::string& text, std::string_view what) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.erase(at, what.size());
}

}  // namespace

// The text with every string written as the old ABI's long form. A demangler prints "std::string" for the
// mangled "Ss" but the long form for the new one, so one spelling has to be chosen.
std::string without_string_abi(std::string text) {
  erase_all(text, "__cxx11::");
  erase_all(text, "[abi:cxx11]");
  for (auto at = text.find(kOldString); at != std::string::npos; at = text.find(kOldString, at + 1)) {
    const auto end = at + kOldString.size();
    if (end < text.size() && is_word_character(text[end])) continue;
    if (text.size() > (1u << 20)) break;  // each replacement makes it longer
    text.replace(at, kOldString.size(), kLongString);
  }
  return text;
}

StringAbi string_abi_in(const std::string& demangled) {
  if (demangled.find("__cxx11") != std::string::npos || demangled.find("[abi:cxx11]") != std::string::npos)
    return StringAbi::New;
  if (demangled.find("std::basic_string<") != std::string::npos) return StringAbi::Old;
  for (auto at = demangled.find(kOldString); at != std::string::npos;
       at = demangled.find(kOldString, at + 1)) {
    const auto end = at + kOldString.size();
    if (end >= demangled.size() || !is_word_character(demangled[end])) return StringAbi::Old;
  }
  return StringAbi::Neither;
}

bool differ_only_in_string_abi(const std::string& a, const std::string& b) {
  if (a == b) return false;
  return without_string_abi(a) == without_string_abi(b);
}

// Brackets are counted so that parameters inside template arguments do not end the name early.
std::string qualified_name(const std::string& demangled) {
  const std::string_view text = demangled;
  constexpr std::string_view kAnonymous = "(anonymous namespace)", kOperator = "operator",
                             kCall = "operator()";
  int angle = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
    } else if (rest.starts_with(kOperator)) {
      i += (rest.starts_with(kCall) ? kCall.size() : kOperator.size()) - 1;
      while (i + 1 < text.size() && (text[i + 1] == '<' || text[i + 1] == '>' || text[i + 1] == '=')) ++i;
    } else if (text[i] == '<') {
      ++angle;
    } else if (text[i] == '>') {
      --angle;
    } else if (angle == 0 && text[i] == ' ') {
      start = i + 1;  // behind the result type of a template function
    } else if (angle == 0 && text[i] == '(') {
      return demangled.substr(start, i - start);
    }
  }
  return demangled.substr(start);
}

}  // namespace scankit::elf
