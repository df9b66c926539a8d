// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {
namespace {

Message symbol_in_words(const MissingSymbol& symbol) {
  if (symbol.near.empty()) return readable(symbol);
  return message("{} (torch has {})", readable(symbol), symbol.near.front());
}

// The export tables of the installed torch decide, never its version: a module that was built for another
// release may well fit.
CheckResult torch_symbols_resolve(const Snapshot& snapshot) {
  CheckResult result;
  const Torch& torch = snapshot.torch.value;
  if (torch.libraries.empty()) {
    result.not_checked.push_back(
        message("{} has no libraries whose symbols could be compared", torch.location));
    return result;
  }
  for (const Copy& copy : resolved_copies(snapshot)) {
    const auto drifted = torch_names(copy).drifted;
    const auto foreign = foreign_torch_libraries(snapshot, copy);
    if (drifted.empty() && foreign.empty()) continue;
    Finding finding{.cause = Cause::TorchVersionMismatch, .subject = copy->path, .module = copy->module};
    for (const std::size_t i : drifted)
      finding.evidence.push_back(copy.at("missing_symbols", i, "name", copy->missing_symbols[i].name));
    if (const std::size_t n = drifted.size(); n > 0)
      finding.summary = message_n(n, "it needs {} symbol that torch {} does not export: {}",
                                  "it needs {} symbols that torch {} does not export, such as {}", n,
                                  torch.version, symbol_in_words(copy->missing_symbols[drifted.front()]));
    // Libraries that only other releases have prove the same as symbols do.
    for (const std::size_t i : foreign) {
      const std::string& soname = copy->missing_libraries[i].soname;
      finding.summary =
          finding.summary.empty()
              ? message("it needs {}, a library of other torch releases", soname)
              : message("{}; and {}, a library of other torch releases", finding.summary, soname);
      finding.evidence.push_back(
          copy.at("missing_libraries", i, "soname", copy->missing_libraries[i].soname));
    }
    if (const Message made_for = torch_words(copy->built_for); !made_for.empty())
      finding.summary = message("{}; it was built for {}", finding.summary, made_for);
    add_built_for(copy, finding);
    finding.evidence.push_back({"/torch/value/version", torch.version});
    finding.fixes =
        rebuild_fixes(snapshot, copy, message("rebuild {} against torch {}", copy->module, torch.version));
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kTorchSymbolsResolve{
    .id = "torch-symbols-resolve",
    .question = "Does the installed torch export every symbol that each module needs?",
    .needs = kTorch | kExtensions | kClosures,
    .confirmed_by_import = true,
    .not_applicable = no_module_installed,
    .run = torch_symbols_resolve};

namespace {

// Says how the module came to have the other string ABI, as far as its names tell: built for a torch that
// has that ABI, or with a flag that somebody wrote into a set-up script.
void add_made_for(const BuiltFor& built_for, bool is_new, const std::string& installed, Finding& finding) {
  const Message made_for = torch_words(built_for);
  if (made_for.empty()) return;
  if (!is_new && std::ranges::find(built_for.releases, torch_minor(installed)) != built_for.releases.end()) {
    finding.summary = message(
        "{}; its symbols match {}: it was built with -D_GLIBCXX_USE_CXX11_ABI=0, or for an older torch "
        "with the pre-CXX11 ABI",
        finding.summary, made_for);
    return;
  }
  finding.summary =
      is_new ? message("{}; it was built for {}, or without the torch's own -D_GLIBCXX_USE_CXX11_ABI=0",
                       finding.summary, made_for)
             : message("{}; it was built for {}, or with -D_GLIBCXX_USE_CXX11_ABI=0 for a torch that is not",
                       finding.summary, made_for);
}

Message string_abi_in_words(bool is_new, std::size_t n, const std::string& torch, const std::string& name) {
  if (is_new)
    return message_n(n,
                     "it calls {} function of torch with the CXX11 ABI, but torch {} exports it with the "
                     "pre-CXX11 ABI: {}",
                     "it calls {} functions of torch with the CXX11 ABI, but torch {} exports them with the "
                     "pre-CXX11 ABI, such as {}",
                     n, torch, name);
  return message_n(
      n,
      "it calls {} function of torch with the pre-CXX11 ABI, but torch {} exports it with the CXX11 ABI: {}",
      "it calls {} functions of torch with the pre-CXX11 ABI, but torch {} exports them with the CXX11 ABI, "
      "such as {}",
      n, torch, name);
}

// Proven name by name: torch exports the same function with the other spelling of std::string.
CheckResult string_abi_matches(const Snapshot& snapshot) {
  CheckResult result;
  const Torch& torch = snapshot.torch.value;
  for (const Copy& copy : resolved_copies(snapshot)) {
    const auto flipped = torch_names(copy).flipped;
    if (flipped.empty()) continue;
    const MissingSymbol& first = copy->missing_symbols[flipped.front()];
    // The spelling in the names decides, because one file may contain objects of both kinds.
    const bool is_new = first.name.find("__cxx11") != std::string::npos;
    Finding finding{.cause = Cause::AbiCxx11Mismatch,
                    .subject = copy->path,
                    .module = copy->module,
                    .summary = string_abi_in_words(is_new, flipped.size(), torch.version, readable(first))};
    for (const std::size_t i : flipped)
      finding.evidence.push_back(copy.at("missing_symbols", i, "name", copy->missing_symbols[i].name));
    add_made_for(copy->built_for, is_new, torch.version, finding);
    add_built_for(copy, finding);
    finding.evidence.push_back({"/torch/value/string_abi", torch.string_abi});
    finding.fixes =
        rebuild_fixes(snapshot, copy, message("rebuild {} with torch's own string ABI", copy->module));
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kStringAbiMatches{.id = "string-abi-matches",
                                     .question = "Do the modules and torch use the same C++ string ABI?",
                                     .needs = kTorch | kExtensions | kClosures,
                                     .confirmed_by_import = true,
                                     .not_applicable = no_module_installed,
                                     .run = string_abi_matches};

namespace {

// A library that is missing and is neither torch's nor CUDA's may be the one that has the names.
bool names_may_be_a_missing_library_s(const Copy& copy) {
  for (const MissingLibrary& library : copy->missing_libraries)
    if (!is_torch_library(library.soname) && !is_cuda_library(library.soname)) return true;
  return false;
}

// Names with a qualifier outside torch's namespaces, whatever their argument types: no torch release has
// ever had them.
Finding undefined(const Copy& copy, const std::vector<Evidence>& names, const std::string& demangled) {
  const std::size_t n = names.size();
  return {.cause = Cause::OwnSymbolUndefined,
          .subject = copy->path,
          .module = copy->module,
          .summary = message_n(n, "it calls {} function of its own that it does not contain: {}",
                               "it calls {} functions of its own that it does not contain, such as {}", n,
                               demangled),
          .evidence = names};
}

// torch has the names, in a library that the module does not need: it was linked without it.
Finding never_linked(const Copy& copy, const std::vector<std::size_t>& names) {
  const MissingSymbol& first = copy->missing_symbols[names.front()];
  const std::size_t n = names.size();
  Finding finding{
      .cause = Cause::OwnSymbolUndefined,
      .subject = copy->path,
      .module = copy->module,
      .summary = message_n(n, "it was not linked to {}, which exports {} symbol that it needs: {}",
                           "it was not linked to {}, which exports {} symbols that it needs: {}",
                           path_basename(first.exported_by_torch), n, first.name)};
  for (const std::size_t i : names)
    finding.evidence.push_back(copy.at("missing_symbols", i, "name", copy->missing_symbols[i].name));
  return finding;
}

CheckResult own_symbols_defined(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    const bool undecided = (copy->uses_torch && snapshot.torch.value.libraries.empty()) ||
                           names_may_be_a_missing_library_s(copy);
    const auto own = [&](const MissingSymbol& s) {
      // A name with a version node belongs to the library in which the linker found it.
      if (!s.version.empty()) return false;
      return s.owner == "own" || (s.owner == "unknown" && !undecided);
    };
    std::vector<Finding> found;
    const auto names = symbol_evidence(copy, own);
    const auto first = std::ranges::find_if(copy->missing_symbols, own);
    if (!names.empty()) found.push_back(undefined(copy, names, readable(*first)));
    if (const auto torch = torch_names(copy).not_linked; !torch.empty())
      found.push_back(never_linked(copy, torch));
    for (Finding& finding : found) {
      finding.fixes = rebuild_fixes(
          snapshot, copy, message("rebuild {} from a clean directory with all its sources", copy->module));
      result.findings.push_back(std::move(finding));
    }
  }
  return result;
}

}  // namespace

extern const Check kOwnSymbolsDefined{.id = "own-symbols-defined",
                                      .question = "Does each module define all of its own functions?",
                                      .needs = kExtensions | kClosures,
                                      .confirmed_by_import = true,
                                      .not_applicable = no_module_installed,
                                      .run = own_symbols_defined};

// How a module came to lack names of the installed torch, if the files tell: pip built it in a
// directory of its own against the torch that it had installed there, or pip has replaced torch since,
// for another package.
namespace {

// This check tells where a fault comes from that others find, so facts that cannot be read hide
// no error here.
Message no_module_uses_torch(const Snapshot& snapshot) {
  if (!snapshot.torch.present() || !snapshot.extensions.present())
    return message("torch or the modules could not be examined");
  return std::ranges::none_of(selected_copies(snapshot), [](const Copy& copy) { return copy->uses_torch; })
             ? message("no checked module uses torch")
             : "";
}

// The first name that torch should have and does not have; without one, the module fits its
// torch well enough.
std::optional<Evidence> name_that_torch_lacks(const Copy& copy) {
  for (std::size_t i = 0; i < copy->missing_symbols.size(); ++i)
    if (copy->missing_symbols[i].owner == "torch")
      return copy.at("missing_symbols", i, "name", copy->missing_symbols[i].name);
  return std::nullopt;
}

// The copy that the texts were read from, if import still takes that one.
std::optional<Copy> copy_of(const Snapshot& snapshot, const ModuleTexts& texts) {
  auto copy = selected_copy(snapshot, texts.module);
  return copy && (*copy)->resolved && (*copy)->path == texts.path ? copy : std::nullopt;
}

// The file contains a path in pip's directory for isolated builds.
Finding isolated(const Snapshot& snapshot, const Copy& copy, std::size_t at, const Evidence& missing) {
  const ModuleTexts& texts = snapshot.packages.value.texts[at];
  return {.cause = Cause::BuildIsolationWrongTorch,
          .subject = texts.path,
          .module = texts.module,
          .summary =
              message("{} was compiled in a directory that pip creates for one build ({}), against the torch "
                      "there, and needs symbols that the installed torch {} does not have",
                      texts.path, texts.build_trace, snapshot.torch.value.version),
          .evidence = {{"/packages/value/texts/" + std::to_string(at) + "/build_trace", texts.build_trace},
                       missing},
          .fixes = module_fixes(snapshot, copy->module,
                                message("rebuild {} with --no-build-isolation", copy->module))};
}

// Another package has brought the installed torch after the module was installed.
Finding exchanged(const Snapshot& snapshot, const Copy& copy, std::size_t at, const Evidence& missing) {
  const Packages& packages = snapshot.packages.value;
  const ModuleTexts& texts = packages.texts[at];
  Finding finding{
      .cause = Cause::PipReplacedTorch,
      .subject = texts.path,
      .module = texts.module,
      .summary = message(
          "torch {} was installed with {}, after {}; {} was built for another torch and needs symbols "
          "that this one does not export",
          snapshot.torch.value.version, packages.torch_brought_by, texts.module, texts.module),
      .evidence = {{"/packages/value/torch_brought_by", packages.torch_brought_by},
                   {"/packages/value/torch_installed", std::to_string(packages.torch_installed)},
                   {"/packages/value/texts/" + std::to_string(at) + "/installed",
                    std::to_string(texts.installed)},
                   missing},
      .fixes = module_fixes(snapshot, copy->module, message("rebuild {} for this torch", copy->module))};
  finding.fixes.push_back(Advice{
      message("or install the previous torch again, and {} with --no-deps", packages.torch_brought_by)});
  return finding;
}

CheckResult built_for_this_torch(const Snapshot& snapshot) {
  CheckResult result;
  const Packages& packages = snapshot.packages.value;
  for (std::size_t i = 0; i < packages.texts.size(); ++i) {
    const ModuleTexts& texts = packages.texts[i];
    const auto copy = copy_of(snapshot, texts);
    const auto missing = copy ? name_that_torch_lacks(*copy) : std::nullopt;
    if (!missing) continue;
    if (!texts.build_trace.empty())
      result.findings.push_back(isolated(snapshot, *copy, i, *missing));
    else if (!packages.torch_brought_by.empty() && texts.installed != 0 &&
             texts.installed < packages.torch_installed)
      result.findings.push_back(exchanged(snapshot, *copy, i, *missing));
  }
  return result;
}

}  // namespace

extern const Check kBuiltForThisTorch{.id = "built-for-this-torch",
                                      .question = "Were the modules built for the installed torch?",
                                      .needs = kPackages,
                                      .confirmed_by_import = true,
                                      .not_applicable = no_module_uses_torch,
                                      .run = built_for_this_torch};

namespace {

Message none_with_pybind(const Snapshot& snapshot) {
  const auto all = whole_copies(snapshot);
  const bool any = std::ranges::any_of(all, [](const Copy& copy) { return !copy->pybind_internals.empty(); });
  return any ? "" : message("no checked module uses pybind11");
}

// The observed import that failed because of a type, or nullptr. Modules with another internals id keep
// their types to themselves, which is intended until one of them asks for a type of the other. So a
// difference alone is not a fault.
const Observation* wants_a_type(const Snapshot& snapshot, const std::string& module) {
  const Observation* seen = deciding_import(snapshot, module);
  if (seen == nullptr || seen->outcome != "error") return nullptr;
  // The message is pybind11's (detail/class.h, pybind11.h). It also appears if the other module was not
  // imported at all.
  return seen->message.english().find("referenced unknown base type") != std::string::npos ? seen : nullptr;
}

Finding strangers(const Snapshot& snapshot, const Copy& copy, const Copy& other, const Observation& seen) {
  const auto at = static_cast<std::size_t>(&seen - snapshot.observations.value.data());
  return {
      .cause = Cause::PybindInternalsMismatch,
      .subject = copy->path,
      .module = copy->module,
      .summary = message(
          "its import fails with \"{}\": it keeps its types under {}, {} keeps them under {}, and neither "
          "finds those of the other",
          seen.message, copy->pybind_internals, other->module, other->pybind_internals),
      .evidence = {copy.at("pybind_internals", copy->pybind_internals),
                   other.at("pybind_internals", other->pybind_internals),
                   {"/observations/value/" + std::to_string(at) + "/message", english(seen.message)}},
      .fixes =
          rebuild_fixes(snapshot, copy,
                        message("rebuild {} with the pybind11 release of {}", copy->module, other->module))};
}

// Any other module with another id is named; which one has the type is not known.
CheckResult pybind_internals_agree(const Snapshot& snapshot) {
  CheckResult result;
  const auto all = whole_copies(snapshot);
  for (const Copy& copy : all) {
    const Observation* seen = wants_a_type(snapshot, copy->module);
    if (seen == nullptr || copy->pybind_internals.empty()) continue;
    const auto other = std::ranges::find_if(all, [&](const Copy& candidate) {
      return candidate->module != copy->module && !candidate->pybind_internals.empty() &&
             candidate->pybind_internals != copy->pybind_internals;
    });
    if (other != all.end()) result.findings.push_back(strangers(snapshot, copy, *other, *seen));
  }
  return result;
}

}  // namespace

extern const Check kPybindInternalsAgree{
    .id = "pybind-internals-agree",
    .question = "Were modules that share C++ types built with one pybind11?",
    .needs = kExtensions,
    .not_applicable = none_with_pybind,
    .run = pybind_internals_agree};

}  // namespace scankit::checks
