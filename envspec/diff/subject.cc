// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/packages/environment_repair.h"
#include "doctor/probes/python/root_choice.h"
#include "envspec/check/facts.h"

namespace scankit {
namespace {

// "torchvision._C" of ".../site-packages/torchvision/_C.so": how import calls the file. "" for one that lies
// in no folder of sys.path, or below a folder that is no package.
std::string module_of(const Python& python, const std::string& path) {
  for (const PathEntry& entry : python.sys_path) {
    if (entry.path.empty() || !path.starts_with(entry.path + "/")) continue;
    std::string name = path.substr(entry.path.size() + 1);
    const auto slash = name.rfind('/');
    name.erase(std::min(name.find('.', slash == std::string::npos ? 0 : slash), name.size()));
    if (name.find('.') != std::string::npos || name.find('-') != std::string::npos) return "";
    std::ranges::replace(name, '/', '.');
    return name;
  }
  return "";
}

// What is bound to torch and is not torch's own.
std::vector<std::string> modules_that_use_torch(const Snapshot& snapshot) {
  std::vector<std::string> modules;
  for (const AuditedFile& file : snapshot.audit.value.files) {
    if (!file.uses_torch || file.distribution == "torch" || !file.not_for_this_python.empty()) continue;
    if (std::string name = module_of(snapshot.python.value, file.path); !name.empty())
      modules.push_back(std::move(name));
  }
  return modules;
}

void also_look_for(const Host& host, const std::vector<std::string>& wanted, Snapshot& snapshot) {
  std::vector<std::string> more;
  for (const std::string& module : wanted) {
    if (std::ranges::find(snapshot.modules, module) != snapshot.modules.end()) continue;
    snapshot.modules.push_back(module);
    more.push_back(module);
  }
  if (more.empty() || !snapshot.extensions.present()) return;
  std::vector<std::string> torch_missing;
  const Speaking facts_are_english(nullptr);
  auto found = probe_extensions(host, snapshot, more, torch_missing);
  std::ranges::move(found.value, std::back_inserter(snapshot.extensions.value));
  if (!found.present()) snapshot.extensions.state = found.state;
  if (!found.note.empty()) snapshot.extensions.note = found.note;
}

// NVML takes longer than everything else together, and knows more only of a GPU that the table does not have.
bool needs_nvml(const Host& host) {
  const auto gpus = probe_gpus(host);
  const auto driver = probe_driver(host);
  return (driver.present() && driver.value.version.empty()) ||
         std::ranges::any_of(gpus.value, [](const Gpu& gpu) { return gpu.sm.empty(); });
}

Result<Subject> look_at_files(const SubjectOptions& options) {
  EnvironmentOptions asked;
  asked.python = options.python;
  asked.imports = ImportPolicy::Never;
  asked.all = options.find_extensions;
  if (!options.root.empty()) {
    SCANKIT_TRY(asked.root, root_folder(options.root));
  }
  Subject subject;
  subject.host = make_real_host(asked.root);
  asked.ask_nvml = needs_nvml(*subject.host);
  SCANKIT_TRY(Facts gathered, gather(asked));
  if (const auto broken = broken_environment(gathered.snapshot)) return error_of(*broken);
  subject.snapshot = std::move(gathered.snapshot);
  subject.notes = std::move(gathered.notes);
  subject.status = gathered.status;
  if (options.find_extensions)
    also_look_for(*subject.host, modules_that_use_torch(subject.snapshot), subject.snapshot);
  also_look_for(*subject.host, options.modules, subject.snapshot);
  return subject;
}

}  // namespace

Result<Subject> look_at(const SubjectOptions& options) {
  Subject subject;
  if (options.from.empty()) {
    SCANKIT_TRY(subject, look_at_files(options));
  } else {
    SCANKIT_TRY(subject.snapshot, stored_snapshot(options.from));
    subject.snapshot.read_from = options.from;
  }
  const Speaking facts_are_english(nullptr);
  subject.facts = facts_of(subject.snapshot);
  return subject;
}

}  // namespace scankit
