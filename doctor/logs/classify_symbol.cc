// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/elf/mangling.h"
#include "doctor/logs/classify.h"
#include "doctor/model/examined_files.h"

namespace scankit::logs {
namespace {

// A loader names only the first missing symbol, so a log alone rarely proves more.
Message all_missing() {
  return message("all missing symbols at once: scankit doctor on the machine where it failed");
}

// By the file that misses or should have the symbol: libcu..., libnv... and libnccl, or a directory of an
// nvidia-* wheel.
bool is_nvidia_library(const std::string& file) {
  const std::string name = path_basename(file);
  for (const char* start : {"libcu", "libnv", "libnccl"})
    if (name.starts_with(start)) return true;
  return file.find("/nvidia/") != std::string::npos;
}

// The string ABI that a name shows. A name that the log cut short ("..." at its end) cannot be
// demangled, but its spelling may still show it: "__cxx11" of the new ABI, or the "Ss" of the old one
// after c10::SourceLocation.
elf::StringAbi string_abi_of(const std::string& mangled, const std::string& demangled) {
  if (demangled != mangled) return elf::string_abi_in(demangled);
  if (mangled.find("__cxx11") != std::string::npos) return elf::StringAbi::New;
  return mangled.find("LocationESs") != std::string::npos ? elf::StringAbi::Old : elf::StringAbi::Neither;
}

// A name of torch that the installed torch does not export. If the name contains a string, the string ABI
// is the nearer explanation, and the release the alternative.
Judged torch_symbol(const std::string& readable, elf::StringAbi strings) {
  if (strings == elf::StringAbi::Neither)
    return {.cause = "torch_version_mismatch",
            .sure = "likely",
            .meaning =
                message("torch does not export {}: the module was built against another release", readable),
            .settles = all_missing(),
            .alternatives = {"build_isolation_wrong_torch", "several_copies"},
            .more = {}};
  const bool is_new = strings == elf::StringAbi::New;
  return {.cause = "abi_cxx11_mismatch",
          .sure = "likely",
          .meaning = is_new
                         ? message("torch does not export {}, which uses the CXX11 ABI: torch was built with "
                                   "the pre-CXX11 ABI",
                                   readable)
                         : message("torch does not export {}, which uses the pre-CXX11 ABI: torch was built "
                                   "with the CXX11 ABI",
                                   readable),
          .settles = message("{}; or torch._C._GLIBCXX_USE_CXX11_ABI", all_missing()),
          .alternatives = {"torch_version_mismatch"},
          .more = {{"string_abi", is_new ? "new" : "old"}}};
}

// A name of CUDA: either the driver is too old for the driver API that is called, or another copy of a
// CUDA library was loaded than the one that was meant.
Judged cuda_symbol(const std::string& name, const std::string& version, bool torch_needs_it) {
  // Driver functions are cu and a capital letter; the runtime's and the libraries' names are longer words.
  const bool driver = name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
  if (driver)
    return {.cause = "driver_too_old",
            .sure = "likely",
            .meaning = message("the driver's libcuda has no {}", name),
            .settles = message("the driver's version"),
            .alternatives = {"ld_library_path_shadow"},
            .more = {}};
  // What torch's own libraries need, and NCCL, which only torch's wheels bring, were right when torch was
  // installed.
  if (torch_needs_it || name.starts_with("nccl"))
    return {
        .cause = "cuda_wheels_mismatch",
        .sure = "likely",
        .meaning = message("the loaded copy of the CUDA library has no {}, which torch was built with", name),
        .settles = message("pip list of nvidia-*, compared with torch's metadata; and $LD_LIBRARY_PATH"),
        .alternatives = {"ld_library_path_shadow"},
        .more = {}};
  return {.cause = "ld_library_path_shadow",
          .sure = "likely",
          .meaning = version.empty()
                         ? message("the loaded copy of the CUDA library has no {}: a different copy came "
                                   "first on the search path",
                                   name)
                         : message("the loaded copy of {} has no {}: a different copy came first on the "
                                   "search path",
                                   version, name),
          .settles = message("LD_DEBUG=libs of the same import, and $LD_LIBRARY_PATH"),
          .alternatives = {"cuda_wheels_mismatch"},
          .more = {}};
}

// A version node that the C or C++ library does not define: the library is older than the one that
// was linked with.
Judged floor_of(const std::string& version, const Message& what) {
  const bool glibc = version.starts_with("GLIBC_");
  for (const auto& [node, library] : {std::pair{"GOMP_", "libgomp"},
                                      {"OMP_", "libgomp"},
                                      {"GCC_", "libgcc_s"},
                                      {"GFORTRAN_", "libgfortran"}})
    if (version.starts_with(node)) {
      Judged judged =
          verdict("libstdcxx_too_old", "certain",
                  message("{} needs {}, which the loaded {} does not have", what, version, library));
      judged.more["version"] = version;
      return judged;
    }
  return {.cause = glibc ? "glibc_too_old" : "libstdcxx_too_old",
          .sure = "certain",
          .meaning = glibc
                         ? message("{} needs {}, which the loaded C library does not have", what, version)
                         : message("{} needs {}, which the loaded C++ library does not have", what, version),
          .settles = "",
          .alternatives = {},
          .more = {{"version", version}}};
}

// A name that neither torch nor CUDA has, by the library that it would have to come from.
Judged other_symbol(const std::string& owner, const std::string& symbol, const std::string& readable) {
  if (owner == "libstdc++")
    return {.cause = "libstdcxx_too_old",
            .sure = "likely",
            .meaning = message("the loaded C++ library has no {}", readable),
            .settles = message("which libstdc++.so.6 the process loads: /proc/self/maps"),
            .alternatives = {},
            .more = {}};
  if (owner == "python")
    return {.cause = "python_abi_tag_mismatch",
            .sure = "likely",
            .meaning = message("this interpreter has no {}: the module was built for another Python", symbol),
            .settles = message("the version of the interpreter, and the tag in the file's name"),
            .alternatives = {},
            .more = {}};
  if (owner == "libc")
    return {.cause = "glibc_too_old",
            .sure = "possible",
            .meaning = message("the loaded C library has no {}", symbol),
            .settles = message("the version of glibc"),
            .alternatives = {},
            .more = {}};
  return {.cause = "own_symbol_undefined",
          .sure = "likely",
          .meaning = message("{} is not a symbol of torch, Python or CUDA: the module lacks a function of "
                             "its own",
                             readable),
          .settles = message("whether the sources of the module define it"),
          .alternatives = {"torch_version_mismatch"},
          .more = {}};
}

// Every torch of an index for Python 3.8 and older has the old string ABI: where a module that uses that one does not
// find its symbol, the release is what differs.
bool is_of_an_old_python(const std::string& file) {
  for (const char* python :
       {"python3.6/", "python3.7/", "python3.8/", "cpython-36m-", "cpython-37m-", "cpython-38-"})
    if (file.find(python) != std::string::npos) return true;
  return false;
}

// The string ABI of the name, where it may be what differs.
elf::StringAbi strings_that_tell(const std::string& symbol, const std::string& readable,
                                 const std::string& file) {
  const elf::StringAbi abi = symbol.empty() ? elf::string_abi_in(readable) : string_abi_of(symbol, readable);
  const bool old = abi == elf::StringAbi::Old;
  // torch 2.1 replaced c10::variant by std::variant: most torches that lack the name are newer than the module.
  const bool of_old_torch = readable.find("c10::variant<") != std::string::npos;
  if (is_of_one_spelling(symbol) || of_old_torch ||
      (old && (is_of_an_old_python(file) ||
               (readable != symbol && !symbol.empty() && is_of_no_known_release(symbol)))))
    return elf::StringAbi::Neither;
  return abi;
}

// Fortran's and C's names of BLAS and LAPACK: a precision, and what the routine does.
bool is_of_linear_algebra(std::string_view symbol) {
  if (symbol.starts_with("cblas_") || symbol.starts_with("LAPACKE_")) return true;
  if (symbol.size() < 5 || symbol.size() > 9 ||
      std::string_view("sdczi").find(symbol[0]) == std::string_view::npos)
    return false;
  const std::string_view rest = symbol.substr(1);
  return starts_with_any(rest, {"ge", "sy", "he", "po", "tr", "or", "un", "dot", "axpy", "scal", "copy",
                                "nrm2", "amax", "lacpy", "stedc"}) &&
         std::ranges::all_of(
             rest, [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '2' || c == '3'; });
}

// A name that torch's own libraries need, from BLAS or from each other.
Judged torch_own_symbol(const std::string& symbol, const std::string& readable, const std::string& file) {
  if (is_of_linear_algebra(symbol))
    return verdict(
        "torch_incomplete", "likely",
        message("torch needs {}, a function of BLAS or LAPACK, whose library it does not find", symbol),
        message("the files of torch/lib compared with torch's RECORD"));
  return verdict("torch_incomplete", "likely",
                 message("torch's own libraries do not match: {} needs {}", path_basename(file), readable),
                 message("the files of torch/lib compared with torch's RECORD"),
                 {"several_copies", "ld_library_path_shadow"});
}

Judged versioned_symbol(const std::string& version, const std::string& symbol) {
  return verdict("ld_library_path_shadow", "likely",
                 message("the loaded copy of the library that defines {} has no {}: a different copy came "
                         "first on the search path",
                         version, symbol),
                 message("LD_DEBUG=libs of the same import, and $LD_LIBRARY_PATH"), {"own_symbol_undefined"});
}

}  // namespace

// Decides by the name of a symbol that could not be resolved. Special cases come first, then the
// owner of the name.
Judged judge_symbol(const Captures& captures) {
  std::string symbol = capture(captures, "symbol");
  const std::string version = capture(captures, "version"), file = capture(captures, "file");
  const std::string written = capture(captures, "demangled");  // a linker writes the readable form
  // The dots with which a log shortens a name do not belong to it, nor the asterisks with which Markdown sets a
  // line in bold; those within it were underscores, which Markdown takes for emphasis.
  while (symbol.ends_with('.') || symbol.ends_with('*')) symbol.pop_back();
  if (symbol.starts_with("**")) symbol.erase(0, 2);
  std::ranges::replace(symbol, '*', '_');
  const std::string readable = written.empty() ? elf::demangle(symbol) : written;
  Judged judged;
  // A symbol with a version node needs no guess: the node names its library.
  if (version.starts_with("GLIBC_") || version.starts_with("GLIBCXX_") || version.starts_with("CXXABI_"))
    return floor_of(version, readable);
  std::string owner = elf::symbol_owner(symbol, version);
  // symbol_owner() expects mangled names; of a readable one, only the namespace is known.
  if (!written.empty())
    owner = written.starts_with("at::") || written.starts_with("c10::") || written.starts_with("torch::")
                ? "torch"
                : "own";
  // The variable class of torch's Python bindings, exported by libtorch_python. Importing torch
  // loads that library.
  if (symbol == "THPVariableClass" || symbol == "THPVariable_Class")
    judged = {.cause = "torch_not_imported_first",
              .sure = "likely",
              .meaning = message("torch's Python library is not loaded in the process yet"),
              .settles = message("the same import after `import torch`"),
              .alternatives = {"torch_version_mismatch"},
              .more = {}};
  else if (is_torch_library(file) && (owner == "torch" || is_of_linear_algebra(symbol)))
    judged = torch_own_symbol(symbol, readable, file);
  else if (owner == "torch")
    judged = torch_symbol(readable, strings_that_tell(symbol, readable, file));
  else if (owner == "cuda" || (owner == "own" && is_nvidia_library(file)) || is_torch_library(file))
    judged = cuda_symbol(symbol, version, is_torch_library(file));
  // A version node belongs to the library that should have the name.
  else if (owner == "own" && !version.empty())
    judged = versioned_symbol(version, symbol);
  else
    judged = other_symbol(owner, symbol, readable);
  // A linker names whatever a program forgot to link, too: most often that is the fault of the program's build.
  if (!written.empty() && judged.cause == "own_symbol_undefined") judged.cause = "";
  // A name that the log cut short is in no table of exports.
  if (owner == "torch" && symbol == capture(captures, "symbol") && !symbol.empty() && !is_torch_library(file))
    add_exporters(symbol, judged);
  judged.more["demangled"] = readable;
  judged.more["owner"] = owner;
  return judged;
}

// Decides by a version node: those of the C and C++ compilers' libraries are "too old", all others
// are a wrong copy.
Judged judge_version(const Captures& captures) {
  const std::string version = capture(captures, "version"), needed_by = capture(captures, "needed_by");
  const Message who = needed_by.empty() ? message("a library") : Message(path_basename(needed_by));
  if (is_torch_library(needed_by) && is_nvidia_library(version))
    return cuda_symbol(capture(captures, "symbol"), version, true);
  for (const char* node : {"GLIBC_", "GLIBCXX_", "CXXABI_", "GCC_", "GOMP_", "OMP_", "GFORTRAN_"})
    if (version.starts_with(node)) return floor_of(version, who);
  return {.cause = "ld_library_path_shadow",
          .sure = "likely",
          .meaning = message("{} needs {}, and a different copy of that library was loaded", who, version),
          .settles = message("LD_DEBUG=libs of the same import, and $LD_LIBRARY_PATH"),
          .alternatives = {"cuda_wheels_mismatch", "missing_cudart"},
          .more = {}};
}

}  // namespace scankit::logs
