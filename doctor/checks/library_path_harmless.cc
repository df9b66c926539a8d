// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

constexpr const char* kVariable = "LD_LIBRARY_PATH";

std::string not_set(const Snapshot& snapshot) {
  const auto variable = snapshot.environment.find(kVariable);
  return variable == snapshot.environment.end() || variable->second.empty()
             ? say("LD_LIBRARY_PATH is not set")
             : "";
}

// "LD_LIBRARY_PATH /usr/local/cuda-12.4/lib64" -> the folder; "" where another step found the file.
std::string folder_of(const Misfit& misfit) {
  const std::string step = std::string(kVariable) + " ";
  return misfit.found_by.starts_with(step) ? misfit.found_by.substr(step.size()) : "";
}

// The variable without those folders; it is unset where nothing is left.
Fix without(const Snapshot& snapshot, const std::set<std::string>& folders) {
  std::istringstream entries(snapshot.environment.at(kVariable));
  std::vector<std::string> rest;
  for (std::string entry; std::getline(entries, entry, ':');) {
    const auto same = [&](const std::string& folder) {
      return !entry.empty() && path_normalize(folder) == path_normalize(entry);
    };
    if (std::ranges::none_of(folders, same)) rest.push_back(entry);
  }
  return SetEnvironment{kVariable, join(rest, ":")};
}

std::string shadow_summary(const Misfit& misfit) {
  const std::string needed_by = path_basename(misfit.needed_by), folder = folder_of(misfit);
  if (misfit.name.empty())
    return say(
        "{} needs version {} of {}; LD_LIBRARY_PATH makes the loader take {}, which does not define it, and "
        "{} "
        "would be taken without {} in it and defines it",
        needed_by, misfit.version, misfit.soname, misfit.library, misfit.without_library_path, folder);
  return say(
      "{} needs {} from {}; LD_LIBRARY_PATH makes the loader take {}, which does not have it, and {} would "
      "be "
      "taken without {} in it and has it",
      needed_by, misfit.name, misfit.soname, misfit.library, misfit.without_library_path, folder);
}

// Only what is proven: the file that the variable brings lacks what is wanted, and the one behind it has it.
void look_for_shadows(const Snapshot& snapshot, const std::vector<Misfit>& misfits, const std::string& module,
                      const std::string& pointer, CheckResult& result) {
  const auto shadowed = [](const Misfit& m) {
    return !folder_of(m).empty() && !m.without_library_path.empty();
  };
  const auto first = std::ranges::find_if(misfits, shadowed);
  if (first == misfits.end()) return;
  Finding finding{.cause = Cause::LdLibraryPathShadow,
                  .subject = first->library,
                  .module = module,
                  .summary = shadow_summary(*first)};
  std::set<std::string> folders;
  for (std::size_t i = 0; i < misfits.size(); ++i) {
    if (!shadowed(misfits[i])) continue;
    const std::string at = pointer + "/" + std::to_string(i);
    if (folders.insert(folder_of(misfits[i])).second)
      finding.evidence.push_back({at + "/found_by", misfits[i].found_by});
    finding.evidence.push_back(misfits[i].name.empty() ? Evidence{at + "/version", misfits[i].version}
                                                       : Evidence{at + "/name", misfits[i].name});
    if (std::ranges::none_of(finding.evidence, [&](const Evidence& said) {
          return said.value == misfits[i].without_library_path;
        }))
      finding.evidence.push_back({at + "/without_library_path", misfits[i].without_library_path});
  }
  finding.fixes.push_back(without(snapshot, folders));
  result.findings.push_back(std::move(finding));
}

CheckResult library_path_harmless(const Snapshot& snapshot) {
  CheckResult result;
  look_for_shadows(snapshot, snapshot.torch.value.misfits, "torch", "/torch/value/misfits", result);
  for (const Copy& copy : selected_copies(snapshot))
    look_for_shadows(snapshot, copy->misfits, copy->module, copy.pointer + "/misfits", result);
  return result;
}

}  // namespace

extern const Check kLibraryPathHarmless{
    .id = "library-path-harmless",
    .question = "Does LD_LIBRARY_PATH leave the loader the libraries that fit?",
    .needs = kPython | kTorch,
    .settled_by_import = true,
    .not_applicable = not_set,
    .run = library_path_harmless};
}  // namespace scankit
