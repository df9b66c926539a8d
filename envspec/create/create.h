// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"
#include "envspec/check/check.h"
#include "envspec/lock/lock.h"

// `scankit env create` and `env sync`: an environment made from a lock or a spec, or brought to a lock. The
// parts of both, in the order in which they are used. README.md says why a new environment is made aside.
namespace scankit::envspec {

// 1. What is asked for, before anything is made ------------------------------------------------------------

// What cannot be installed again, with its reason, a line each: packages without a file, wheels for
// another machine or Python. Empty where the lock can be installed by this Python.
// `conda_installs`: conda's packages are no obstacle.
std::vector<std::string> obstacles(const EnvironmentLock& lock, const Snapshot& here,
                                   bool conda_installs = false);
// The first twelve lines and the number of the others, in one sentence.
std::string first_lines(const std::vector<std::string>& lines);

// Removes the variables by which a shell diverts programs from the environment that they are started for:
// where modules come from, and where pip and uv install to. For this process and its children.
void forget_diversions();

// The interpreter that an environment is made with, and what was passed over.
struct BasePython {
  Subject subject;       // the facts of this machine with that Python
  std::string program;   // the interpreter's own file
  std::string found_by;  // "--python", "uv python find", "pyenv", "PATH", "CONDA_EXE"
};
// The facts of this machine with that Python.
Result<BasePython> with_facts(const std::string& program, std::string found_by);
struct PythonWish {
  std::string asked;                  // --python; "": it is looked for
  std::string version;                // of a lock, "3.11.7"; "" for none
  VersionRange range;                 // of a spec
  std::string implementation, soabi;  // "" for any
};
// The first Python of the same minor version, one of exactly that version before all others. Errc::NotFound
// says which one is missing, which ones are here, and how it is got.
Result<BasePython> find_base_python(const Host& host, const PythonWish& wish);

// Directories with wheels that are no index's, or that are to be used instead of one: --offline, and the one next to
// the lock. Absolute, each once.
std::vector<std::string> wheel_folders(const Host& host, const std::string& offline,
                                       const std::string& lock_file);

// Whether a Python is the one that the wish asks for, but for the patch version of a lock.
bool fits(const Python& python, const PythonWish& wish);
PythonWish wish_of(const EnvironmentLock& lock);

// The uv or pip that installs: uv where the user has one, unless only pip's settings name an index. `wanted`:
// "uv" or "pip" alone; "" for either.
struct EnvInstaller {
  installer::Installer::Kind kind = installer::Installer::Kind::None;
  std::string
      program;      // uv's file; of pip the directory of its package, "" where ensurepip has to install it
  std::string why;  // how it was found
};
Result<EnvInstaller> find_env_installer(const Host& host, const Snapshot& base, const std::string& wanted);

// An Error where --offline names a directory that does not exist; "" is no --offline.
Result<void> check_offline(const Host& host, const std::string& folder);
// Wheels that are here already: by distribution, where each was found with the hash of the lock.
using FoundWheels = std::map<std::string, std::string>;
// `offline`: every file of the lock must be in `folders`, or the Error names each one that is missing or has
// another hash. Otherwise only those that were built locally must be, since no index has them.
Result<FoundWheels> find_wheels(const EnvironmentLock& lock, const std::vector<std::string>& folders,
                                bool offline);
// Where the file is, "" with the reason in `why` where it is in none of the directories with that hash.
std::string find_file(const LockedArtifact& artifact, const std::vector<std::string>& folders,
                      std::string& why);

// A package that is built again from its source archive.
struct SourceBuild {
  std::string name, version;
  LockedArtifact archive;
  std::string path;  // where the archive is; "": it is downloaded from its URL
};
// Those whose wheel is in none of the directories, and whose archive is there or can be downloaded.
std::vector<SourceBuild> sources_to_build(const EnvironmentLock& lock,
                                          const std::vector<std::string>& folders, bool offline);
EnvironmentLock without_packages(const EnvironmentLock& lock, const std::vector<SourceBuild>& builds);

// 2. Made aside ---------------------------------------------------------------------------------------------

// The directory that becomes DIR: WORK/NAME, where WORK is next to DIR. Whatever ends scankit, DIR is not
// there or is whole; WORK is removed at the end, or by the next `env create` if scankit was killed.
class Aside {
 public:
  // `folder` is DIR as the user named it. Errc::InvalidArgument where something is there that is not an empty
  // directory. `removed` gets what a killed scankit had left.
  static Result<Aside> begin(const std::string& folder, std::vector<std::string>& removed);
  const std::string& target() const { return target_; }       // DIR, absolute
  const std::string& work() const { return work_.path(); }    // for files of ours
  const std::string& environment() const { return making_; }  // what becomes DIR
  std::string python() const { return path_join(making_, "bin/python"); }
  int lock() const { return work_.lock(); }
  // One rename(2), after everything is on the disk. Errc::Conflict if DIR has come into being meanwhile.
  Result<void> move() const;
  // Takes DIR back to where it was made, after a failure that only showed in its place.
  void move_back() const;

 private:
  Aside(std::string target, TemporaryDirectory work)
      : target_(std::move(target)),
        work_(std::move(work)),
        making_(path_join(work_.path(), path_basename(target_))) {}
  std::string target_;
  TemporaryDirectory work_;
  std::string making_;
};
// The checks of begin() alone, which change nothing. Returns DIR as an absolute path. `lock_file`: by which an
// environment that is there could be synced; "" for none.
Result<std::string> check_new_folder(const std::string& folder, const std::string& lock_file = "");

// 3. Installed ----------------------------------------------------------------------------------------------

struct InstallRequest {
  EnvInstaller installer;
  std::string base;         // the interpreter that the environment is made with
  std::string environment;  // its directory
  std::string tools;        // a directory of ours
  int lock = -1;            // its descriptor: the installer holds it too
  bool offline = false;
  bool over_installed = false;          // what is installed counts, and gives way to what is installed now
  std::vector<std::string> find_links;  // directories with wheels
  std::chrono::seconds index_deadline{120};
  std::vector<std::string> only_wheels, only_sources;  // packages, where the spec says how each is got
};
// A venv without any package.
Result<void> make_venv(const InstallRequest& request);
// Every package of the lock that has a file, by its hash, and no other. Where the installer fails, the index
// is asked about all of them, what has a URL is downloaded, and the Error names all that are not available.
Result<void> install_locked(const InstallRequest& request, const EnvironmentLock& lock,
                            const FoundWheels& found);
// The user's installer for the new environment.
Result<installer::Installer> installer_for(const InstallRequest& request);
// Its command that installs the lines of a requirements file with their hashes.
installer::InstallerCommand locked_install(const InstallRequest& request,
                                           const installer::Installer& installer,
                                           const std::string& requirements, bool only_wheels);
// The same with other words after those that every installation here has.
installer::InstallerCommand install_command(const InstallRequest& request,
                                            const installer::Installer& installer,
                                            const std::vector<std::string>& words);
// By the file's own URL; Errc::Malformed where it has another hash than the lock says.
Result<void> download_file(const LockedArtifact& artifact, const std::string& folder);
// Builds each package against what is installed, and installs its wheel. Nothing of an archive is read before its hash
// is that of the lock. Without isolation where its build needs torch (fix/local_package.h). The notes say what of a
// build was left out.
Result<std::vector<Message>> build_sources(const InstallRequest& request,
                                           const installer::Installer& installer, const EnvironmentLock& lock,
                                           const std::vector<SourceBuild>& builds);
// Errc::NotFound where device code of the lock must be compiled and the nvcc that torch would take is missing or of
// another CUDA. The notes are what could not be found out, which is not a pass.
Result<std::vector<Message>> check_toolchain(const EnvironmentLock& lock,
                                             const std::vector<SourceBuild>& builds, const Snapshot& here);
// "nvcc 12.9.86 -> 13.0.88; torch 2.10.0 -> 2.11.0": what was known and is another one now, "" for nothing.
std::string toolchain_differences(const LockedBuild& locked, const LockedToolchain& here,
                                  const std::string& torch);
// An Error where builds cannot be made next to that directory; `next`: what the user can do.
Result<void> check_build_place(const std::string& work, Message next);
// The variables that make the build the locked one: architectures, switches of a project's setup.py. Sorted.
std::vector<std::pair<std::string, std::string>> locked_build_variables(const EnvironmentLock& lock,
                                                                        const SourceBuild& build);
// What the resolver of the installer chooses within the requirements, with all dependencies.
Result<void> install_resolved(const InstallRequest& request, const std::vector<std::string>& requirements);

// Prepares PARENT/WORK/NAME to become PARENT/NAME: takes WORK out of every path that an installer wrote, in
// programs, activation scripts, links and pyvenv.cfg, and removes byte code, which has it too. An Error names
// any other file that contains WORK, which must occur nowhere else. Returns the rewritten files.
Result<std::vector<std::string>> relocate(const std::string& environment);

// 4. Proven -------------------------------------------------------------------------------------------------

// This program as a child, without byte code, which would contain the path where the environment was made.
Result<ProcessResult> run_ourselves(std::vector<std::string> words);
// Why such a child did not end well: the sentence of its JSON, or its last line.
Message why_of(const ProcessResult& result);

// What `from: scankit` of a spec demands: `scankit fix` installs each module in the environment, as it would
// later, and proves that it imports and computes. What only undoes that is removed. `folder`: where the environment
// will be, for the command that a failure prints.
Result<void> install_own_modules(const Spec& spec, const std::string& environment, const std::string& folder,
                                 const std::string& cache_dir);
// The packages that the resolver is asked for, and how each is got.
struct ResolverWish {
  std::vector<std::string> requirements, only_wheels, only_sources;
  std::vector<std::string> against_torch;  // requirements too: of only_sources, whose build imports torch
  std::vector<std::string> code;           // device code that these are to have: "sm_90"
};
// Builds each `against_torch` in the environment, where torch is by now, and then installs what it depends on. What is
// installed already stays as it is. The notes are as those of build_sources().
Result<std::vector<Message>> install_against_torch(const InstallRequest& request, const ResolverWish& wish);
ResolverWish resolver_wish(const Spec& spec);
// What a spec demands that nothing can be made of: an Error with its line.
Result<void> check_origins(const Spec& spec, const std::string& folder);

struct ProofStep {
  std::string what;   // "lock", "doctor", "validate selective_scan_cuda", "start"
  std::string state;  // "passed", "failed", "not_verified", "nothing_to_check"
  Message detail;     // why, where it has not passed
  double seconds = 0;
};
// What an environment is held to: the lock as it was read. Its file may be a pipe, or another one by now.
struct ReadLock {
  const EnvironmentLock& lock;
  const std::string& file;  // as the user named it
};
// The environment against the lock, by doctor and by `validate --quick` of each module that it has cases for. A step
// for which nothing is installed is "nothing_to_check", never passed. An Error is the first step that failed.
Result<std::vector<ProofStep>> prove(const Subject& made, const ReadLock& lock, const std::string& cache_dir);

// How what was built again differs from the lock: a step for each package, "passed" if it is the same to the byte. The
// lock gets what was built as its libraries, so that the rest of the environment can be held to it.
Result<std::vector<ProofStep>> compare_builds(const Subject& made, const std::vector<SourceBuild>& builds,
                                              EnvironmentLock& lock);
std::string build_step(const std::string& name);  // what such a step is called
// Both: the builds against the lock, and the environment against what the lock is then, which `lock` becomes.
Result<std::vector<ProofStep>> prove_with_builds(const Subject& made, EnvironmentLock& lock,
                                                 const std::string& file,
                                                 const std::vector<SourceBuild>& builds,
                                                 const std::string& cache_dir);

// 5. Recorded -----------------------------------------------------------------------------------------------

inline constexpr const char* kRecordFile = ".scankit/record.json";  // below the environment

struct RecordedFile {
  std::string path;  // below the environment's site-packages
  std::string sha256;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
};
// An installed package, by its directory of metadata. Installers write its RECORD last, and again only with
// the package: the times of that one file tell of every installation.
struct RecordedPackage {
  std::string name, version;
  std::string metadata;    // below site-packages: "numpy-2.1.0.dist-info"
  std::uint64_t size = 0;  // of RECORD; 0 and 0: it has none
  std::int64_t mtime_ns = 0;
};
// What was made, so that whoever comes later can tell by the times alone whether it is still that.
struct EnvironmentRecord {
  std::string lock_sha256;  // hash_of() the lock
  std::string python, torch, installer;
  std::string site;                            // below the environment: "lib/python3.11/site-packages"
  std::map<std::string, std::string> content;  // by distribution: one hash of all its files
  std::vector<RecordedFile> libraries;         // every compiled file
  std::vector<RecordedPackage> packages;       // empty in the records of scankits that did not note them
  std::vector<ProofStep> proof;
  std::string signature() const;  // one hash of the content and of the libraries
};
// One hash of the files of a package: of the lines "PATH SHA256", sorted by path.
Result<std::string> content_hash(const Host& host, const Distribution& distribution, HashCache& cache);
// Of the lock's content: an editor or git may have written its line ends in another way.
std::string hash_of(const EnvironmentLock& lock);
Result<EnvironmentRecord> make_record(const Host& host, const Snapshot& snapshot,
                                      const EnvironmentLock& lock);
std::string record_to_json(const EnvironmentRecord& record);
// `path`: as messages call it.
Result<EnvironmentRecord> record_from_json(const std::string& text, const std::string& path);
Result<EnvironmentRecord> read_record(const std::string& environment);

// How an environment differs from its record. No file is read: sizes, times and one list of site-packages.
struct RecordChange {
  enum class Kind {
    FileChanged,
    FileMissing,
    PackageChanged,
    PackageMissing,
    PackageAdded,
    PackageReinstalled
  };
  Kind kind{};
  std::string name;             // a path below site-packages, or a package
  std::string recorded, found;  // versions; "" where there is none
};
// An error where the record lists nothing, or site-packages cannot be listed: nothing is known then.
Result<std::vector<RecordChange>> changes_since(const std::string& environment,
                                                const EnvironmentRecord& record);

// 6. The two commands ---------------------------------------------------------------------------------------

// How far a command came that failed. Refused: nothing was made, because of what was asked for.
enum class CreateStage { Refused, Installing, Proving };

struct CreateRequest {
  std::string folder, lock_file, spec_file;  // one of the last two is ""
  std::string python;                        // "": it is looked for
  std::string installer;  // "uv", "pip", "conda"; "": the one that fits the lock and is there
  std::string offline;    // a directory with all wheels; "": the index is asked
  std::string cache_dir;  // of hashes
  std::chrono::seconds index_deadline{120};
  // For a spec: the lock of what the resolver chose. `made_by`: the uv or pip that installed it, which may be the only one
  // here, as ensurepip's is.
  std::function<Result<EnvironmentLock>(const Subject&, const installer::Installer& made_by)> make_lock;
};
struct CreateResult {
  std::string folder;  // absolute
  std::string python, python_program, python_found_by, installer, lock_file, torch;
  bool libmamba = false;  // python_program is mamba 2 or micromamba
  std::size_t packages = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  EnvironmentRecord record;
  std::vector<std::string> rewritten;  // files that name DIR, and so differ from machine to machine
  std::vector<Message> notes;          // what is not as the lock says, and no fault
};
Result<CreateResult> create_environment(const CreateRequest& request, CreateStage& stage);
// What a sync changes in an environment, found before anything is changed (sync_change.cc).
struct SyncChange {
  // Missing, of another version, or with other compiled files than the lock says:
  std::vector<const LockedDistribution*> install;  // from a file of the lock
  std::vector<SourceBuild> build;                  // built again, since no wheel of theirs can be had
  // Built from the lock's archive by an earlier create or sync, and unchanged since. Another build of it would differ
  // from the lock in the same way, so that each sync would build it once more.
  std::vector<SourceBuild> kept;
  std::vector<std::string> remove;   // not in the lock; names that a command line can hold
  std::vector<std::string> removed;  // the same with their versions, for people
  std::vector<Message> notes;        // what could not be checked
  bool empty() const { return install.empty() && build.empty() && remove.empty(); }
};

// `folders`: where wheels and archives may be that no index has. An Error: a compiled file that no package brings
// back, a package whose name is no name, or what is in none of the folders (find_wheels).
Result<SyncChange> change_of(const Subject& subject, const EnvironmentLock& lock,
                             const std::vector<std::string>& folders, bool offline);

struct SyncRequest {
  std::string python, lock_file, offline, cache_dir;
  bool dry_run = false, in_use = false;
};
struct SyncResult {
  std::string environment, python, installer, journal;  // journal "": nothing was changed
  std::vector<std::string> installed, removed;          // "alpha==1.0"
  std::vector<SourceBuild> built;                       // from their source archives
  std::vector<SourceBuild> kept;                        // as in SyncChange
  double seconds = 0;
  EnvironmentRecord record;
  std::vector<Message> notes;  // what failed after the change was kept
};
Result<SyncResult> sync_environment(const SyncRequest& request, CreateStage& stage);

// "1.3 GB", "12 MB", "40 kB".
std::string size_in_words(std::uint64_t bytes);
std::uint64_t size_of_tree(const std::string& folder);  // of its regular files

}  // namespace scankit::envspec
