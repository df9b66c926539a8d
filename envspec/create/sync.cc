// SPDX-License-Identifier: Apache-2.0
// `scankit env sync`: an existing environment brought to the lock, as a transaction of builder/fix: every file
// gets a second name first, a failure brings all of them back, and `scankit restore` does so later.
#include <unistd.h>

#include <algorithm>

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

// `python` of a shell that has activated the environment: its argv[0] has no directory, its file is the base's.
bool is_activated_python(const Host& host, const std::string& folder, const std::string& program,
                         const std::string& prefix) {
  if (!program.starts_with("python")) return false;
  const auto variables = host.read_file(folder + "/environ", 4u << 20);
  const auto all = variables ? split(*variables, std::string_view("\0", 1)) : std::vector<std::string>();
  return std::ranges::find(all, "VIRTUAL_ENV=" + prefix) != all.end();
}

// Processes that run from the environment, as "PID (COMMAND)": their next import would meet other files.
// `unknown` gets the number of those that this user may not look at.
std::vector<std::string> processes_in(const Host& host, const std::string& prefix, std::size_t& unknown) {
  std::vector<std::string> found;
  const auto entries = host.list("/proc");
  for (const DirEntry& entry : entries ? *entries : std::vector<DirEntry>()) {
    if (entry.name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (entry.name == std::to_string(::getpid())) continue;
    const std::string folder = "/proc/" + entry.name;
    const auto command = host.read_file(folder + "/cmdline", 1u << 20);
    const auto maps = host.read_file(folder + "/maps", 16u << 20);
    const std::string program = command ? command->substr(0, command->find('\0')) : "";
    if (!maps && maps.error().code == Errc::PermissionDenied) ++unknown;
    const bool started =
        program.starts_with(prefix + "/bin/") || is_activated_python(host, folder, program, prefix);
    const bool mapped = maps && maps->find(" " + prefix + "/") != std::string::npos;
    if (!started && !mapped) continue;
    found.push_back(entry.name + " (" + path_basename(program) + ")");
  }
  return found;
}

Result<void> check_environment(const Host& host, const Subject& subject, const EnvironmentLock& lock,
                               const SyncRequest& request) {
  const Python& python = subject.snapshot.python.value;
  if (python.kind == "conda")
    return Error{
        Errc::InvalidArgument,
        message("{} is a conda environment, whose packages only conda may change; nothing was changed",
                python.prefix),
        message("make a new one from the lock: scankit env create DIR --lock {} --installer conda",
                shell_quoted(request.lock_file))};
  if (python.kind != "venv" && python.kind != "uv")
    return Error{Errc::InvalidArgument,
                 message("{} is not a virtual environment ({})", python.prefix, python.kind),
                 message("make one from the lock: scankit env create .venv --lock {}",
                         shell_quoted(request.lock_file))};
  if (const auto foreign = probes::foreign_code(host, python)) return fix::foreign_place(*foreign);
  if (!fits(python, wish_of(lock)))
    return Error{Errc::InvalidArgument,
                 message("{} has {} {}, and {} is for {} {}", python.prefix, python.implementation,
                         python.version, request.lock_file, lock.python.implementation, lock.python.version),
                 message("make another environment: scankit env create DIR --lock {}",
                         shell_quoted(request.lock_file))};
  const auto lines = obstacles(lock, subject.snapshot);
  if (lines.empty()) return {};
  return Error{Errc::InvalidArgument,
               message("{} cannot be installed here, and nothing was changed: {}", request.lock_file,
                       first_lines(lines)),
               message("lock again where the environment is: scankit env lock")};
}

// The commands of one change: packages go before others come, whose files may have the same names.
std::vector<installer::InstallerCommand> commands_of(const installer::Installer& installer,
                                                     const SyncChange& change,
                                                     const std::string& requirements,
                                                     const InstallRequest& installing) {
  std::vector<installer::InstallerCommand> commands;
  if (!change.remove.empty()) {
    std::vector<std::string> argv = installer.program;
    if (installer.kind == installer::Installer::Kind::Uv)
      argv.insert(argv.end(), {"pip", "uninstall", "--python", installer.environment, "--"});
    else
      argv.insert(argv.end(), {"--disable-pip-version-check", "--no-input", "uninstall", "--yes", "--"});
    argv.insert(argv.end(), change.remove.begin(), change.remove.end());
    commands.push_back({argv, {"PIP_USER=0"}, installer::folder_of(installer), {}});
  }
  if (!change.install.empty()) commands.push_back(locked_install(installing, installer, requirements, false));
  return commands;
}

// What the transaction of one sync needs.
struct Work {
  const SyncRequest& request;
  const Subject& subject;
  const EnvironmentLock& lock;
  const SyncChange& change;
  const installer::Installer& installer;
  std::vector<installer::InstallerCommand> commands;
  InstallRequest building;           // of what is built again
  std::vector<Message> build_notes;  // what of that was left out
};

// After the change, once: what follows writes nothing into the environment.
Result<Subject> look_again(const Work& work) {
  SubjectOptions options;
  options.python = fix::interpreter_of(work.subject.snapshot.python.value);
  return look_at(options);
}

// The proof and the record, while everything can still be undone. The record describes what is there now; one of an
// earlier creation would call every file changed.
Result<EnvironmentRecord> prove_and_record(const Work& work, const Subject& now) {
  EnvironmentLock lock = work.lock;
  std::vector<SourceBuild> builds = work.change.build;
  builds.insert(builds.end(), work.change.kept.begin(), work.change.kept.end());
  SCANKIT_TRY(auto proof,
              prove_with_builds(now, lock, work.request.lock_file, builds, work.request.cache_dir));
  SCANKIT_TRY(EnvironmentRecord record, make_record(*now.host, now.snapshot, lock));
  record.lock_sha256 =
      hash_of(work.lock);  // as it was read: what was built is in the place of its libraries by now
  record.installer = installer::name_of(work.installer.kind);
  record.proof = std::move(proof);
  SCANKIT_CHECK(fix::Interruption::check());
  return record;
}

Result<void> write_record(const std::string& prefix, const EnvironmentRecord& record) {
  const std::string file = path_join(prefix, kRecordFile);
  SCANKIT_CHECK(make_directories(path_dirname(file)));
  return write_file_atomically(file, record_to_json(record));
}

// What the journal says of the builds, for whoever locks the environment next.
std::vector<fix::BuildNote> notes_of_builds(const Work& work, const Subject& now) {
  std::vector<fix::BuildNote> notes;
  for (const SourceBuild& build : work.change.build) {
    std::vector<std::string> variables;
    for (const auto& [name, value] : locked_build_variables(work.lock, build))
      variables.push_back(name + "=" + value);
    if (auto note =
            fix::note_of_build(now.snapshot, build.name, installer::name_of(work.installer.kind), variables))
      notes.push_back(*std::move(note));
  }
  return notes;
}

// After the other packages, which the builds may import.
Result<void> make_builds(fix::Transaction& transaction, Work& work) {
  if (work.change.build.empty()) return {};
  for (const SourceBuild& build : work.change.build)
    transaction.add_step(message("built {}=={} from {}", build.name, build.version, build.archive.file));
  SCANKIT_TRY(work.build_notes, build_sources(work.building, work.installer, work.lock, work.change.build));
  return {};
}

Result<EnvironmentRecord> change_and_prove(fix::Transaction& transaction, fix::Staging& staging, Work& work,
                                           CreateStage& stage) {
  const Python& python = work.subject.snapshot.python.value;
  report::Progress progress;
  progress.act(say("hard-linking every file of {} into the backup", python.prefix));
  SCANKIT_TRY(const fix::Operation tree, staging.leave_tree(python.prefix));
  SCANKIT_CHECK(transaction.apply({tree}));
  for (const installer::InstallerCommand& command : work.commands) {
    progress.act(say("running: {}", installer::shown(command)));
    transaction.add_step(message("ran: {}", installer::shown(command)));
    SCANKIT_CHECK(fix::run_installer(command, work.building.lock));
  }
  SCANKIT_CHECK(make_builds(transaction, work));
  SCANKIT_TRY(const Subject now, look_again(work));
  transaction.note_builds(notes_of_builds(work, now));
  SCANKIT_CHECK(transaction.note_ends());
  stage = CreateStage::Proving;
  return prove_and_record(work, now);
}

Result<EnvironmentRecord> run_sync(const fix::StateFolder& state, Work& work, std::string& id,
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
  auto record = change_and_prove(transaction, staging, work, stage);
  Result<void> done = record ? transaction.commit() : Result<void>(record.error());
  if (!done) return transaction.roll_back(done.error());
  return record;
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

SyncResult planned(const Python& python, const SyncChange& change) {
  SyncResult result;
  result.environment = python.prefix;
  result.python = fix::interpreter_of(python);
  for (const LockedDistribution* one : change.install)
    result.installed.push_back(one->name + "==" + one->version);
  result.built = change.build;
  result.kept = change.kept;
  result.removed = change.removed;
  result.notes = change.notes;
  return result;
}

// Where nothing is to be installed or removed, it is still shown to be the locked one, and recorded so.
Result<void> confirm(const Work& work, SyncResult& result, CreateStage& stage) {
  stage = CreateStage::Proving;
  SCANKIT_TRY(result.record, prove_and_record(work, work.subject));
  return write_record(result.environment, result.record);
}

Result<void> check_unused(const Host& host, const std::string& prefix, bool in_use) {
  std::size_t unknown = 0;
  const auto users = processes_in(host, prefix, unknown);
  if (unknown > 0)
    report::progress_note(say_n(unknown, "{} process cannot be inspected, and may run from {}",
                                "{} processes cannot be inspected, and may run from {}", unknown, prefix));
  if (users.empty() || in_use) return {};
  return Error{Errc::Conflict,
               message("{} is in use, and nothing was changed: process {}", prefix, join(users)),
               message("stop it first, or change the environment all the same with --in-use")};
}

// One "NAME==VERSION --hash" line each, for all that is to be installed from a file.
Result<void> write_requirements(const std::string& file, const SyncChange& change) {
  std::string text;
  EnvironmentLock changed;
  for (const LockedDistribution* one : change.install) changed.distributions.push_back(*one);
  for (const LockedDistribution* one : installable(changed).with_hash) text += requirement_line(*one);
  return write_file_atomically(file, text);
}

// What can be refused, while nothing is changed.
Result<void> check_changeable(const SyncRequest& request, const Subject& subject, const SyncChange& change,
                              const installer::Installer& installer, const std::string& work) {
  const Host& host = *subject.host;
  const Python& python = subject.snapshot.python.value;
  SCANKIT_CHECK(check_unused(host, python.prefix, request.in_use));
  if (installer.kind != installer::Installer::Kind::Uv && installer.kind != installer::Installer::Kind::Pip)
    return Error{Errc::NotFound, installer.why, installer.instead};
  SCANKIT_CHECK(installer::check_not_diverted(host, python, installer));
  if (change.build.empty()) return {};
  return check_build_place(work, message("set TMPDIR to another directory"));
}

// Makes the change; the caller has the lock of the environment, where no earlier change is unfinished.
Result<SyncResult> sync_locked(const SyncRequest& request, const Subject& subject,
                               const EnvironmentLock& lock, int lock_descriptor, CreateStage& stage) {
  const Host& host = *subject.host;
  const Python& python = subject.snapshot.python.value;
  const std::vector<std::string> folders = wheel_folders(host, request.offline, request.lock_file);
  SCANKIT_TRY(const SyncChange change, change_of(subject, lock, folders, !request.offline.empty()));
  SyncResult result = planned(python, change);
  const installer::Installer installer = installer::installer_of(host, subject.snapshot);
  result.installer = installer::name_of(installer.kind);
  SCANKIT_TRY(const TemporaryDirectory tools, TemporaryDirectory::create("scankit-sync"));
  Work work{request, subject, lock, change, installer, {}, {}, {}};
  if (change.empty()) {
    SCANKIT_CHECK(confirm(work, result, stage));
    return result;
  }
  SCANKIT_CHECK(check_changeable(request, subject, change, installer, tools.path()));
  const std::string requirements = path_join(tools.path(), "requirements.txt");
  SCANKIT_CHECK(write_requirements(requirements, change));
  work.building = {.base = result.python,
                   .environment = python.prefix,
                   .tools = tools.path(),
                   .lock = lock_descriptor,
                   .offline = !request.offline.empty(),
                   .over_installed = true,
                   .find_links = folders};
  work.commands = commands_of(installer, change, requirements, work.building);
  SCANKIT_TRY(result.record, run_sync(fix::StateFolder(python.prefix), work, result.journal, stage));
  result.notes.insert(result.notes.end(), work.build_notes.begin(), work.build_notes.end());
  if (const auto written = write_record(python.prefix, result.record); !written)
    result.notes.push_back(message("the record was not written: {}", written.error().message));
  return result;
}

}  // namespace

// An earlier change that was killed is undone first: what is installed is only then what is to be changed. It
// is looked at before the lock is taken for its place alone, and again where nobody else can change it.
Result<SyncResult> sync_environment(const SyncRequest& request, CreateStage& stage) {
  const auto begin = std::chrono::steady_clock::now();
  forget_diversions();
  SCANKIT_TRY(const EnvironmentLock lock, read_lock(request.lock_file));
  SCANKIT_TRY(Subject subject, look_at_environment(request, lock));
  SCANKIT_CHECK(check_offline(*subject.host, request.offline));
  if (request.dry_run) {
    SCANKIT_TRY(const SyncChange change,
                change_of(subject, lock, wheel_folders(*subject.host, request.offline, request.lock_file),
                          !request.offline.empty()));
    return planned(subject.snapshot.python.value, change);
  }
  const fix::StateFolder state(subject.snapshot.python.value.prefix);
  SCANKIT_TRY(const fix::Lock held, fix::Lock::take(state.root()));
  const fix::Interruption interruption;
  std::vector<std::string> lines;
  SCANKIT_CHECK(fix::recover(state, lines));
  for (const std::string& line : lines) report::progress_note(line);
  SCANKIT_TRY(subject, look_at_environment(request, lock));
  SCANKIT_TRY(SyncResult result, sync_locked(request, subject, lock, held.descriptor(), stage));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace scankit::envspec
