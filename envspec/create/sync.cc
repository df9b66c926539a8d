// SPDX-License-Identifier: Apache-2.0
// `scankit env sync`: an existing environment brought to the lock, as a transaction of builder/fix: every file
// gets a second name first, a failure brings all of them back, and `scankit restore` does so later.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "builder/fix/execute.h"
#include "builder/fix/install_target.h"
#include "builder/fix/transaction.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "doctor/report/progress.h"
#include "envspec/create/create.h"
#include "envspec/export/export.h"
#include "envspec/lock/install_metadata.h"

namespace scankit::envspec {
namespace {

struct Change {
  std::vector<const LockedDistribution*> install;  // missing, of another version, or with changed files
  std::vector<const Distribution*> remove;         // not in the lock
  bool empty() const { return install.empty() && remove.empty(); }
};

// The packages whose compiled files are not the locked ones, though their version may be.
Result<std::set<std::string>> with_other_files(const Subject& subject, const EnvironmentLock& lock) {
  HashCache cache("");
  EnvironmentLock now;
  SCANKIT_CHECK(lock_files(*subject.host, subject.snapshot, cache, {}, now));
  std::map<std::string, std::string> here;
  for (const LockedLibrary& one : now.libraries) here[one.path] = one.sha256;
  std::set<std::string> names;
  for (const LockedLibrary& one : lock.libraries)
    if (const auto found = here.find(one.path); found == here.end() || found->second != one.sha256)
      names.insert(one.distribution);
  return names;
}

// pip, setuptools and the like stay: an installer may be what this environment is changed with.
Result<Change> change_of(const Subject& subject, const EnvironmentLock& lock) {
  Change change;
  SCANKIT_TRY(const std::set<std::string> other_files, with_other_files(subject, lock));
  const auto& installed = subject.snapshot.distributions.value;
  for (const LockedDistribution& one : lock.distributions) {
    const Distribution* here = find_distribution(installed, one.name);
    if (here == nullptr || here->version != one.version || other_files.contains(one.name))
      change.install.push_back(&one);
  }
  std::set<std::string> seen;
  for (const Distribution& one : installed) {
    const std::string name = normalized_name(one.name);
    if (!seen.insert(name).second || is_installers_own(name) || find_locked(lock, name) != nullptr) continue;
    change.remove.push_back(&one);
  }
  return change;
}

// Processes that run from the environment, as "PID (COMMAND)": their next import would meet other files.
std::vector<std::string> processes_in(const Host& host, const std::string& prefix) {
  std::vector<std::string> found;
  const auto entries = host.list("/proc");
  for (const DirEntry& entry : entries ? *entries : std::vector<DirEntry>()) {
    if (entry.name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (entry.name == std::to_string(::getpid())) continue;
    const std::string folder = "/proc/" + entry.name;
    const auto command = host.read_file(folder + "/cmdline", 1u << 20);
    const auto maps = host.read_file(folder + "/maps", 16u << 20);
    const bool started = command && command->starts_with(prefix + "/bin/");
    const bool mapped = maps && maps->find(" " + prefix + "/") != std::string::npos;
    if (!started && !mapped) continue;
    const std::string program = command ? command->substr(0, command->find('\0')) : "";
    found.push_back(entry.name + " (" + path_basename(program) + ")");
  }
  return found;
}

std::string pinned(const std::string& name, const std::string& version) { return name + "==" + version; }

Result<void> check_environment(const Host& host, const Subject& subject, const EnvironmentLock& lock,
                               const SyncRequest& request) {
  const Python& python = subject.snapshot.python.value;
  if (python.kind != "venv" && python.kind != "uv")
    return Error{Errc::InvalidArgument,
                 message("{} is not a virtual environment ({})", python.prefix, python.kind),
                 message("make one from the lock: scankit env create .venv --lock {}", request.lock_file)};
  if (const auto foreign = probes::foreign_code(host, python)) return fix::foreign_place(*foreign);
  if (!fits(python, wish_of(lock)))
    return Error{Errc::InvalidArgument,
                 message("{} has {} {}, and {} is for {} {}", python.prefix, python.implementation,
                         python.version, request.lock_file, lock.python.implementation, lock.python.version),
                 message("make another environment: scankit env create DIR --lock {}", request.lock_file)};
  const auto lines = obstacles(lock, subject.snapshot);
  if (lines.empty()) return {};
  return Error{
      Errc::InvalidArgument,
      message("{} cannot be installed here, and nothing was changed: {}", request.lock_file, clauses(lines)),
      message("lock again where the environment is: scankit env lock")};
}

// The commands of one change: packages go before others come, whose files may have the same names.
std::vector<installer::InstallerCommand> commands_of(const installer::Installer& installer,
                                                     const Change& change, const std::string& requirements,
                                                     const SyncRequest& request,
                                                     const std::vector<std::string>& folders) {
  const bool uv = installer.kind == installer::Installer::Kind::Uv;
  std::vector<installer::InstallerCommand> commands;
  const auto begin = [&](const char* verb) {
    std::vector<std::string> argv = installer.program;
    if (uv)
      argv.insert(argv.end(), {"pip", verb, "--python", installer.environment});
    else
      argv.insert(argv.end(), {"--disable-pip-version-check", "--no-input", verb});
    return argv;
  };
  const std::vector<std::string> variables = {"PIP_USER=0"};
  if (!change.remove.empty()) {
    std::vector<std::string> argv = begin("uninstall");
    if (!uv) argv.emplace_back("--yes");
    for (const Distribution* one : change.remove) argv.push_back(one->name);
    commands.push_back({argv, variables, "", {}});
  }
  if (change.install.empty()) return commands;
  std::vector<std::string> argv = begin("install");
  argv.insert(argv.end(), {"--no-deps", "--require-hashes", uv ? "--reinstall" : "--force-reinstall"});
  if (!request.offline.empty()) argv.emplace_back("--no-index");
  for (const std::string& folder : folders) argv.insert(argv.end(), {"--find-links", folder});
  argv.insert(argv.end(), {"-r", requirements});
  commands.push_back({argv, variables, "", {}});
  return commands;
}

// What the transaction of one sync needs.
struct Work {
  const SyncRequest& request;
  const Subject& subject;
  const EnvironmentLock& lock;
  const std::vector<installer::InstallerCommand>& commands;
  int lock_descriptor;
};

// The record describes what is there now; one of an earlier creation would call every file changed.
Result<EnvironmentRecord> new_record(const Work& work, const std::string& python,
                                     const std::string& installer, std::vector<ProofStep> proof) {
  SubjectOptions options;
  options.python = python;
  SCANKIT_TRY(const Subject now, look_at(options));
  SCANKIT_TRY(EnvironmentRecord record, make_record(*now.host, now.snapshot, work.lock));
  record.lock_sha256 = sha256_hex(lock_to_json(work.lock));
  record.installer = installer;
  record.proof = std::move(proof);
  return record;
}

Result<std::vector<ProofStep>> change_and_prove(fix::Transaction& transaction, fix::Staging& staging,
                                                const Work& work, CreateStage& stage) {
  const Python& python = work.subject.snapshot.python.value;
  report::Progress progress;
  progress.act(say("hard-linking every file of {} into the backup", python.prefix));
  SCANKIT_TRY(const fix::Operation tree, staging.leave_tree(python.prefix));
  SCANKIT_CHECK(transaction.apply({tree}));
  for (const installer::InstallerCommand& command : work.commands) {
    progress.act(say("running: {}", installer::shown(command)));
    transaction.add_step(message("ran: {}", installer::shown(command)));
    SCANKIT_CHECK(fix::run_installer(command, work.lock_descriptor));
  }
  SCANKIT_CHECK(transaction.note_ends());
  stage = CreateStage::Proving;
  return prove(fix::interpreter_of(python), work.request.lock_file, work.request.cache_dir);
}

Result<std::vector<ProofStep>> run_sync(const fix::StateFolder& state, const Work& work, std::string& id,
                                        CreateStage& stage) {
  stage = CreateStage::Installing;
  SCANKIT_TRY(id, state.next_id());
  fix::Journal journal;
  journal.id = journal.run = id;
  journal.module = "env sync";
  journal.version = path_basename(work.request.lock_file);
  fix::Staging staging(state, id);
  SCANKIT_CHECK(staging.make_folders(work.subject.snapshot.python.value.prefix));
  fix::Transaction transaction(state, std::move(journal));
  auto proof = change_and_prove(transaction, staging, work, stage);
  Result<void> done = proof ? fix::Interruption::check() : Result<void>(proof.error());
  if (done) done = transaction.commit();
  if (!done) return transaction.roll_back(done.error());
  return proof;
}

Result<Subject> look_at_environment(const SyncRequest& request, const EnvironmentLock& lock) {
  SubjectOptions options;
  options.python = request.python;
  SCANKIT_TRY(Subject subject, look_at(options));
  if (!subject.snapshot.python.present())
    return Error{Errc::NotFound, message("no environment to sync: {}", why_missing(subject.snapshot.python)),
                 message("choose one with --python")};
  SCANKIT_CHECK(check_environment(*subject.host, subject, lock, request));
  return subject;
}

// Directories with wheels that are no index's, or that are to be used instead of one.
std::vector<std::string> folders_of(const SyncRequest& request, const Host& host) {
  std::vector<std::string> folders;
  for (const std::string& folder :
       {request.offline, path_join(path_dirname(request.lock_file), std::string(kWheelFolder))})
    if (const std::string path = path_normalize(path_join(current_directory(), folder));
        !folder.empty() && host.is_directory(path))
      folders.push_back(path);
  return folders;
}

SyncResult planned(const Python& python, const Change& change) {
  SyncResult result;
  result.environment = python.prefix;
  result.python = fix::interpreter_of(python);
  for (const LockedDistribution* one : change.install)
    result.installed.push_back(pinned(one->name, one->version));
  for (const Distribution* one : change.remove) result.removed.push_back(pinned(one->name, one->version));
  return result;
}

// Makes the change; the caller has the lock of the environment, where no earlier change is unfinished.
Result<SyncResult> sync_locked(const SyncRequest& request, const Subject& subject,
                               const EnvironmentLock& lock, int lock_descriptor, CreateStage& stage) {
  const Host& host = *subject.host;
  const Python& python = subject.snapshot.python.value;
  SCANKIT_TRY(const Change change, change_of(subject, lock));
  SyncResult result = planned(python, change);
  if (change.empty()) return result;
  if (const auto users = processes_in(host, python.prefix); !users.empty() && !request.in_use)
    return Error{Errc::Conflict,
                 message("{} is in use, and nothing was changed: process {}", python.prefix, join(users)),
                 message("end it first, or change the environment all the same with --in-use")};
  const installer::Installer installer = installer::installer_of(host, subject.snapshot);
  if (installer.kind != installer::Installer::Kind::Uv && installer.kind != installer::Installer::Kind::Pip)
    return Error{Errc::NotFound, installer.why, installer.instead};
  result.installer = installer::name_of(installer.kind);
  EnvironmentLock changed;
  for (const LockedDistribution* one : change.install) changed.distributions.push_back(*one);
  const std::vector<std::string> folders = folders_of(request, host);
  SCANKIT_TRY(const FoundWheels wheels, find_wheels(changed, folders, !request.offline.empty()));
  SCANKIT_TRY(const TemporaryDirectory work, TemporaryDirectory::create("scankit-sync"));
  const std::string requirements = path_join(work.path(), "requirements.txt");
  std::string text;
  for (const LockedDistribution& one : changed.distributions) text += requirement_line(one);
  SCANKIT_CHECK(write_file_atomically(requirements, text));
  const auto commands = commands_of(installer, change, requirements, request, folders);
  const Work all{request, subject, lock, commands, lock_descriptor};
  SCANKIT_TRY(auto proof, run_sync(fix::StateFolder(python.prefix), all, result.journal, stage));
  SCANKIT_TRY(result.record, new_record(all, result.python, result.installer, std::move(proof)));
  SCANKIT_CHECK(write_file_atomically(path_join(python.prefix, kRecordFile), record_to_json(result.record)));
  return result;
}

}  // namespace

// An earlier change that was killed is undone first: what is installed is only then what is to be changed.
Result<SyncResult> sync_environment(const SyncRequest& request, CreateStage& stage) {
  const auto begin = std::chrono::steady_clock::now();
  SCANKIT_TRY(const EnvironmentLock lock, read_lock(request.lock_file));
  SCANKIT_TRY(Subject subject, look_at_environment(request, lock));
  const Python& python = subject.snapshot.python.value;
  if (request.dry_run) {
    SCANKIT_TRY(const Change change, change_of(subject, lock));
    return planned(python, change);
  }
  const fix::StateFolder state(python.prefix);
  SCANKIT_TRY(const fix::Lock held, fix::Lock::take(state.root()));
  const fix::Interruption interruption;
  std::vector<std::string> lines;
  SCANKIT_CHECK(fix::recover(state, lines));
  for (const std::string& line : lines) report::progress_note(line);
  if (!lines.empty()) {
    SCANKIT_TRY(subject, look_at_environment(request, lock));
  }
  SCANKIT_TRY(SyncResult result, sync_locked(request, subject, lock, held.descriptor(), stage));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace scankit::envspec
