// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {
namespace {

// What is wrong with a file in this state, as a sentence; "" if the state is another check's matter.
// `size` includes its unit.
Message file_state_in_words(const std::string& state, const Message& size) {
  if (state == "empty") return message("the file is empty ({})", size);
  if (state == "truncated") return message("the file is truncated ({})", size);
  if (state == "damaged") return message("the file is damaged ({})", size);
  if (state == "html") return message("the file is a web page, not a library ({})", size);
  if (state == "git-lfs")
    return message("the file is a git-lfs pointer, not the library that it points to ({})", size);
  if (state == "windows") return message("the file is built for Windows ({})", size);
  return state == "not-elf" ? message("the file is not an ELF file ({})", size) : "";
}

// The size, and what the probe saw in the file.
Message size_in_words(const Extension& file) {
  return clauses_of({message_n(file.size, "{} byte", "{} bytes", file.size), file.file_detail});
}

CheckResult file_is_whole(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : selected_copies(snapshot)) {
    const Message summary = file_state_in_words(copy->file_state, size_in_words(*copy));
    if (summary.empty()) continue;
    result.findings.push_back(
        {.cause = copy->file_state == "windows" ? Cause::Windows : Cause::CorruptBinary,
         .subject = copy->path,
         .module = copy->module,
         .summary = summary,
         .evidence = {copy.at("file_state", copy->file_state), copy.at("size", std::to_string(copy->size))},
         .fixes = restore_fixes(snapshot, copy,
                                message("download or build the file again and compare its hash"))});
  }
  return result;
}

}  // namespace

extern const Check kFileIsWhole{.id = "file-is-whole",
                                .question = "Is each module file a complete shared library?",
                                .needs = kExtensions | kContents,
                                .confirmed_by_import = true,
                                .not_applicable = no_module_installed,
                                .run = file_is_whole};

namespace {

// Whether the machine of this file matters: import selects it, or would select it if it were made for
// this machine. The tag in the file's name contains the machine, so such a file is usually not selected.
bool matters(const Snapshot& snapshot, const Extension& extension) {
  return extension.selected ||
         (is_meant_for_import(snapshot, extension) && !selected_copy(snapshot, extension.module));
}

CheckResult machine_matches(const Snapshot& snapshot) {
  CheckResult result;
  const std::string machine = interpreter_machine(snapshot);
  if (machine.empty()) return {{}, {message("the processor that this Python is built for is not known")}};
  for (const Copy& copy : copies(snapshot)) {
    if (!matters(snapshot, *copy) || copy->machine.empty() || copy->machine == machine) continue;
    // glibc reports such a file as "cannot open shared object file: No such file or directory", which no
    // user understands.
    result.findings.push_back(
        {.cause = Cause::WrongMachineArch,
         .subject = copy->path,
         .module = copy->module,
         .summary = message("the file is built for {}, but this Python runs on {}", copy->machine, machine),
         .evidence = {copy.at("machine", copy->machine),
                      {"/python/value/soabi", snapshot.python.value.soabi}},
         .fixes =
             restore_fixes(snapshot, copy, message("build or download {} for {}", copy->module, machine))});
  }
  return result;
}

}  // namespace

extern const Check kMachineMatches{.id = "machine-matches",
                                   .question = "Is each module file built for this processor?",
                                   .needs = kPython | kExtensions | kContents,
                                   .confirmed_by_import = true,
                                   .not_applicable = no_copy_found,
                                   .run = machine_matches};

namespace {

// Whether the file claims to be a Python module: its name carries one of Python's tags, or somebody
// imports it. A plain "x.so" may just as well be a library that a package opens itself.
bool claims_to_be_a_module(const Snapshot& snapshot, const Copy& copy) {
  return !copy->tag.empty() || was_asked_for(snapshot, copy->module) ||
         !needing_importers(snapshot, copy->module).empty();
}

// Whether the file was found inside something that --so names. A wheel or directory is searched for every
// library that needs torch, module or not; a file that is named itself is meant as a module.
bool lies_in_what_was_named(const Snapshot& snapshot, const Copy& copy) {
  const auto& named = snapshot.named_files;
  return !named.empty() && std::ranges::none_of(named, [&](const std::string& name) {
    return path_basename(name) == path_basename(copy->path);
  });
}

// The file exports PyInit_ for another name than its own.
Finding named_otherwise(const Snapshot& snapshot, const Copy& copy) {
  return {.cause = Cause::VariantNameMismatch,
          .subject = copy->path,
          .module = copy->module,
          .summary = message("the file is named {} but contains {}", copy->module, join(copy->inits)),
          .evidence = {copy.at("inits", 0, "", copy->inits.front())},
          .fixes = module_or(snapshot, copy->module,
                             Advice{message("rename the file to the module that it contains")})};
}

// Python 2 called initNAME. A module of its time exports that and no PyInit_NAME.
Finding of_python_2(const Snapshot& snapshot, const Copy& copy) {
  return {.cause = Cause::PythonAbiTagMismatch,
          .subject = copy->path,
          .module = copy->module,
          .summary = message("it exports {}, which Python 2 calls; Python 3 calls PyInit_{}",
                             copy->inits.front(), copy->module),
          .evidence = {copy.at("inits", 0, "", copy->inits.front())},
          .fixes = module_fixes(snapshot, copy->module, message("build {} for this Python", copy->module))};
}

Finding no_module_inside(const Snapshot& snapshot, const Copy& copy) {
  return {
      .cause = Cause::VariantNameMismatch,
      .subject = copy->path,
      .module = copy->module,
      .summary = message("the file is named like a Python module but exports no PyInit_ function: it is a "
                         "library, perhaps one with operators for torch.ops.load_library"),
      .evidence = {copy.at("has_init", "false")},
      .fixes = module_fixes(
          snapshot, copy->module,
          message("load it with torch.ops.load_library, or build {} with its binding", copy->module))};
}

// importlib chooses a file by its name and then looks in it for PyInit_ and the last part of the
// module's name.
CheckResult init_exported(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : whole_copies(snapshot)) {
    if (copy->has_init) continue;
    if (copy->inits.empty() && lies_in_what_was_named(snapshot, copy) &&
        (copy->registers_ops || path_basename(copy->path).starts_with("lib"))) {
      result.not_checked.push_back(
          message("{} is not a Python module: it is loaded as a library of its package", copy->path));
      continue;
    }
    if (!copy->inits.empty() && copy->inits.front().starts_with("PyInit_"))
      result.findings.push_back(named_otherwise(snapshot, copy));
    else if (!copy->inits.empty())
      result.findings.push_back(of_python_2(snapshot, copy));
    else if (claims_to_be_a_module(snapshot, copy))
      result.findings.push_back(no_module_inside(snapshot, copy));
    else
      result.unknown.push_back(
          message("{} exports no PyInit_ function: it is a library, not a Python module", copy->path));
  }
  return result;
}

}  // namespace

extern const Check kInitExported{.id = "init-exported",
                                 .question = "Does each file define the module that its name promises?",
                                 .needs = kExtensions | kImages,
                                 .confirmed_by_import = true,
                                 .not_applicable = no_module_installed,
                                 .run = init_exported};

namespace {

// "CPython 3.11.4 (cpython-311-x86_64-linux-gnu)".
std::string this_python(const Python& python) {
  return (python.implementation == "cpython" ? "CPython " : python.implementation + " ") + python.version +
         " (" + python.soabi + ")";
}

// The tag without its machine: "cpython-310-linux-gnu" for "cpython-310-aarch64-linux-gnu". The C
// library stays part of it, because a Python of musl ("...-linux-musl") and one of glibc never load
// the same file.
std::string python_part(const std::string& tag) {
  const auto second = tag.find('-', tag.find('-') + 1);
  if (second == std::string::npos) return tag;
  const std::string_view system = std::string_view(tag).substr(second);
  for (const std::string_view libc : {"-linux-gnu", "-linux-musl"})
    if (const auto at = system.find(libc); at != std::string_view::npos)
      return tag.substr(0, second) + std::string(libc);
  return tag;
}

bool is_for_windows(const std::string& path) { return path.ends_with(".pyd"); }

// A file of the module that is made for another Python. Import never opens a file whose suffix is not
// among the interpreter's, so the user only reads "No module named ...".
std::optional<Finding> near_miss(const Snapshot& snapshot, const std::string& module) {
  const Python& python = snapshot.python.value;
  Finding finding{.cause = Cause::PythonAbiTagMismatch, .module = module};
  for (const Copy& copy : copies(snapshot)) {
    if (copy->module != module || suffix_fits(snapshot, *copy) || !is_meant_for_import(snapshot, *copy))
      continue;
    if (python_part(copy->tag) == python_part(python.soabi)) continue;  // another machine: machine-matches
    if (finding.subject.empty()) {
      finding.subject = copy->path;
      if (is_for_windows(copy->path)) finding.cause = Cause::Windows;
      const std::string name = path_basename(copy->path), here = this_python(python);
      finding.summary =
          copy->tag.empty()
              ? message("{} is built for another Python; {} ignores it and reports \"No module named\"", name,
                        here)
              : message("{} is built for {}; {} ignores it and reports \"No module named\"", name, copy->tag,
                        here);
    }
    finding.evidence.push_back(copy.at("path", copy->path));
  }
  if (finding.subject.empty()) return std::nullopt;
  finding.evidence.push_back({"/python/value/soabi", python.soabi});
  return finding;
}

// Names of Python's C interface that this interpreter does not export.
std::optional<Finding> missing_python_names(const Copy& copy, const Python& python) {
  const auto evidence = symbol_evidence(copy, [](const MissingSymbol& s) { return s.owner == "python"; });
  const std::size_t n = evidence.size();
  if (n == 0) return std::nullopt;
  return Finding{
      .cause = Cause::PythonAbiTagMismatch,
      .subject = copy->path,
      .module = copy->module,
      .summary = message_n(n, "it needs {} symbol of Python's C API that {} does not have: {}",
                           "it needs {} symbols of Python's C API that {} does not have, such as {}", n,
                           this_python(python), evidence.front().value),
      .evidence = evidence};
}

// A library that belongs to one Python release (libpython3.10.so.1.0), or the C library that only Pythons
// of Alpine and similar systems use.
std::optional<Finding> missing_python_library(const Copy& copy, const Python& python) {
  for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
    const std::string& soname = copy->missing_libraries[i].soname;
    if (!is_library_of_another_python(soname)) continue;
    return Finding{.cause = Cause::PythonAbiTagMismatch,
                   .subject = copy->path,
                   .module = copy->module,
                   .summary = message("it was linked to {}, which {} does not use and which was not found",
                                      soname, this_python(python)),
                   .evidence = {copy.at("missing_libraries", i, "soname", soname)}};
  }
  return std::nullopt;
}

// Free-threaded 3.13 and 3.14 open NAME.abi3.so like any Python, although the stable ABI up to 3.14 has their
// objects' counts and types in other places: the process ends with SIGSEGV. Our own modules look first.
std::optional<Finding> stable_abi_with_gil(const Copy& copy, const Python& python) {
  if (!python.free_threaded || !(copy->tag == "abi3" || copy->tag.starts_with("abi3-"))) return std::nullopt;
  if (is_bundled_module(copy->module) && !copy->uses_torch) return std::nullopt;
  return Finding{
      .cause = Cause::PythonAbiTagMismatch,
      .subject = copy->path,
      .module = copy->module,
      .summary = message("{} is built for the stable ABI of Pythons with a GIL; {} opens it all the "
                         "same and crashes, because its objects begin differently",
                         path_basename(copy->path), this_python(python)),
      .evidence = {copy.at("tag", copy->tag), {"/python/value/soabi", python.soabi}}};
}

std::optional<Finding> wrong_inside(const Copy& copy, const Python& python) {
  auto finding = stable_abi_with_gil(copy, python);
  if (!finding) finding = missing_python_names(copy, python);
  return finding ? finding : missing_python_library(copy, python);
}

CheckResult python_tag_fits(const Snapshot& snapshot) {
  CheckResult result;
  for (const std::string& module : snapshot.modules) {
    const auto selected = selected_copy(snapshot, module);
    auto finding = selected ? wrong_inside(*selected, snapshot.python.value) : near_miss(snapshot, module);
    if (!finding) continue;
    const Message otherwise = message("build or download {} for this Python", module);
    finding->fixes =
        selected ? rebuild_fixes(snapshot, *selected, otherwise) : module_fixes(snapshot, module, otherwise);
    result.findings.push_back(*std::move(finding));
  }
  return result;
}

}  // namespace

extern const Check kPythonTagFits{.id = "python-tag-fits",
                                  .question = "Is each module file built for this Python?",
                                  .needs = kPython | kExtensions | kContents,
                                  .confirmed_by_import = true,
                                  .not_applicable = no_copy_found,
                                  .run = python_tag_fits};

}  // namespace scankit::checks
