// SPDX-License-Identifier: Apache-2.0
// Every function here must be repeatable: it looks at which of the names exist and sees from that how far an
// earlier call came that was killed. fix/kill_test.cc kills a transaction at each of its system calls.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "builder/fix/transaction.h"
#include "builder/fix/tree.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"

namespace scankit::fix {
namespace {

std::optional<struct stat> look(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

bool same_file(const std::string& a, const std::string& b) {
  const auto first = look(a), second = look(b);
  return first && second && first->st_dev == second->st_dev && first->st_ino == second->st_ino;
}

Errc code_of(int number) {
  return number == EACCES || number == EPERM || number == EROFS ? Errc::PermissionDenied : Errc::Io;
}

Error refused_move(const std::string& from, const std::string& to) {
  const int number = errno;
  return {code_of(number), say("cannot move {} to {}: {}", from, to, std::strerror(number)), ""};
}

Error something_is_there(const std::string& from, const std::string& to) {
  return {Errc::Conflict, message("cannot move {} to {}: the target exists", from, to), ""};
}

// Fails if `to` exists: what appeared there meanwhile is not ours to overwrite. If the kernel or the file
// system does not know RENAME_NOREPLACE, this is a check and a plain rename; the lock keeps other fixes out.
Result<void> move(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return something_is_there(from, to);
    if (errno != EINVAL && errno != ENOSYS) return refused_move(from, to);
    if (is_there(to)) return something_is_there(from, to);
    if (::rename(from.c_str(), to.c_str()) != 0) return refused_move(from, to);
  }
  SCANKIT_CHECK(fsync_directory(path_dirname(to)));
  return fsync_directory(path_dirname(from));
}

// rename(2) replaces `to` in one step, but does nothing if both are names of one file: callers rule that out.
Result<void> move_over(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return refused_move(from, to);
  SCANKIT_CHECK(fsync_directory(path_dirname(to)));
  return fsync_directory(path_dirname(from));
}

// Gives the bytes a second name before a rename takes the first. EEXIST: an earlier call made it.
Result<void> add_name(const std::string& file, const std::string& name) {
  if (::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, name.c_str(), 0) != 0 && errno != EEXIST) {
    const int number = errno;
    return Error{code_of(number), say("cannot link {} to {}: {}", file, name, std::strerror(number)), ""};
  }
  return fsync_directory(path_dirname(name));
}

Result<void> undo_replace(const Operation& op) {
  if (!is_there(op.backup)) return {};
  // The backup is still a second name of the target: nothing was replaced yet, or all was put back.
  if (same_file(op.backup, op.target)) {
    if (::unlink(op.backup.c_str()) == 0) return {};
    const int number = errno;
    return Error{code_of(number), say("cannot remove {}: {}", op.backup, std::strerror(number)), ""};
  }
  if (is_there(op.target)) SCANKIT_CHECK(add_name(op.target, op.staged));
  return move_over(op.backup, op.target);
}

// Puts the old files of a tree back. What an interrupted installer left cannot be told from what the
// user installed since, so it is kept in BACKUP.found; what a noted installer brought is dropped with
// the staging directory.
Result<void> undo_tree(const Operation& op, std::vector<std::string>& notes) {
  if (!is_there(op.backup)) return {};
  const std::string found = op.backup + ".found", dropped = op.staged + ".undone";
  const bool keep = is_there(found) || ended_unnoted(op.backup);
  const std::string& aside = keep ? found : dropped;
  SCANKIT_CHECK(make_directories(aside));
  SCANKIT_TRY(const auto lost, restore_tree(op.target, op.backup, aside));
  for (const std::string& file : lost)
    notes.push_back(say("{} was modified in place by the installer: its old content is lost",
                        path_join(op.target, file)));
  if (::rmdir(aside.c_str()) != 0 && keep)
    notes.push_back(say("new files found in {} were moved to {}", op.target, found));
  return move(op.backup, op.staged);  // names of files that are all back; dropped with the rest
}

Result<void> undo_keep(const Operation& op, std::vector<std::string>& notes) {
  if (op.backup.empty() ? !is_there(op.target) : !is_there(op.backup)) return {};
  if (was_edited(op)) {
    notes.push_back(say("{} was edited since and is left unchanged", op.target));
    return {};
  }
  return op.backup.empty() ? move(op.target, op.staged) : move_over(op.backup, op.target);
}

}  // namespace

bool was_edited(const Operation& op) {
  if (op.kind != Operation::Kind::Keep || op.sha256.empty() || !is_there(op.target)) return false;
  const auto now = sha256_file(op.target);
  return now && *now != op.sha256;
}

const char* kind_name(Operation::Kind kind) {
  switch (kind) {
    case Operation::Kind::Place:
      return "place";
    case Operation::Kind::Save:
      return "save";
    case Operation::Kind::Replace:
      return "replace";
    case Operation::Kind::Tree:
      return "tree";
    case Operation::Kind::Keep:
      return "keep";
  }
  return "";
}

Result<void> apply(const Operation& op) {
  switch (op.kind) {
    case Operation::Kind::Place:
      return is_there(op.staged) ? move(op.staged, op.target) : Result<void>();
    case Operation::Kind::Save:
      return is_there(op.backup) ? Result<void>() : move(op.target, op.backup);
    case Operation::Kind::Replace:
      if (!is_there(op.staged)) return {};
      SCANKIT_CHECK(add_name(op.target, op.backup));
      return move_over(op.staged, op.target);
    case Operation::Kind::Tree:
    case Operation::Kind::Keep:
      return is_there(op.staged) ? move(op.staged, op.backup) : Result<void>();
  }
  return {};
}

Result<void> undo(const Operation& op, std::vector<std::string>& notes) {
  switch (op.kind) {
    case Operation::Kind::Place:
      // Not there: pip removed it, or it never came.
      return !is_there(op.staged) && is_there(op.target) ? move(op.target, op.staged) : Result<void>();
    case Operation::Kind::Save:
      return is_there(op.backup) ? move(op.backup, op.target) : Result<void>();
    case Operation::Kind::Replace:
      return undo_replace(op);
    case Operation::Kind::Tree:
      return undo_tree(op, notes);
    case Operation::Kind::Keep:
      return undo_keep(op, notes);
  }
  return {};
}

Result<void> can_undo(const Operation& op) {
  const bool placed = op.kind == Operation::Kind::Place || op.kind == Operation::Kind::Replace;
  if (placed && !op.sha256.empty() && is_there(op.target)) {
    SCANKIT_TRY(const std::string now, sha256_file(op.target));
    if (now != op.sha256)
      return Error{Errc::Conflict, message("{} is no longer the file that scankit installed", op.target),
                   message("move it away, then run scankit restore again")};
  }
  if (op.kind == Operation::Kind::Save && is_there(op.backup) && is_there(op.target))
    return Error{Errc::Conflict,
                 message("{} exists again, so the backup cannot be restored there", op.target),
                 message("move it away, then run scankit restore again; the saved one is {}", op.backup)};
  if (op.kind != Operation::Kind::Place && !op.backup.empty() && !is_there(op.backup))
    return Error{Errc::NotFound,
                 message("the backup {} no longer exists: {} cannot be restored", op.backup, op.target), ""};
  return {};
}

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
  for (const BuildNote& one : journal.builds)
    json["builds"].push_back({{"package", one.package},
                              {"version", one.version},
                              {"torch", one.torch},
                              {"installer", one.installer},
                              {"record_sha256", one.record_sha256},
                              {"switches", one.switches}});
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
    const Json json = parse_json<Json>(text);
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
    for (const Json& one : json.value("builds", Json::array()))
      journal.builds.push_back({one.at("package"), one.at("version"), one.at("torch"), one.at("installer"),
                                one.at("record_sha256"),
                                one.at("switches").get<std::map<std::string, std::string>>()});
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
    return Error{Errc::Io, message("cannot read {}: {}", root_ + "/journal", code.message()), ""};
  std::sort(files.begin(), files.end());
  std::vector<Journal> journals;
  for (const std::string& file : files) {
    SCANKIT_TRY(const std::string text, read_whole_file(file));
    SCANKIT_CHECK(readable_schema(file, schema_number(parse_json_or_discard<Json>(text)), kSchema));
    auto journal = from_json(text);
    if (!journal || journal->id + ".json" != path_basename(file))
      return Error{Errc::Malformed, message("{} is not a journal written by this scankit", file),
                   message("compare it with the other files there; as long as it exists, scankit changes "
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

Result<void> can_be_written(const std::vector<Operation>& operations) {
  for (const Operation& op : operations)
    for (const std::string* path : {&op.target, &op.staged, &op.backup})
      if (!is_utf8(*path))
        return Error{Errc::Unsupported,
                     message("{} is not UTF-8: no journal can name it, and restore would not find its backup",
                             printable(*path)),
                     message("rename the directory or file, then run the command again")};
  return {};
}

Result<void> StateFolder::write(const Journal& journal) const {
  SCANKIT_CHECK(can_be_written(journal.operations));
  SCANKIT_CHECK(make_directories(root_ + "/journal"));
  return write_file_atomically(root_ + "/journal/" + journal.id + ".json",
                               dump_json(to_json(journal), 2) + "\n");
}

}  // namespace scankit::fix
