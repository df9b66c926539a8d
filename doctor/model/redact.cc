// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/redact.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "doctor/model/redact_text.h"
#include "doctor/model/snapshot_json.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

// Over the JSON, not the structs: a field that is added tomorrow is covered today.
template <class Use>
void for_each_string(Json& json, const std::string& key, const Use& use) {
  if (json.is_string()) {
    use(key, json.get_ref<std::string&>());
  } else if (json.is_array()) {
    for (Json& entry : json) for_each_string(entry, key, use);
  } else if (json.is_object()) {
    for (const auto& [name, value] : json.items()) for_each_string(value, name, use);
  }
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Owner owner_in(const std::map<std::string, std::string>& environment) {
  Owner owner;
  for (const auto& [name, value] : environment) {
    if (name == "USER" || name == "LOGNAME") owner.users.push_back(value);
    if (name == "HOME") owner.homes.push_back(value);
    if (name == "HOSTNAME" || name == "SLURMD_NODENAME") owner.hosts.push_back(value);
  }
  return owner;
}

// All that the facts tell of their owner, and what `owner` adds.
TextRedactor redactor_of(const Snapshot& snapshot, const Owner& owner, Json& json) {
  TextRedactor redactor;
  for_each_string(json, "", [&](const std::string& key, std::string& text) {
    redactor.learn_from(text);
    if (key == "uuid" || key == "serial") redactor.learn_serial(text);
  });
  for (const std::string& module : snapshot.modules) redactor.learn_fact(module);
  for (const Distribution& package : snapshot.distributions.value) redactor.learn_fact(package.name);
  learn(redactor, owner_in(snapshot.environment));
  learn(redactor, owner);
  return redactor;
}

// Names of functions say nothing of who has them, and packed text could be taken for a token.
Json facts_only(Snapshot snapshot) {
  for (ExportTable& table : snapshot.exports.value.libraries) table.names.clear();
  return Json::parse(snapshot_to_json(snapshot));
}

// Applies `clean` to every text that a fix holds.
template <class Clean>
struct CleanFix {
  const Clean& clean;
  void operator()(InstallModule&) const {}
  void operator()(InstallModelPackage&) const {}
  void operator()(InstallPackages& fix) const {
    for (std::string& text : fix.requirements) clean(text);
  }
  void operator()(RebuildPackage& fix) const {
    clean(fix.project);
    for (auto& [name, value] : fix.environment) clean(value);
  }
  void operator()(RemoveShadow& fix) const { clean(fix.path); }
  void operator()(SetEnvironment& fix) const { clean(fix.value); }
  void operator()(ImportTorchFirst&) const {}
  void operator()(Advice& fix) const { clean(fix.text); }
};

template <class Clean>
void clean_finding(Finding& finding, const Clean& clean) {
  clean(finding.subject);
  clean(finding.summary);
  for (Evidence& evidence : finding.evidence) clean(evidence.value);
  for (Fix& fix : finding.fixes) std::visit(CleanFix<Clean>{clean}, fix);
  if (finding.demanded_by) clean(finding.demanded_by->file);
}

}  // namespace

void learn(TextRedactor& redactor, const Owner& owner) {
  for (const std::string& name : owner.users) redactor.learn_user(name);
  for (const std::string& path : owner.homes) redactor.learn_home(path);
  for (const std::string& name : owner.hosts) redactor.learn_host(name);
}

Owner own_names() {
  Owner owner{.users = {variable("USER"), variable("LOGNAME")},
              .homes = {variable("HOME")},
              .hosts = {variable("HOSTNAME")}};
  struct utsname names {};
  if (::uname(&names) == 0) owner.hosts.emplace_back(names.nodename);
  return owner;
}

Snapshot redacted(const Snapshot& snapshot, const Owner& owner) {
  Json json = facts_only(snapshot);
  const TextRedactor redactor = redactor_of(snapshot, owner, json);
  for_each_string(json, "", [&](const std::string& key, std::string& text) {
    text = names_a_secret(key) && !text.empty() ? TextRedactor::hidden() : redactor.clean(std::move(text));
  });
  auto facts = snapshot_from_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!facts) return Snapshot{};
  for (std::size_t i = 0; i < facts->exports.value.libraries.size(); ++i)
    facts->exports.value.libraries[i].names = snapshot.exports.value.libraries[i].names;
  return *std::move(facts);
}

Report redacted(Report report, const Owner& owner) {
  Json json = facts_only(report.snapshot);
  TextRedactor redactor = redactor_of(report.snapshot, owner, json);
  for (const auto& [kind, file] : report.compared_with) redactor.learn_from(file);
  const auto clean = [&](std::string& text) { text = redactor.clean(std::move(text)); };
  for (auto& [kind, file] : report.compared_with) clean(file);
  for (Finding& finding : report.findings) clean_finding(finding, clean);
  for (Outcome& outcome : report.outcomes) {
    clean(outcome.why);
    for (std::string& line : outcome.not_checked) clean(line);
    for (Finding& finding : outcome.findings) clean_finding(finding, clean);
  }
  report.snapshot = redacted(report.snapshot, owner);
  return report;
}

}  // namespace scankit
