// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ci/fleet/commands.h"
#include "ci/fleet/report.h"
#include "ci/gate/policy.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "envspec/create/create.h"

// What `env create` and `env sync` recorded of a node's environments, as facts: nodes made from one lock have
// the same signature, and a node with another one is named with the packages that differ.
namespace scankit::fleet {
namespace {

constexpr std::size_t kShortHash = 12;  // hexadecimal digits: enough to tell apart, and short on a line

// The first names, and how many more there are.
std::string changes_in_words(const std::vector<envspec::RecordChange>& changes) {
  std::vector<std::string> names;
  for (const envspec::RecordChange& change : changes) names.push_back(change.name);
  return names.empty() ? "none" : node_names(names, 4);
}

// Errc::NotFound adds nothing: where other nodes have a record, "none" is what a node without it has.
void add_record(const std::string& fact, const std::string& folder, Facts& facts) {
  const auto record = envspec::read_record(folder);
  if (!record) {
    if (record.error().code != Errc::NotFound) facts[fact] = say("unknown: {}", record.error().message);
    return;
  }
  facts[fact] = record->signature().substr(0, kShortHash);
  facts[fact + std::string(kLockFact)] = record->lock_sha256.substr(0, kShortHash);
  const auto changes = envspec::changes_since(folder, *record);
  facts[fact + std::string(kChangesFact)] =
      changes ? changes_in_words(*changes) : say("unknown: {}", changes.error().message);
  for (const auto& [name, hash] : record->content) {
    const auto package = std::ranges::find(record->packages, name, &envspec::RecordedPackage::name);
    const std::string version = package == record->packages.end() ? "" : package->version + " ";
    facts[fact + std::string(kPackageFact) + name] = version + hash.substr(0, kShortHash);
  }
}

// The environments that the command names: of `env check --record`, and of the policy of `ci run`.
std::vector<std::string> named_records(const std::vector<std::string>& command) {
  if (command.empty()) return {};
  std::vector<std::string> folders;
  if (const std::string folder = option_value(command, "--record"); !folder.empty())
    folders.push_back(folder);
  if (command.front() != "ci") return folders;
  const std::string policy = option_value(command, "--policy");
  const auto read = gate::read_policy(policy.empty() ? gate::kPolicyFile : policy);
  if (!read) return folders;  // the command itself says what is wrong with it
  for (const gate::RecordRule& rule : read->records) folders.push_back(rule.folder);
  return folders;
}

}  // namespace

Facts record_facts(const std::vector<std::string>& command, const std::string& prefix) {
  Facts facts;
  if (!prefix.empty()) add_record("record", prefix, facts);
  for (const std::string& folder : named_records(command)) {
    const std::string path = path_normalize(path_join(current_directory(), folder));
    if (path != path_normalize(prefix)) add_record("record:" + folder, path, facts);
  }
  return facts;
}

}  // namespace scankit::fleet
