// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/result.h"

// How an environment is changed so that the change stays as a whole or not at all: one process at a time (Lock),
// written down first (Journal), believed only if it is ours (check_*), made and undone (Transaction).
namespace scankit::fix {

// Serialises the processes that change one environment. The kernel releases the lock when its last holder
// dies: the descriptor is inherited by installers, so the lock outlives a scankit that is killed.
class Lock {
 public:
  // Errc::Conflict if another process has the lock; the message has that process's id.
  static Result<Lock> take(const std::string& folder);
  int descriptor() const { return fd_.get(); }  // a child that inherits it holds the lock too
  // Releases the lock and removes the lock file, and the directory if nothing else is in it. For a run that
  // changed nothing in an environment that had no .scankit before.
  void leave_no_trace() &&;

 private:
  Lock(Descriptor fd, std::string folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}
  Descriptor fd_;
  std::string folder_;
};

// While an object lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the process, so that a change
// can be undone first. One object at a time: the state is global, as signal handlers are.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();
  static int signal();  // 0: none came
  // Errc::Conflict once a signal has come.
  static Result<void> check();
};

// One change of an environment. It is made of renames, so that a kill leaves it undone or done. apply() and
// undo() may be repeated: a half-finished list is undone again from its end.
struct Operation {
  enum class Kind {
    Place,    // staged -> target, where nothing was
    Save,     // target -> backup: a file of the user's steps aside
    Replace,  // the two in one: the name never dangles
    Tree,  // the folder `target` is left to an installer; `backup`, first made as `staged`, is its old state
    Keep   // the file `target` is left to a program; `backup` is a copy, "" where there was none
  };
  Kind kind = Kind::Place;
  // Absolute paths on one file system; "" if the kind has none. `staged` is where a new file waits and where
  // undo() puts it back, or for Tree and Keep where the backup is made first. `backup` is where the old
  // state is kept.
  std::string target, staged, backup;
  std::string sha256;  // of what is placed, or of what the program left; empty for a folder
};

Result<void> apply(const Operation& operation);
// `notes` gets a line for each thing that could not be as before, or that was put somewhere else.
Result<void> undo(const Operation& operation, std::vector<std::string>& notes);
// Errc::Conflict if undoing would lose something: the placed file was changed since, or the place of the
// saved one is taken again. Changes nothing.
Result<void> can_undo(const Operation& operation);
// Whether undo() would leave the file alone, since somebody edited it after the fix. Keep only.
bool was_edited(const Operation& operation);

// Errc::Unsupported names a path that is not UTF-8: JSON cannot hold it, and restore would look for another one.
Result<void> can_be_written(const std::vector<Operation>& operations);

const char* kind_name(Operation::Kind kind);  // "place", "save", "replace", "tree", "keep"

// A package that a fix had built from source, for locks: its files do not tell with which variables.
struct BuildNote {
  std::string package, version;
  std::string torch;          // that was installed: "2.11.0+cu130"
  std::string installer;      // "pip", "uv"
  std::string record_sha256;  // of its RECORD then: what was installed since is another build
  std::map<std::string, std::string> switches;  // build variables (doctor/declared/variables.cc)
  bool operator==(const BuildNote&) const = default;
};

// What one part of a fix changes in an environment, written down before it is changed:
// <base>/.scankit/journal/ID.json. The doctor reads the states too (doctor/probes/packages/repairs.cc), so
// new ones must be taught to it.
struct Journal {
  enum class State {
    Applying,   // found at a start: the fix was killed; it is undone
    Committed,  // what `scankit restore` undoes
    Undoing,    // found at a start: undoing goes on
    Undone
  };
  std::string id;   // "0001"
  std::string run;  // the first id of the `scankit fix` that it is a part of; restore takes back a whole run
  State state = State::Applying;
  std::string module, version;     // what was installed
  std::string note;                // why it was undone
  std::vector<std::string> steps;  // what was done and how it is undone, a line each, for people
  std::vector<Operation> operations;
  std::vector<BuildNote> builds;
};

// The folder <base>/.scankit of one environment, on the file system of its site-packages.
class StateFolder {
 public:
  explicit StateFolder(std::string base) : root_(std::move(base) + "/.scankit") {}
  const std::string& root() const { return root_; }
  std::string staging(const std::string& id) const { return root_ + "/staging/" + id; }
  std::string backup(const std::string& id) const { return root_ + "/backup/" + id; }

  // Takes up disk space while there is some, and release_room() frees it for the undoing: on a full disk the
  // undoing must still be able to write that it is done.
  Result<void> hold_room() const;
  void release_room() const;

  // All journals, oldest first; empty if there never was one. Errc::Malformed names a journal that cannot be
  // read, or an unfinished one that asks for something that no fix does. Errc::PermissionDenied if the
  // directory is not our own.
  Result<std::vector<Journal>> journals() const;
  // An id that no journal and no backup has.
  Result<std::string> next_id() const;
  // Replaces the journal atomically, so a kill leaves the state before or the one after. Writes nothing if
  // can_be_written() refuses it.
  Result<void> write(const Journal& journal) const;

 private:
  std::string root_;
};

// An environment travels: in archives, in images, on shared disks. A `.scankit` in it travels along, so what
// it says may come from somebody else. scankit acts on it only if this user or root wrote it, and only if it
// names what a fix of this environment could have written.

// Errc::PermissionDenied if the directory is a link, belongs to somebody else, or may be written by others.
// check_own_state() checks the state directory and everything directly in its three directories. A directory
// that does not exist passes.
Result<void> check_own_folder(const std::string& folder);
Result<void> check_own_state(const StateFolder& state);

// Digits only, four or more: it becomes a part of paths that are removed.
bool is_journal_id(const std::string& id);

// Errc::Malformed if the journal names a path that no fix of this environment writes. Whatever a fix stages
// and saves is in its own directories; what it places is in the environment, or is the record of the project
// around it; and what it moved away from other places is something that Python imports.
Result<void> check_journal(const StateFolder& state, const Journal& journal);

// The files outside of the environment, with links resolved as they are now, that undoing these journals
// would touch. Whoever wrote a journal chose them, so the user has to agree.
std::set<std::string> outside_of(const StateFolder& state, const std::vector<Journal>& journals);

// Whether the way from `root` to root/path leads over a symbolic link. `checked` keeps the directories
// without a link between calls for the same root.
bool passes_a_link(const std::string& root, const std::string& path, std::set<std::string>& checked);

// A change of an environment that stays as a whole or not at all. Whatever it does next is in the journal
// before it is done, so that the next scankit can undo a kill at any point. The caller decides the order of
// the operations: the one that changes what Python imports comes last. Errors are in English, as the
// journal's note is.
class Transaction {
 public:
  Transaction(const StateFolder& state, Journal journal) : state_(state), journal_(std::move(journal)) {}

  // Adds the operations to the journal and makes them; may be called several times. Staged files must be
  // where the operations say.
  Result<void> apply(const std::vector<Operation>& operations);
  void note_builds(std::vector<BuildNote> builds) { journal_.builds = std::move(builds); }
  void add_step(const Message& line) { journal_.steps.push_back(line.english()); }
  // A program has ended: what it made of the files that were left to it belongs to the fix from now on.
  Result<void> note_ends();
  Result<void> commit();
  // Undoes everything. The answer is `why`, together with whatever went wrong in undoing.
  Error roll_back(const Error& why);
  const Journal& journal() const { return journal_; }

 private:
  const StateFolder& state_;
  Journal journal_;
};

// A whole transaction without a program in between: applies the operations of `journal`, then asks `verify`.
Result<void> run_transaction(const StateFolder& state, Journal journal,
                             const std::function<Result<void>()>& verify);

// If a fix or a restore was killed, brings the environment back to the state before that fix. `done` gets a
// line for each, and further ones that the user should know.
Result<void> recover(const StateFolder& state, std::vector<std::string>& done);

// Undoes the last committed journal and returns it; its note says what could not be as before. Errc::NotFound
// if there is none.
Result<Journal> undo_last(const StateFolder& state);
// The last committed journal of that run alone.
Result<Journal> undo_last_of(const StateFolder& state, const std::string& run);

// The run of the last committed journal, "" where there is none.
Result<std::string> last_run(const StateFolder& state);
// The journals that are neither done nor undone. recover() brings them to an end.
Result<std::vector<Journal>> interrupted(const StateFolder& state);
// What `scankit restore` takes back: the interrupted runs, else the last one.
Result<std::vector<Journal>> next_to_undo(const StateFolder& state);

}  // namespace scankit::fix
