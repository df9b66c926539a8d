// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <fmt/core.h>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/selftest/selftest.h"

namespace scankit::selftest {
namespace {

constexpr const char* kPackage = "scankit_selftest_package";

// A file that the interpreter imports; every fault is a change to it.
HandmadeModule good() { return {.module = kSelftestModule}; }

// Writes the module where and under the name that the interpreter looks for.
Result<void> put(const Scratch& scratch, std::string_view bytes) {
  return write_file_atomically(scratch.site + "/" + kSelftestModule + scratch.suffix, bytes);
}
Result<void> put(const Scratch& scratch, const HandmadeModule& file) {
  return put(scratch, module_bytes(file));
}

Result<void> put_package(const Scratch& scratch, const std::string& code) {
  SCANKIT_CHECK(make_directories(scratch.site + "/" + kPackage));
  return write_file_atomically(scratch.site + "/" + kPackage + "/__init__.py", code);
}

Result<void> healthy(const Scratch& scratch) { return put(scratch, good()); }

Result<void> truncated(const Scratch& scratch) {
  const std::string bytes = module_bytes(good());
  // 200 bytes end within the program headers, which the ELF header says are longer.
  return put(scratch, std::string_view(bytes).substr(0, 200));  // within the program headers
}

Result<void> empty(const Scratch& scratch) { return put(scratch, std::string_view()); }

Result<void> web_page(const Scratch& scratch) {
  // What curl and wget save for a wrong URL.
  return put(scratch,
             "<!DOCTYPE html>\n<html><head><title>404: Not Found</title></head><body></body></html>\n");
}

Result<void> git_lfs(const Scratch& scratch) {
  // The pointer file of the git-lfs specification, version 1, as it is left by a clone without git-lfs.
  return put(scratch, "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') +
                          "\nsize 43600000\n");
}

Result<void> other_processor(const Scratch& scratch) {
  HandmadeModule file = good();
  file.machine = EM_AARCH64;
  return put(scratch, file);
}

// A name that this Python ignores: the suffix of another minor version is not in importlib's list.
Result<void> other_python(const Scratch& scratch) {
  const std::string suffix = fmt::format(".cpython-3{}-x86_64-linux-gnu.so", scratch.minor == 9 ? 8 : 9);
  return write_file_atomically(scratch.site + "/" + kSelftestModule + suffix, module_bytes(good()));
}

// Python tries the suffix with its own tag before ".abi3.so" in the same directory, so the
// damaged copy wins.
Result<void> stale_copy(const Scratch& scratch) {
  SCANKIT_CHECK(
      write_file_atomically(scratch.site + "/" + kSelftestModule + ".abi3.so", module_bytes(good())));
  return truncated(scratch);
}

// The program in the directory imports the module. Without it, a module that nothing imports would count
// as a typing mistake of the user.
Result<void> not_built(const Scratch& scratch) {
  SCANKIT_CHECK(
      write_file_atomically(scratch.folder + "/program.py", std::string("import ") + kSelftestModule + "\n"));
  return put_package(scratch, fmt::format("import {}\n", kSelftestModule));
}

// The package catches the ImportError, as mamba-ssm and others do: its import succeeds, and the failure
// would show at the first call.
Result<void> hidden_by_package(const Scratch& scratch) {
  SCANKIT_CHECK(put_package(
      scratch, fmt::format("try:\n    import {0}\nexcept ImportError:\n    {0} = None\n", kSelftestModule)));
  return truncated(scratch);
}

Result<void> cuda_runtime(const Scratch& scratch) {
  HandmadeModule file = good();
  file.needed = {"libcudart.so.9.9"};  // of a CUDA that never was, so that it is nowhere
  return put(scratch, file);
}

Result<void> newer_glibc(const Scratch& scratch) {
  HandmadeModule file = good();
  file.needed = {"libc.so.6"};
  // A version node that no glibc defines; the symbol needs no definition, because the loader checks
  // versions first.
  file.names = {{"scankit_selftest_of_the_future", "libc.so.6", "GLIBC_2.999"}};
  return put(scratch, file);
}

Result<void> newer_libstdcxx(const Scratch& scratch) {
  HandmadeModule file = good();
  file.needed = {"libstdc++.so.6"};
  file.names = {{"_ZNSt16scankit_selftestEv", "libstdc++.so.6", "GLIBCXX_3.4.999"}};
  return put(scratch, file);
}

// A name that belongs to no library that scankit knows, so the module itself must have forgotten it.
Result<void> own_function(const Scratch& scratch) {
  HandmadeModule file = good();
  file.names = {{"scankit_selftest_launch_kernel", "", ""}};
  return put(scratch, file);
}

// The file keeps its name, but exports PyInit_ of another module.
Result<void> other_name(const Scratch& scratch) {
  HandmadeModule file = good();
  file.module = "scankit_selftest_renamed";
  return put(scratch, file);
}

Result<void> crash(const Scratch& scratch) {
  HandmadeModule file = good();
  file.start = HandmadeModule::Start::Crashes;
  return put(scratch, file);
}

Result<void> hang(const Scratch& scratch) {
  HandmadeModule file = good();
  file.start = HandmadeModule::Start::Hangs;
  return put(scratch, file);
}

// Every torch has c10::Error, and none has this constructor.
Result<void> other_torch(const Scratch& scratch) {
  HandmadeModule file = good();
  file.needed = {"libc10.so"};
  file.names = {{"_ZN3c105ErrorC1EPKcS2_S2_S2_i", "", ""}};
  return put(scratch, file);
}

// c10::Error(SourceLocation, std::string) in the string ABI that the installed torch does not have. "Ss"
// is the mangled std::string of the old ABI, __cxx11 marks the new one.
Result<void> other_string_abi(const Scratch& scratch) {
  HandmadeModule file = good();
  file.needed = {"libc10.so"};
  file.names = {{scratch.string_abi == "old"
                     ? "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt"
                       "11char_traitsIcESaIcEEE"
                     : "_ZN3c105ErrorC2ENS_14SourceLocationESs",
                 "", ""}};
  return put(scratch, file);
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
const std::vector<SelftestFault>& selftest_faults() {
  static const std::string import_torch = std::string("import torch, ") + kSelftestModule;
  static const std::string import_package = std::string("import ") + kPackage;
  static const std::vector<std::string> brief = {"--timeout", "3"};
  static const std::vector<std::string> files_only = {"--no-import"};  // torch takes seconds to import
  static const std::vector<SelftestFault> faults = {
      {.name = "healthy",
       .planted = std::string(sayable("a module that works: nothing may be named")),
       .plant = healthy},
      {.name = "truncated",
       .planted = std::string(sayable("the file is truncated")),
       .cause = "corrupt_binary",
       .plant = truncated},
      {.name = "empty",
       .planted = std::string(sayable("the file is empty")),
       .cause = "corrupt_binary",
       .plant = empty},
      {.name = "web-page",
       .planted = std::string(sayable("a web page was saved under the module's name")),
       .cause = "corrupt_binary",
       .plant = web_page},
      {.name = "git-lfs",
       .planted = std::string(sayable("git-lfs left its pointer in place of the file")),
       .cause = "corrupt_binary",
       .plant = git_lfs},
      {.name = "hidden",
       .planted = std::string(sayable("the file is truncated, and the package around it swallows the error")),
       .cause = "corrupt_binary",
       .hides = true,
       .import = import_package,
       .plant = hidden_by_package},
      {.name = "stale-copy",
       .planted = std::string(sayable("a truncated copy comes first and hides a good one")),
       .cause = "several_copies",
       .plant = stale_copy},
      {.name = "other-processor",
       .planted = std::string(sayable("the file is built for another processor")),
       .cause = "wrong_machine_arch",
       .plant = other_processor},
      {.name = "other-python",
       .planted = std::string(sayable("the file's name has the tag of another Python")),
       .cause = "python_abi_tag_mismatch",
       .plant = other_python},
      {.name = "other-name",
       .planted = std::string(sayable("the file contains a module with another name")),
       .cause = "variant_name_mismatch",
       .plant = other_name},
      {.name = "not-built",
       .planted = std::string(sayable("a program imports a module that was never built")),
       .cause = "module_not_built",
       .import = import_package,
       .plant = not_built},
      {.name = "cuda-runtime",
       .planted = std::string(sayable("the file needs a CUDA runtime that is not installed")),
       .cause = "missing_cudart",
       .plant = cuda_runtime},
      {.name = "newer-glibc",
       .planted = std::string(sayable("the file needs a newer glibc")),
       .cause = "glibc_too_old",
       .plant = newer_glibc},
      {.name = "newer-libstdc++",
       .planted = std::string(sayable("the file needs a newer libstdc++")),
       .cause = "libstdcxx_too_old",
       .plant = newer_libstdcxx},
      {.name = "own-function",
       .planted = std::string(sayable("the file calls a function of its own that was not linked")),
       .cause = "own_symbol_undefined",
       .plant = own_function},
      {.name = "crash",
       .planted = std::string(sayable("the interpreter dies while it imports the file")),
       .cause = "import_crash",
       .plant = crash},
      {.name = "hang",
       .planted = std::string(sayable("the import hangs")),
       .cause = "import_hang",
       .doctor_options = brief,
       .plant = hang},
      {.name = "other-torch",
       .planted = std::string(sayable("the file calls a function that this torch does not have")),
       .cause = "torch_version_mismatch",
       .needs_torch = true,
       .import = import_torch,
       .doctor_options = files_only,
       .plant = other_torch},
      {.name = "string-abi",
       .planted = std::string(sayable("the file calls torch by the other C++ string ABI")),
       .cause = "abi_cxx11_mismatch",
       .needs_torch = true,
       .import = import_torch,
       .doctor_options = files_only,
       .plant = other_string_abi},
  };
  return faults;
}

// Some faults need a part of the system that may be missing; those are skipped with a
// reason, not counted.
std::string cannot_plant(const SelftestFault& fault, const Snapshot& facts) {
  if (fault.needs_torch && !facts.torch.present()) return say("this Python has no torch");
  if (fault.cause == "glibc_too_old" && facts.libc.value.kind != "glibc")
    return say("this system's C library is not glibc");
  if (fault.cause == "libstdcxx_too_old" && facts.libstdcxx.value.path.empty())
    return say("no libstdc++ was found");
  return "";
}

}  // namespace scankit::selftest
