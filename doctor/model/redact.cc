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

void learn(TextRedactor& redactor, const Owner& owner) {
  for (const std::string& name : owner.users) redactor.learn_user(name);
  for (const std::string& path : owner.homes) redactor.learn_home(path);
  for (const std::string& name : owner.hosts) redactor.learn_host(name);
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

}  // namespace

Owner own_names() {
  Owner owner{.users = {variable("USER"), variable("LOGNAME")},
              .homes = {variable("HOME")},
              .hosts = {variable("HOSTNAME")}};
  struct utsname names {};
  if (::uname(&names) == 0) owner.hosts.emplace_back(names.nodename);
  return owner;
}

Snapshot redacted(const Snapshot& snapshot, const Owner& owner) {
  Snapshot facts_only = snapshot;
  // Names of functions say nothing of who has them, and packed text could be taken for a token.
  for (ExportTable& table : facts_only.exports.value.libraries) table.names.clear();
  Json json = Json::parse(snapshot_to_json(facts_only));
  TextRedactor redactor;
  for_each_string(json, "", [&](const std::string& key, std::string& text) {
    redactor.learn_from(text);
    if (key == "uuid" || key == "serial") redactor.learn_serial(text);
  });
  for (const std::string& module : snapshot.modules) redactor.learn_fact(module);
  for (const Distribution& package : snapshot.distributions.value) redactor.learn_fact(package.name);
  learn(redactor, owner_in(snapshot.environment));
  learn(redactor, owner);
  for_each_string(json, "", [&](const std::string& key, std::string& text) {
    text = names_a_secret(key) && !text.empty() ? TextRedactor::hidden() : redactor.clean(std::move(text));
  });
  auto facts = snapshot_from_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!facts) return Snapshot{};
  for (std::size_t i = 0; i < facts->exports.value.libraries.size(); ++i)
    facts->exports.value.libraries[i].names = snapshot.exports.value.libraries[i].names;
  return *std::move(facts);
}

}  // namespace scankit
