// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/journal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "builder/fix/trust.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr std::array<std::pair<Journal::State, const char*>, 4> kStates = {
    {{Journal::State::Applying, "applying"},
     {Journal::State::Committed, "committed"},
     {Journal::State::Undoing, "undoing"},
     {Journal::State::Undone, "undone"}}};
constexpr std::array kKinds = {Operation::Kind::Place, Operation::Kind::Save, Operation::Kind::Replace,
                               Operation::Kind::Tree, Operation::Kind::Keep};

// from_json() must go on reading the journals of earlier releases, or restore cannot undo their fixes.
Json to_json(const Journal& journal) {
  Json json;
  json["schema"] = kSchema;
  json["id"] = journal.id;
  json["run"] = journal.run.empty() ? journal.id : journal.run;
  for (const auto& [state, name] : kStates)
    if (state == journal.state) json["state"] = name;
  json["module"] = journal.module;
  json["version"] = journal.version;
  json["note"] = journal.note;
  json["steps"] = journal.steps;
  json["operations"] = Json::array();
  for (const Operation& op : journal.operations)
    json["operations"].push_back({{"kind", kind_name(op.kind)},
                                  {"target", op.target},
                                  {"staged", op.staged},
                                  {"backup", op.backup},
                                  {"sha256", op.sha256}});
  return json;
}

// Absolute and normalised: check_journal() compares paths as texts, so each must have one spelling.
bool is_clean(const std::string& path) {
  return path.empty() ||
         (path[0] == '/' && path_normalize(path) == path && path.find('\0') == std::string::npos);
}

// Throws nlohmann::json::exception if a field is missing; from_json() catches it.
std::optional<Operation> operation_from(const Json& json) {
  Operation op;
  const std::string kind = json.at("kind");
  const auto known = std::find_if(kKinds.begin(), kKinds.end(), [&](auto k) { return kind == kind_name(k); });
  if (known == kKinds.end()) return std::nullopt;
  op.kind = *known;
  op.target = json.at("target");
  op.staged = json.at("staged");
  op.backup = json.at("backup");
  op.sha256 = json.at("sha256");
  if (op.target.empty() || !is_clean(op.target) || !is_clean(op.staged) || !is_clean(op.backup))
    return std::nullopt;
  return op;
}

std::optional<Journal> from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("schema") != kSchema) return std::nullopt;
    Journal journal;
    journal.id = json.at("id");
    journal.run = json.value("run", journal.id);  // before, a run was one journal
    if (!is_journal_id(journal.id) || !is_journal_id(journal.run)) return std::nullopt;
    const std::string state = json.at("state");
    const auto known =
        std::find_if(kStates.begin(), kStates.end(), [&](const auto& s) { return state == s.second; });
    if (known == kStates.end()) return std::nullopt;
    journal.state = known->first;
    journal.module = json.at("module");
    journal.version = json.at("version");
    journal.note = json.at("note");
    journal.steps = json.value("steps", std::vector<std::string>());  // 0.1.0 began without
    for (const Json& entry : json.at("operations")) {
      auto op = operation_from(entry);
      if (!op) return std::nullopt;
      journal.operations.push_back(std::move(*op));
    }
    return journal;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Result<std::vector<Journal>> StateFolder::journals() const {
  SCANKIT_CHECK(check_own_state(*this));
  std::vector<std::string> files;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(root_ + "/journal", code))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  if (code && code != std::errc::no_such_file_or_directory)
    return Error{Errc::Io, say("cannot read {}: {}", root_ + "/journal", code.message()), ""};
  std::sort(files.begin(), files.end());
  std::vector<Journal> journals;
  for (const std::string& file : files) {
    SCANKIT_TRY(const std::string text, read_whole_file(file));
    auto journal = from_json(text);
    if (!journal || journal->id + ".json" != path_basename(file))
      return Error{Errc::Malformed, say("{} is not a journal written by this scankit", file),
                   say("compare it with the other files there; as long as it exists, scankit changes "
                       "nothing in this environment")};
    // A journal that is done or undone asks for nothing now; it is checked when it is to be undone.
    const bool unfinished =
        journal->state == Journal::State::Applying || journal->state == Journal::State::Undoing;
    if (unfinished) SCANKIT_CHECK(check_journal(*this, *journal));
    journals.push_back(std::move(*journal));
  }
  return journals;
}

Result<std::string> StateFolder::next_id() const {
  SCANKIT_TRY(const auto known, journals());
  unsigned long last = 0;
  const auto taken = [&](const std::string& id) {
    last = std::max(last, std::strtoul(id.c_str(), nullptr, 10));
  };
  for (const Journal& journal : known) taken(journal.id);
  // A backup whose journal somebody removed is still a backup.
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(root_ + "/backup", code))
    if (is_journal_id(entry.path().filename())) taken(entry.path().filename());
  std::string id = std::to_string(last + 1);
  return std::string(id.size() < 4 ? 4 - id.size() : 0, '0') + id;
}

Result<void> StateFolder::hold_room() const {
  constexpr std::size_t kRoom = 256u << 10;
  SCANKIT_CHECK(make_directories(root_ + "/staging"));
  return write_file_atomically(root_ + "/staging/room", std::string(kRoom, ' '));
}

void StateFolder::release_room() const { ::unlink((root_ + "/staging/room").c_str()); }

Result<void> StateFolder::write(const Journal& journal) const {
  SCANKIT_CHECK(make_directories(root_ + "/journal"));
  return write_file_atomically(root_ + "/journal/" + journal.id + ".json", to_json(journal).dump(2) + "\n");
}

}  // namespace scankit
