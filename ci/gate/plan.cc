// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ci/gate/gate.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/probes/python/python.h"
#include "envspec/lock/lock.h"
#include "envspec/spec/spec.h"

// Decides what each step runs, whether it has anything to look at, and what its answer depends on.
namespace scankit::gate {
namespace {

bool has_option(const StepRule& rule, std::string_view option) {
  return std::ranges::any_of(rule.args, [&](const std::string& word) {
    return word == option || word.starts_with(std::string(option) + "=");
  });
}

// The value of an option in the policy's args, as "--x V" or "--x=V".
std::string option_value(const StepRule& rule, const std::string& option, const std::string& otherwise) {
  for (std::size_t i = 0; i < rule.args.size(); ++i) {
    if (rule.args[i].starts_with(option + "=")) return rule.args[i].substr(option.size() + 1);
    if (rule.args[i] == option && i + 1 < rule.args.size()) return rule.args[i + 1];
  }
  return otherwise;
}

bool is_here(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Why there is nothing to validate. A module that doctor did not look for, or that is a file,
// may be there.
Message no_module(const std::string& module, const Snapshot& seen) {
  if (seen.python.state == ProbeState::Absent || seen.python.state == ProbeState::Failed)
    return message("no Python to validate with");
  if (seen.torch.state == ProbeState::Absent) return message("torch is not installed");
  if (module.find('/') != std::string::npos || !seen.extensions.present()) return {};
  const bool looked_for = std::ranges::find(seen.modules, module) != seen.modules.end();
  const bool found = std::ranges::any_of(
      seen.extensions.value, [&](const Extension& file) { return file.module == module && file.selected; });
  return looked_for && !found ? message("{} is not installed", module) : Message();
}

// Doctor saw the import fail and names the cause; validate could only repeat that.
bool does_not_import(const std::string& module, const Snapshot& seen) {
  return std::ranges::any_of(seen.observations.value, [&](const Observation& seen_import) {
    return seen_import.module == module && seen_import.variant == "torch-first" &&
           (seen_import.outcome == "error" || seen_import.outcome == "crashed" ||
            seen_import.outcome == "timeout");
  });
}

// Importing another user's module as root runs that user's code, so that it needs --import here, too.
Message not_validated(const StepRule& rule, const GateOptions& options, const Snapshot* seen) {
  if (options.no_import) return "--no-import";
  if (seen == nullptr) return {};
  const std::string module = option_value(rule, "--module", "selective_scan_cuda");
  if (const Message why = no_module(module, *seen); !why.empty()) return why;
  if (does_not_import(module, *seen)) return message("{} does not import", module);
  if (options.import_foreign) return {};
  const auto foreign = probes::foreign_code(*make_real_host(), *seen);
  if (!foreign) return {};
  return message(
      "{} belongs to user {}, and scankit runs as root: validating would run that user's code as root (run "
      "scankit as that user, or allow it with --import)",
      foreign->path, foreign->uid);
}

void add_required(const Policy& policy, const GateOptions& options, std::vector<std::string>& argv) {
  for (const auto* names : {&policy.required, &options.required})
    for (const std::string& name : *names) argv.push_back("--require=" + name);
}

// A word of the command line that is not a regular file adds nothing.
void add_file(std::string& key, const std::string& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  key += path + "=" + sha256_file(path).value_or("unreadable") + "\n";
}

}  // namespace

StepCommand step_command(const PolicyStep& step, const Policy& policy, const GateOptions& options,
                         const std::string& program) {
  const StepRule& rule = policy.*(step.place);
  StepCommand command{.name = std::string(step.command), .stem = std::string(step.command)};
  std::ranges::replace(command.stem, ' ', '-');
  // Answers are stored and parsed in English; the report is printed in the user's language.
  command.argv = {program, "--lang", "en"};
  const std::string& name = command.name;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t space = name.find(' ', at);
    command.argv.push_back(name.substr(at, space - at));
    at = space == std::string::npos ? space : space + 1;
  }
  // A stored snapshot is of another machine: options about this one's Python do not apply.
  const bool elsewhere = has_option(rule, "--from");
  if (!options.python.empty() && !elsewhere) {
    command.argv.emplace_back("--python");
    command.argv.push_back(options.python);
  }
  const bool doctor = step.name == "doctor", validate = step.name == "validate";
  if (doctor && options.no_import && !elsewhere && !has_option(rule, "--no-import"))
    command.argv.emplace_back("--no-import");
  const bool reads_only = elsewhere || has_option(rule, "--root") || has_option(rule, "--so");
  if ((doctor || validate) && options.import_foreign && !reads_only && !has_option(rule, "--no-import"))
    command.argv.emplace_back("--import");
  if (doctor) command.answer_option = "--snapshot";
  if (doctor) add_required(policy, options, command.argv);
  if (!doctor) command.argv.emplace_back("--json");
  command.argv.insert(command.argv.end(), rule.args.begin(), rule.args.end());
  const int seconds = rule.timeout_s > 0 ? rule.timeout_s : step.timeout_s;
  command.timeout = std::chrono::seconds(seconds);
  return command;
}

namespace {

// The environment that is named decides, not --python. The answer of the second is "record-2.json".
StepCommand record_command(const PolicyStep& step, const Policy& policy, std::size_t index,
                           const std::string& program) {
  const RecordRule& environment = policy.records[index];
  const StepRule& rule = policy.*(step.place);
  StepCommand command{.name = std::string(step.command) + " " + environment.folder, .stem = "record"};
  if (index > 0) command.stem += "-" + std::to_string(index + 1);
  command.argv = {program, "--lang", "en", "env", "check", "--record", environment.folder, "--json"};
  if (!environment.lock.empty()) {
    command.argv.emplace_back("--lock");
    command.argv.push_back(environment.lock);
  }
  command.argv.insert(command.argv.end(), rule.args.begin(), rule.args.end());
  command.timeout = std::chrono::seconds(rule.timeout_s > 0 ? rule.timeout_s : step.timeout_s);
  return command;
}

}  // namespace

std::vector<StepCommand> step_commands(const PolicyStep& step, const Policy& policy,
                                       const GateOptions& options, const std::string& program) {
  if (step.name != "record") return {step_command(step, policy, options, program)};
  std::vector<StepCommand> commands;
  for (std::size_t i = 0; i < policy.records.size(); ++i)
    commands.push_back(record_command(step, policy, i, program));
  return commands;
}

Message nothing_to_do(const PolicyStep& step, const Policy& policy, const GateOptions& options,
                      const Snapshot* seen) {
  const StepRule& rule = policy.*(step.place);
  // Doctor checks --require. If the policy turns doctor off, nothing would check what it requires.
  const bool demanded = step.name == "doctor" && !(policy.required.empty() && options.required.empty());
  if (rule.enabled == false && !demanded) return message("disabled by the policy");
  if (rule.enabled == true) return {};
  if (seen != nullptr && seen->broken_environment && !has_option(rule, "--from") &&
      !has_option(rule, "--root"))
    return message("the active environment's Python cannot be used");
  if (step.name == "env_check" && !has_option(rule, "--spec") && !has_option(rule, "--lock") &&
      !is_here(envspec::kSpecFile) && !is_here(envspec::kLockFile))
    return message("neither {} nor {} found (scankit env init writes one)", envspec::kSpecFile,
                   envspec::kLockFile);
  return step.name == "validate" ? not_validated(rule, options, seen) : Message();
}

std::string step_key(const StepCommand& command, const Policy& policy, const std::string& policy_text,
                     const std::string& program_hash, const std::string& environment) {
  std::string key = "policy=" + policy.file + " " + sha256_hex(policy_text) + "\nprogram=" + program_hash +
                    "\nenvironment=" + environment + "\nfolder=" + current_directory() + "\n";
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string& word = command.argv[i];
    key += "word=" + word + "\n";
    add_file(key, word.starts_with('-') ? word.substr(word.find('=') + 1) : word);
  }
  if (command.name.starts_with("env check")) {
    add_file(key, envspec::kSpecFile);
    add_file(key, envspec::kLockFile);
  }
  return sha256_hex(key);
}

std::string environment_identity(const std::string& python, const std::vector<std::string>& modules) {
  cli::EnvironmentOptions options;
  options.python = python;
  options.modules = modules;
  options.imports = probes::ImportPolicy::Never;
  options.ask_nvml = false;
  options.linked = true;
  auto facts = cli::gather(options);
  if (!facts) return english(facts.error().message);
  Snapshot& seen = facts->snapshot;
  // Values that change from moment to moment say nothing about the environment.
  seen.memory = {};
  seen.disk = {};
  seen.observations = {};
  std::string identity = snapshot_to_json(seen);
  // A module that is built again in place changes inode, size or time, even if the facts stay the same.
  if (seen.extensions.present())
    for (const Extension& file : seen.extensions.value) {
      struct ::stat status {};
      if (::stat(file.path.c_str(), &status) == 0)
        identity += file.path + " " + std::to_string(status.st_ino) + " " + std::to_string(status.st_size) +
                    " " + std::to_string(status.st_mtim.tv_sec) + "." +
                    std::to_string(status.st_mtim.tv_nsec) + "\n";
    }
  return sha256_hex(identity);
}

}  // namespace scankit::gate
