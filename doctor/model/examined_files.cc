// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/examined_files.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "doctor/base/message.h"
#include "doctor/base/say.h"

namespace scankit {

bool is_torch_library(const std::string& path) {
  // Other projects' libraries are named libtorch_..., too: libtorch_ccl.so of Intel's oneCCL, libtorch_npu.so.
  constexpr std::array<std::string_view, 12> kStarts{
      "libtorch.so",          "libtorch_cpu", "libtorch_cuda", "libtorch_python",
      "libtorch_global_deps", "libtorch_hip", "libtorch_xpu",  "libtorch_nvshmem",
      "libtorchbind",         "libc10",       "libcaffe2",     "libshm.so"};
  const std::string name = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(kStarts, [&](std::string_view start) { return name.starts_with(start); });
}

namespace {

std::string unknown_built_for_sentence(const BuiltFor& built_for) {
  if (built_for.torch_names == 0 && built_for.unknown_names == 0) return say("it uses no torch symbol");
  if (built_for.releases.empty()) return say("its torch release is unknown: {}", built_for.why_not_narrower);
  if (built_for.stable_abi)
    return say("it needs only torch's stable C interface, which every known release since {} exports",
               built_for.releases.front());
  return say("built for any torch from {} to {}: {}", built_for.releases.front(), built_for.releases.back(),
             built_for.why_not_narrower);
}

std::string abi_words(const std::string& abi) {
  if (abi == "old") return say("pre-CXX11 ABI");
  return abi == "new" ? say("CXX11 ABI") : "";
}

}  // namespace

Message torch_words(const BuiltFor& built_for) {
  if (!built_for.dated) return "";
  const std::string first = built_for.torch_min.value_or(""), last = built_for.torch_max.value_or("");
  if (built_for.between_known_releases)
    return message("a torch between {} and {} that is neither (a nightly, vendor or modified build)", first,
                   last);
  if (built_for.stable_abi && last.empty())
    return message("torch's stable C interface of {} or newer", first);
  if (first.empty()) return message("torch {} or older", last);
  if (last.empty()) return message("torch {} or newer", first);
  return first == last ? message("torch {}", first) : message("torch {} to {}", first, last);
}

std::string torch_minor(const std::string& version) {
  const auto dot = version.find('.');
  if (dot == std::string::npos || dot == 0) return "";
  const auto end = std::min(version.find_first_not_of("0123456789", dot + 1), version.size());
  return end == dot + 1 ? "" : version.substr(0, end);
}

std::string built_for_sentence(const BuiltFor& built_for, const std::string& installed) {
  if (built_for.file.empty()) return "";
  const Message range = torch_words(built_for);
  const std::string minor = torch_minor(installed);
  if (range.empty()) return unknown_built_for_sentence(built_for);
  const std::string abi = abi_words(built_for.string_abi);
  if (abi.empty() && minor.empty()) return say("built for {}", range);
  if (abi.empty()) return say("built for {}; {} is installed", range, minor);
  if (minor.empty()) return say("built for {}, {}", range, abi);
  return say("built for {}, {}; {} is installed", range, abi, minor);
}

namespace {

template <std::size_t N>
bool starts_with_one(std::string_view text, const std::array<std::string_view, N>& prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Whose absence has a name in the catalogue. Another library
// (libGL, libavutil) is said in full, uncatalogued.
std::string cause_of_library(const std::string& soname) {
  constexpr std::array<std::string_view, 9> kCuda{"libcudart.so",   "libcublas",       "libcusparse.so",
                                                  "libcusolver.so", "libcufft.so",     "libcurand.so",
                                                  "libnvrtc.so",    "libnvJitLink.so", "libcupti.so"};
  if (is_torch_library(soname)) return "torch_version_mismatch";
  if (starts_with_one(soname, kCuda)) return "missing_cudart";
  return soname.starts_with("libcuda.so") ? "no_driver_libcuda" : "";
}

AuditRow library_row(const AuditedFile& file) {
  const auto& all = file.missing_libraries;
  const auto known = std::ranges::find_if(
      all, [](const AuditedLibrary& library) { return !cause_of_library(library.soname).empty(); });
  const auto first = known == all.end() ? all.begin() : known;
  const std::string needed_by = base_name(first->needed_by);
  return {AuditVerdict::Fails, cause_of_library(first->soname),
          all.size() == 1
              ? message("the loader does not find {}, which {} needs", first->soname, needed_by)
              : message("the loader does not find {}, which {} needs, and {} more libraries are missing",
                        first->soname, needed_by, all.size() - 1),
          "missing_libraries/" + std::to_string(first - all.begin()) + "/soname", first->soname};
}

AuditRow version_row(const AuditedFile& file) {
  const AuditedVersion& first = file.unmet_versions.front();
  const std::size_t more = file.unmet_versions.size() - 1;
  const std::string needed_by = base_name(first.needed_by);
  std::string cause;
  if (first.version.starts_with("GLIBC_")) cause = "glibc_too_old";
  if (first.version.starts_with("GLIBCXX_") || first.version.starts_with("CXXABI_"))
    cause = "libstdcxx_too_old";
  return {
      AuditVerdict::Fails, cause,
      more == 0
          ? message("{} needs version {} of {}, which does not define it", needed_by, first.version,
                    first.library)
          : message("{} needs version {} of {}, which does not define it, and {} more versions are missing",
                    needed_by, first.version, first.library, more),
      "unmet_versions/0/version", first.version};
}

AuditRow symbol_row(const AuditedFile& file) {
  const auto& all = file.missing_symbols;
  const auto rank = [](const AuditedSymbol& symbol) {
    if (symbol.owner == "torch") return symbol.flipped_exported_by.empty() ? 0 : 1;
    return symbol.owner == "python" ? 2 : 3;
  };
  const auto first = std::ranges::min_element(all, {}, rank);
  constexpr std::array<const char*, 3> kCauses{"torch_version_mismatch", "abi_cxx11_mismatch",
                                               "python_abi_tag_mismatch"};
  const int at = rank(*first);
  const std::string needed_by = base_name(first->needed_by);
  return {AuditVerdict::Fails, at < 3 ? kCauses[static_cast<std::size_t>(at)] : "",
          all.size() == 1
              ? message("no loaded library exports {}, which {} needs", first->name, needed_by)
              : message("no loaded library exports {}, which {} needs, and {} more symbols are missing",
                        first->name, needed_by, all.size() - 1),
          "missing_symbols/" + std::to_string(first - all.begin()) + "/name", first->name};
}

// `known`: whether the C library refuses it.
AuditRow stack_row(const AuditedFile& file, bool known) {
  const std::string& first = file.executable_stack.front();
  if (!known)
    return {
        AuditVerdict::Unknown, "",
        message("{} requests an executable stack, and whether this C library refuses it is not known", first),
        "executable_stack/0", first};
  return {AuditVerdict::Fails, "executable_stack",
          message("{} requests an executable stack, which this glibc refuses", base_name(first)),
          "executable_stack/0", first};
}

AuditRow state_row(const AuditedFile& file) {
  const bool unread = file.file_state == "unreadable" || file.file_state == "vanished";
  return {unread ? AuditVerdict::Unknown : AuditVerdict::Fails, unread ? "" : "corrupt_binary",
          message("the file is {}: {}", file.file_state, file.file_detail), "file_state", file.file_state};
}

// Only running the package would tell whether it loads them: no fault is proven, and no health either.
AuditRow settled_row(const AuditedFile& file) {
  const auto& all = file.settled_by;
  return {AuditVerdict::Unknown, "",
          all.size() == 1
              ? message("it loads only after its package has loaded {}, which the loader does not find by "
                        "itself",
                        all.front())
              : message("it loads only after its package has loaded {} and {} more files, which the loader "
                        "does not find by itself",
                        all.front(), all.size() - 1),
          "settled_by/0", all.front()};
}

}  // namespace

AuditRow judge(const AuditedFile& file, const std::string& machine, std::optional<bool> stack_refused) {
  if (!file.not_for_this_python.empty())
    return {AuditVerdict::NotForThisPython, "", file.not_for_this_python, "not_for_this_python",
            file.not_for_this_python.english()};
  if (file.file_state != "elf") return state_row(file);
  if (!machine.empty() && !file.machine.empty() && file.machine != machine)
    return {AuditVerdict::Fails, "wrong_machine_arch",
            message("it is built for {}, and the interpreter for {}", file.machine, machine), "machine",
            file.machine};
  if (!file.resolved)
    return {AuditVerdict::Unknown, "", file.resolution_note, "resolution_note",
            file.resolution_note.english()};
  if (!file.missing_libraries.empty()) return library_row(file);
  if (!file.unmet_versions.empty()) return version_row(file);
  if (!file.missing_symbols.empty()) return symbol_row(file);
  if (stack_refused != false && !file.executable_stack.empty())
    return stack_row(file, stack_refused.has_value());
  if (!file.settled_by.empty()) return settled_row(file);
  return {AuditVerdict::Loads, "", "", "resolved", "true"};
}

const char* audit_word(AuditVerdict verdict) {
  if (verdict == AuditVerdict::Loads) return "loads";
  if (verdict == AuditVerdict::Fails) return "would-fail";
  return verdict == AuditVerdict::Unknown ? "unknown" : "not-for-this-python";
}

}  // namespace scankit
