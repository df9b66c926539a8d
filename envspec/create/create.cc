// SPDX-License-Identifier: Apache-2.0
// `scankit env create`: everything that can be refused is refused first; then the environment is made aside,
// proven, and moved to its name as the last step.
#include "envspec/create/create.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "builder/fix/transaction.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/python/sys_path.h"
#include "doctor/report/progress.h"
#include "envspec/create/create_plan.h"
#include "envspec/export/export.h"

namespace scankit::envspec {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// pip copies every file; uv may only link them, so that nothing can be said of it.
Result<void> check_free_space(const EnvironmentLock& lock, installer::Installer::Kind kind,
                              const std::string& target) {
  std::uint64_t needed = 0;
  for (const LockedLibrary& one : lock.libraries) needed += one.size;
  struct statvfs info {};
  if (kind != installer::Installer::Kind::Pip || ::statvfs(path_dirname(target).c_str(), &info) != 0)
    return {};
  const std::uint64_t left = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (left >= needed) return {};
  return Error{Errc::Io,
               message("the compiled files of the lock need {}, but only {} is free in {}",
                       size_in_words(needed), size_in_words(left), path_dirname(target)),
               message("free some space, or choose a directory on another disk")};
}

// The first demand of the spec that the resolver's choice does not meet. The driver and the GPUs are this
// machine's, which is not what was made. What cannot be read is not taken for right.
Result<ProofStep> check_against_spec(const Spec& spec, const Subject& made) {
  ProofStep step{"spec", "passed", "", 0};
  for (const Outcome& outcome : check_spec(spec, made.snapshot, made.facts)) {
    if (outcome.check == "spec-driver" || outcome.check == "spec-gpus") continue;
    if (outcome.state == CheckState::Unknown) step = {"spec", "not_verified", outcome.why, 0};
    for (const Finding& finding : outcome.findings)
      if (finding.severity() == Severity::Error)
        return Error{Errc::Malformed,
                     message("the resolved packages do not satisfy {}: {}", spec.file, finding.summary),
                     message("change the range, or name an index that has such a package")};
  }
  return step;
}

// link(2) replaces nothing: a lock that appeared meanwhile is somebody's.
Result<void> write_new_file(const std::string& path, const std::string& text) {
  SCANKIT_TRY(const TemporaryDirectory beside,
              TemporaryDirectory::create_in(path_dirname(path), "scankit-lock"));
  const std::string whole = path_join(beside.path(), path_basename(path));
  SCANKIT_CHECK(write_output(whole, text));
  if (::link(whole.c_str(), path.c_str()) == 0) return fsync_directory(path_dirname(path));
  if (errno == EEXIST)
    return Error{Errc::Conflict, message("{} was created by somebody else in the meantime", path),
                 message("make its environment: scankit env create DIR --lock {}", shell_quoted(path))};
  return Error{Errc::Io, message("cannot create {}: {}", path, std::strerror(errno)), ""};
}

// What of a new lock cannot be made again. conda's packages are on conda's list.
std::optional<Message> lacking_files(const EnvironmentLock& lock) {
  const auto lacks = [](const LockedDistribution& one) { return !one.artifact && one.source != "conda"; };
  const auto count = std::ranges::count_if(lock.distributions, lacks);
  if (count == 0) return std::nullopt;
  const auto first = std::ranges::find_if(lock.distributions, lacks);
  return message("the lock names no file for {} of its {} packages, and cannot make them again: {}=={}: {}",
                 count, lock.distributions.size(), first->name, first->version, first->why_no_artifact);
}

// One creation, from the plan to the result.
class Creation {
 public:
  Creation(const CreateRequest& request, CreatePlan plan, const Aside& aside)
      : request_(request), plan_(std::move(plan)), aside_(aside) {}

  Result<CreateResult> run(CreateStage& stage) {
    stage = CreateStage::Installing;
    SCANKIT_CHECK(install());
    stage = CreateStage::Proving;
    SCANKIT_CHECK(prove_it());
    SCANKIT_CHECK(finish());
    SCANKIT_CHECK(put_in_place());
    result_.seconds = seconds_since(begin_);
    return result_;
  }

 private:
  std::string installed_by() const {
    return plan_.conda ? "conda" : installer::name_of(plan_.installer.kind);
  }

  // Of a spec the lock is written next to it, just before the environment is there.
  std::string lock_file() const {
    return plan_.spec ? path_join(path_dirname(request_.spec_file), kLockFile) : request_.lock_file;
  }

  Result<void> install() {
    report::Progress progress;
    if (plan_.conda) {
      SCANKIT_CHECK(make_conda_part(progress));
      SCANKIT_CHECK(take_its_python());
    }
    InstallRequest install{.installer = plan_.installer,
                           .base = plan_.base.program,
                           .environment = aside_.environment(),
                           .tools = aside_.work(),
                           .lock = aside_.lock(),
                           .offline = !request_.offline.empty(),
                           .over_installed = plan_.conda.has_value(),
                           .find_links = plan_.find_links,
                           .index_deadline = request_.index_deadline};
    if (!plan_.conda) {
      progress.act(say("making an environment with Python {} ({})",
                       plan_.base.subject.snapshot.python.value.version, plan_.base.program));
      SCANKIT_CHECK(make_venv(install));
    }
    return install_packages(install, progress);
  }

  Result<void> make_conda_part(report::Progress& progress) const {
    const CondaRequest request{
        .conda = *plan_.conda,
        .environment = aside_.environment(),
        .tools = aside_.work(),
        .lock = aside_.lock(),
        .offline =
            request_.offline.empty() ? "" : path_normalize(path_join(current_directory(), request_.offline))};
    progress.act(say("making an environment with {} {} ({})", path_basename(request.conda.program),
                     request.conda.version, request.conda.program));
    return plan_.spec ? make_resolved_conda(request, plan_.spec->python)
                      : make_locked_conda(request, plan_.lock);
  }

  // Only now it is known which Python it is, and which wheels are for it.
  Result<void> take_its_python() {
    SCANKIT_TRY(plan_.base, with_facts(aside_.python(), plan_.conda->found_by));
    const Snapshot& made = plan_.base.subject.snapshot;
    if (!fits(made.python.value, plan_.spec ? wish_of_spec(*plan_.spec) : wish_of(plan_.lock)))
      return Error{Errc::Malformed,
                   message("conda installed {} {}, which is another Python than is needed",
                           made.python.value.implementation, made.python.value.version),
                   ""};
    if (const auto lines = obstacles(plan_.lock, made, true); !lines.empty())
      return not_installable(request_.lock_file, lines);
    SCANKIT_TRY(plan_.installer, installer_of_plan(*plan_.base.subject.host, made, "pip"));
    return {};
  }

  Result<void> install_packages(InstallRequest& install, report::Progress& progress) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string installer = installer::name_of(plan_.installer.kind);
    if (plan_.spec) {
      SCANKIT_CHECK(install_of_spec(install, installer, progress));
    } else {
      const EnvironmentLock ready = without_packages(plan_.lock, plan_.builds);
      progress.act(announcement(ready, installer));
      SCANKIT_CHECK(install_locked(install, ready, plan_.wheels));
      if (!plan_.builds.empty()) {
        SCANKIT_TRY(const installer::Installer chosen, installer_for(install));
        SCANKIT_TRY(build_notes_, build_sources(install, chosen, plan_.lock, plan_.builds));
      }
    }
    SCANKIT_CHECK(fix::Interruption::check());
    report::progress_note(say("installed {} with {} in {:.1f} s",
                              size_in_words(size_of_tree(aside_.environment())), installed_by(),
                              seconds_since(begin)));
    return {};
  }

  // The packages first: a module of ours is built with the NVRTC that torch brings.
  Result<void> install_of_spec(InstallRequest& install, const std::string& installer,
                               report::Progress& progress) {
    const ResolverWish wish = resolver_wish(*plan_.spec);
    install.only_wheels = wish.only_wheels;
    install.only_sources = wish.only_sources;
    progress.act(say("installing with {}: {}", installer,
                     wish.requirements.empty() ? say("nothing") : join(wish.requirements)));
    if (!wish.requirements.empty()) SCANKIT_CHECK(install_resolved(install, wish.requirements));
    SCANKIT_TRY(build_notes_, install_against_torch(install, wish));
    SCANKIT_TRY(made_by_, installer_for(install));
    return install_own_modules(*plan_.spec, aside_.environment(), request_.folder, request_.cache_dir);
  }

  // "installing 25 packages with uv, 2.5 GB to download at most"
  std::string announcement(const EnvironmentLock& lock, const std::string& installer) const {
    std::uint64_t bytes = 0;
    std::size_t packages = 0;
    for (const LockedDistribution& one : lock.distributions) {
      packages += one.artifact ? 1 : 0;
      if (one.artifact && !plan_.wheels.contains(one.name)) bytes += one.artifact->size;
    }
    if (bytes == 0)
      return say_n(packages, "installing {} package with {}", "installing {} packages with {}", packages,
                   installer);
    return say_n(packages, "installing {} package with {}, at most {} to download",
                 "installing {} packages with {}, at most {} to download", packages, installer,
                 size_in_words(bytes));
  }

  Result<Subject> look() const {
    SubjectOptions options;
    options.python = aside_.python();
    options.find_extensions = plan_.spec.has_value();
    if (plan_.spec)
      for (const ExtensionSpec& one : plan_.spec->extensions) options.modules.push_back(one.module);
    return look_at(options);
  }

  // Of a spec, the lock is made first: the environment is then held to it like any other.
  Result<void> prove_it() {
    SCANKIT_TRY(const Subject made, look());
    if (plan_.spec) {
      SCANKIT_TRY(ProofStep met, check_against_spec(*plan_.spec, made));
      proof_.push_back(std::move(met));
      SCANKIT_TRY(plan_.lock, request_.make_lock(made, made_by_));
      if (auto note = lacking_files(plan_.lock)) build_notes_.push_back(*std::move(note));
    }
    lock_hash_ = hash_of(plan_.lock);
    SCANKIT_TRY(const auto steps,
                prove_with_builds(made, plan_.lock, lock_file(), plan_.builds, request_.cache_dir));
    proof_.insert(proof_.end(), steps.begin(), steps.end());
    return {};
  }

  // The record belongs to what is moved, so that it is there from the first moment.
  Result<void> finish() {
    SCANKIT_TRY(const Subject made, look());
    SCANKIT_TRY(result_.rewritten, relocate(aside_.environment()));  // changes the times of some RECORDs
    SCANKIT_TRY(result_.record, make_record(*made.host, made.snapshot, plan_.lock));
    result_.record.lock_sha256 = lock_hash_;
    result_.record.installer = installed_by();
    result_.record.proof = proof_;
    SCANKIT_CHECK(make_directories(path_join(aside_.environment(), ".scankit")));
    SCANKIT_CHECK(
        write_file_atomically(path_join(aside_.environment(), kRecordFile), record_to_json(result_.record)));
    describe(made);
    return fix::Interruption::check();
  }

  // Both or none: whatever fails takes the lock of a spec back, and DIR with it.
  Result<void> put_in_place() const {
    if (plan_.spec) SCANKIT_CHECK(write_new_file(lock_file(), lock_to_json(plan_.lock)));
    Result<void> done = aside_.move();
    if (done) done = check_start();
    if (!done && plan_.spec) (void)::unlink(lock_file().c_str());
    return done;
  }

  void describe(const Subject& made) {
    const Python& base = plan_.base.subject.snapshot.python.value;
    result_.folder = aside_.target();
    result_.python = base.version;
    result_.python_program = plan_.conda ? plan_.conda->program : plan_.base.program;
    result_.python_found_by = plan_.base.found_by;
    result_.libmamba = plan_.conda && plan_.conda->kind == CondaProgram::Kind::Libmamba;
    result_.installer = installed_by();
    result_.lock_file = lock_file();
    result_.torch = made.snapshot.torch.value.version;
    result_.packages = made.snapshot.distributions.value.size();
    result_.bytes = size_of_tree(aside_.environment());
    result_.notes = plan_.notes;
    result_.notes.insert(result_.notes.end(), build_notes_.begin(), build_notes_.end());
    if (base.version != plan_.lock.python.version)
      result_.notes.push_back(
          message("the lock was made with Python {}, and this is {}: the same wheels fit both",
                  plan_.lock.python.version, base.version));
  }

  // The last proof is in its place: the interpreter starts there and calls it its own.
  Result<void> check_start() const {
    ProcessRequest request;
    request.argv = {path_join(aside_.target(), "bin/python"), "-I", "-B", "-c",
                    "import sys; print(sys.prefix)"};
    const auto said = run_process(request);
    if (said && said->ok() && trimmed(said->out) == aside_.target()) return {};
    aside_.move_back();
    return Error{Errc::ToolFailed, message("{} does not start, and was removed", request.argv[0]),
                 said ? Message(std::string(trimmed(said->err))) : said.error().message};
  }

  const CreateRequest& request_;
  CreatePlan plan_;
  const Aside& aside_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<ProofStep> proof_;
  std::vector<Message> build_notes_;
  installer::Installer made_by_;  // of a spec
  std::string lock_hash_;  // of the lock as it was read: what is built again takes the place of its libraries
  CreateResult result_;
};

}  // namespace

std::uint64_t size_of_tree(const std::string& folder) {
  namespace fs = std::filesystem;
  std::uint64_t bytes = 0;
  std::error_code code;
  for (auto at = fs::recursive_directory_iterator(folder, code);
       !code && at != fs::recursive_directory_iterator(); at.increment(code))
    if (!at->is_symlink(code) && at->is_regular_file(code)) bytes += at->file_size(code);
  return bytes;
}

void forget_diversions() {
  (void)::unsetenv("PYTHONPATH");
  for (const char* variable : installer::kPlaceVariables) (void)::unsetenv(variable);
}

Result<CreateResult> create_environment(const CreateRequest& request, CreateStage& stage) {
  forget_diversions();
  const auto host = make_real_host();
  SCANKIT_TRY(const std::string target, check_new_folder(request.folder, request.lock_file));
  SCANKIT_TRY(CreatePlan plan, create_plan(*host, request));
  SCANKIT_CHECK(check_free_space(plan.lock, plan.installer.kind, target));
  const fix::Interruption interruption;
  std::vector<std::string> removed;
  SCANKIT_TRY(const Aside aside, Aside::begin(request.folder, removed));
  for (const std::string& path : removed)
    report::progress_note(say("removed {}, which a killed scankit left", path));
  return Creation(request, std::move(plan), aside).run(stage);
}

}  // namespace scankit::envspec
