// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/redact.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "doctor/model/snapshot.h"

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

template <class Use>
void for_each_message(const Json& json, const Use& use) {
  if (json.is_object() && json.contains("message") && json.contains("arguments"))
    return use(json.get<Message>());
  if (json.is_structured())
    for (const Json& entry : json) for_each_message(entry, use);
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

// Of a variable the name tells what its value is: MASTER_ADDR=node17. Fields of the model are lower case.
std::string told_by(const std::string& key) {
  const bool variable =
      !key.empty() && std::ranges::none_of(key, [](char c) { return c >= 'a' && c <= 'z'; });
  return variable ? key + "=" : "";
}

std::string cleaned(const TextRedactor& redactor, const std::string& key, const std::string& text) {
  const std::string told = told_by(key);
  const std::string clean = redactor.clean(told + text);
  return clean.starts_with(told) ? clean.substr(told.size()) : redactor.clean(text);
}

// All that the facts tell of their owner, and what `owner` adds.
void learn_facts(TextRedactor& redactor, const Snapshot& snapshot, const Owner& owner, Json& json) {
  for (const std::string& module : snapshot.modules) redactor.learn_fact(module);
  for (const Distribution& package : snapshot.distributions.value) redactor.learn_fact(package.name);
  for_each_string(json, "", [&](const std::string& key, std::string& text) {
    const bool version = key == "installed" || key.find("version") != std::string::npos;
    if (version && redaction::is_ipv4(text)) redactor.learn_fact(text);
  });
  // Phrases that tell of a host or a user stand in the sentence, their names in its arguments.
  for_each_message(json, [&](const Message& message) { redactor.learn_from(message.english()); });
  for_each_string(json, "", [&](const std::string& key, std::string& text) {
    redactor.learn_from(told_by(key) + text);
    if (key == "uuid" || key == "serial") redactor.learn_serial(text);
  });
  for (const std::string& prompt : snapshot.log.value.prompts) redactor.learn_from(prompt);
  learn(redactor, owner_in(snapshot.environment));
  learn(redactor, owner);
}

// Names of functions say nothing of who has them, and packed text could be taken for a token.
Json facts_only(Snapshot snapshot) {
  for (ExportTable& table : snapshot.exports.value.libraries) table.names.clear();
  return parse_json<Json>(snapshot_to_json(snapshot));
}

// Cleans the arguments of a sentence, so that it can still be translated. Where the whole sentence tells more
// of its owner than its arguments do ("on login03"), it becomes a plain text.
template <class Clean>
void clean_message(Message& message, const Clean& clean) {
  std::string whole = message.english();
  clean(whole);
  if constexpr (!std::is_invocable_v<const Clean&, const std::string&>) {
    message.change_texts(clean);
    if (message.english() != whole) message = Message(whole);
  }
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
  void operator()(BuildProject& fix) const { clean(fix.folder); }
  void operator()(KeepOnly& fix) const {
    clean(fix.requirement);
    for (std::string& text : fix.others) clean(text);
  }
  void operator()(RemoveShadow& fix) const { clean(fix.path); }
  void operator()(SetEnvironment& fix) const { clean(fix.value); }
  void operator()(ImportTorchFirst&) const {}
  void operator()(Advice& fix) const { clean_message(fix.text, clean); }
};

template <class Clean>
void clean_finding(Finding& finding, const Clean& clean) {
  clean(finding.subject);
  clean_message(finding.summary, clean);
  for (Evidence& evidence : finding.evidence) clean(evidence.value);
  for (Fix& fix : finding.fixes) std::visit(CleanFix<Clean>{clean}, fix);
  if (finding.demanded_by) clean(finding.demanded_by->file);
}

template <class Clean>
void clean_answer(Report& report, const Clean& clean) {
  for (auto& [kind, file] : report.compared_with) clean(file);
  for (Finding& finding : report.findings) clean_finding(finding, clean);
  for (Outcome& outcome : report.outcomes) {
    clean_message(outcome.why, clean);
    for (Message& line : outcome.not_checked) clean_message(line, clean);
    for (Finding& finding : outcome.findings) clean_finding(finding, clean);
  }
}

// "HF_TOKEN" for "--hf-token"; "" for a word that is no option, or that has its value behind "=".
std::string option_as_variable(std::string_view word) {
  const auto name = word.find_first_not_of('-');
  if (name == 0 || name == std::string_view::npos || word.find('=') != std::string_view::npos) return "";
  std::string variable(word.substr(name));
  for (char& c : variable) {
    if (c == '-') c = '_';
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return variable;
}

// `--token abc` is two words of a command line: the first one tells what the second is.
void hide_secret_words(Snapshot& facts) {
  if (!facts.command) return;
  auto& words = facts.command->words;
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (const std::string name = option_as_variable(words[i]); !name.empty() && names_a_secret(name))
      words[i + 1] = TextRedactor::hidden();
}

Snapshot clean_snapshot(const Snapshot& snapshot, const TextRedactor& redactor, Json json) {
  for_each_string(json, "", [&](const std::string& key, std::string& text) {
    text = names_a_secret(key) && !text.empty() ? TextRedactor::hidden() : cleaned(redactor, key, text);
  });
  auto facts = snapshot_from_json(dump_json(json));
  if (!facts) return Snapshot{};
  for (std::size_t i = 0; i < facts->exports.value.libraries.size(); ++i)
    facts->exports.value.libraries[i].names = snapshot.exports.value.libraries[i].names;
  hide_secret_words(*facts);
  return *std::move(facts);
}

// name:password:uid:gid:full name:home:shell
std::array<std::string, 7> passwd_fields(std::string_view line) {
  std::array<std::string, 7> fields;
  for (std::string& field : fields) {
    const auto end = std::min(line.find(':'), line.size());
    field = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

}  // namespace

// Read as a file: getpwuid() of a static glibc loads the modules of another glibc.
void add_accounts(std::string_view passwd, unsigned own_uid, Owner& owner) {
  constexpr unsigned kFirstPerson = 1000, kNobody = 65534;
  while (!passwd.empty()) {
    const auto end = std::min(passwd.find('\n'), passwd.size());
    const auto fields = passwd_fields(passwd.substr(0, end));
    passwd.remove_prefix(std::min(end + 1, passwd.size()));
    unsigned uid = 0;
    const auto read = std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), uid);
    if (read.ec != std::errc() || (uid != own_uid && uid < kFirstPerson) || uid == kNobody) continue;
    owner.users.push_back(fields[0]);
    owner.homes.push_back(fields[5]);
    const std::string full_name = fields[4].substr(0, fields[4].find(','));
    if (full_name.find(' ') != std::string::npos) owner.users.push_back(full_name);
  }
}

void learn(TextRedactor& redactor, const Owner& owner) {
  for (const std::string& name : owner.users) redactor.learn_user(name);
  for (const std::string& path : owner.homes) redactor.learn_home(path);
  for (const std::string& name : owner.hosts) redactor.learn_host(name);
}

Owner own_names() {
  constexpr std::size_t kPasswdLimit = 4u << 20;
  Owner owner{.users = {variable("USER"), variable("LOGNAME")},
              .homes = {variable("HOME")},
              .hosts = {variable("HOSTNAME")}};
  struct utsname names {};
  if (::uname(&names) == 0) owner.hosts.emplace_back(names.nodename);
  if (const auto passwd = read_whole_file("/etc/passwd", kPasswdLimit))
    add_accounts(*passwd, ::getuid(), owner);
  return owner;
}

std::string redact_help() {
  return say(
      "replace credentials, user and host names, home directories, URL hosts, e-mail, IP and MAC addresses "
      "and GPU "
      "serial numbers; not replaced: names of projects, packages and files, and secrets without a known form "
      "or label");
}

Snapshot redacted(const Snapshot& snapshot, const Owner& owner) {
  Json json = facts_only(snapshot);
  TextRedactor redactor;
  learn_facts(redactor, snapshot, owner, json);
  return clean_snapshot(snapshot, redactor, std::move(json));
}

Report redacted(Report report, const Owner& owner) {
  Json json = facts_only(report.snapshot);
  TextRedactor redactor;
  learn_facts(redactor, report.snapshot, owner, json);
  clean_answer(report, [&](const std::string& text) { redactor.learn_from(text); });
  clean_answer(report, [&](std::string& text) { text = redactor.clean(std::move(text)); });
  report.snapshot = clean_snapshot(report.snapshot, redactor, std::move(json));
  return report;
}

Error redacted(Error error, const Owner& owner) {
  TextRedactor redactor;
  redactor.learn_from(error.message.english());
  learn(redactor, owner);
  const auto clean = [&](std::string& text) { text = redactor.clean(std::move(text)); };
  clean_message(error.message, clean);
  clean_message(error.hint, clean);
  return error;
}

}  // namespace scankit
