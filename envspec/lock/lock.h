// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"
#include "envspec/check/check.h"
#include "envspec/lock/hash_files.h"

// scankit.lock: one environment, exactly, as data. Facts alone: no time, no absolute path and no credentials,
// so that the same environment gives the same bytes. A fact that is not known is empty and says why.
namespace scankit::envspec {

inline constexpr int kLockMajor = 1;  // another one is refused
inline constexpr int kLockMinor = 1;  // a newer one is read; what it adds is not understood
inline constexpr const char* kLockFile = "scankit.lock";

// What an installer installed a distribution from, as a file that it can install again.
struct LockedArtifact {
  std::string file;        // "numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl"
  std::string sha256;      // lower-case hex
  std::uint64_t size = 0;  // 0: not told
  std::string url;         // where it lay; without a user's name and password. "": only the index knows
};

// The compilers that made a package, as far as its files tell. What they do not tell is empty, with the reason.
struct LockedToolchain {
  std::string generator;               // what made its wheel: "setuptools (82.0.1)"
  std::vector<std::string> compilers;  // as they name themselves: "GCC: (Debian 12.2.0-14) 12.2.0"
  std::vector<std::string> cuda;       // the toolkits of its device code: "13.0"
  std::vector<std::string> nvcc;       // its compilers: "13.0.88"
  std::vector<std::string> code;       // "sm_90", "compute_90"
  std::vector<std::string> torch;      // the minor releases whose symbols it fits: "2.11"
  std::string why_no_compilers, why_no_cuda, why_no_torch;
};

// What scankit wrote down when it had the package built (the journal of a fix), of the build that is still installed.
struct RecordedBuild {
  std::string torch, installer;                 // "2.11.0+cu130", "pip"
  std::map<std::string, std::string> switches;  // of its build: "MAMBA_SKIP_CUDA_BUILD" -> "TRUE"
};

// How a package came about that no index has as a wheel.
struct LockedBuild {
  std::optional<LockedArtifact> sdist;
  // Who says so. "direct_url": the installer, for this installation. "pip_cache": pip, for the wheel that it built, whose
  // files are the installed ones. "index": it has this archive of the version; that it was built from it, nobody noted.
  // "older_lock": the same of the lock that was there before, where the index was not asked; its files were another build.
  std::string sdist_from;
  std::string why_no_sdist;
  std::optional<LockedArtifact> wheel;  // as it was built, before it was installed
  std::string why_no_wheel;
  LockedToolchain toolchain;
  std::optional<RecordedBuild> recorded;  // nothing where scankit did not build it
  std::map<std::string, std::string>
      files;  // path below site-packages -> SHA-256; empty where it cannot be packed
};

struct LockedDistribution {
  std::string name, version;  // the name as PEP 503 writes it
  std::string installer;      // "pip", "uv", "conda", "scankit"
  // "index"; "here": built on that machine, so that no index has it; "conda"; "editable": in place.
  std::string source;
  std::optional<LockedArtifact> artifact;
  std::string why_no_artifact;
  std::optional<LockedBuild> build = {};  // nothing for what an index has as a wheel, and for modules of ours
};
// The source archive that it can be built from again; nullptr where none is known.
const LockedArtifact* source_archive(const LockedDistribution& one);

// What `conda list --explicit` and `conda env export` tell of one package.
struct CondaPackage {
  std::string name, version, build, channel, subdir;
  std::string url, sha256, md5;
};

// A shared library of an installed package, with what it is bound to.
struct LockedLibrary {
  std::string path;          // below its folder of sys.path: "torch/lib/libc10.so"
  std::string distribution;  // "" where no RECORD lists it
  std::string sha256;
  std::uint64_t size = 0;
  std::string state;  // "elf", else what it is
  std::string machine, soname, build_id;
  std::vector<std::string> needed;
  std::string glibc_min, glibcxx_min, cuda_major, string_abi, pybind_internals;
  std::vector<std::string> code;  // "sm_90", "compute_90"
};

// A module that scankit built: what it was made of.
struct LockedModule {
  std::string module, distribution, path;
  std::string manifest;  // JSON text, as the file holds it
};

// The fields of the snapshot's Python that decide which wheels and extensions it can load.
struct LockedPython {
  std::string version, implementation, soabi;
  bool free_threaded = false;
};
// `cuda` and `hip` are "" in builds without them; `git` is the commit that torch was built from.
struct LockedTorch {
  std::string version, cuda, hip, git, string_abi, cxx_standard;
  bool debug = false;
};
// The machine that the lock was made on. `env check` treats most differences here as notes: another
// machine with a newer driver or C library runs the same environment.
struct LockedMachine {
  std::string architecture, libc, libc_version;
  std::string driver, driver_cuda, libcuda;  // libcuda: its version; "" without a driver
  std::string why_no_driver;
  std::vector<std::string> gpus;  // "sm_90", each once
  std::string why_no_gpus;
  std::vector<std::string> compilers;  // "gcc 12.2.0"
};

struct EnvironmentLock {
  std::string schema = std::to_string(kLockMajor) + "." + std::to_string(kLockMinor);
  std::string tool_version;
  std::string spec_sha256;  // of the scankit.yaml that it answers; "" without one
  LockedMachine machine;
  LockedPython python;
  std::optional<LockedTorch> torch;
  std::vector<LockedDistribution> distributions;  // by name
  std::vector<CondaPackage> conda_packages;       // by name
  std::vector<LockedLibrary> libraries;           // by path
  std::vector<LockedModule> modules;              // by name
};

// Canonical: the same lock, the same bytes; the last part holds a hash of every other one.
std::string lock_to_json(const EnvironmentLock& lock);
// Bounded, and nothing in it names a file to read or a command to run. Errc::Malformed with the place;
// Errc::Unsupported for another major schema; Errc::Conflict where it was edited: the parts are named.
// `name` is what messages call the file.
Result<EnvironmentLock> lock_from_json(std::string_view text, const std::string& name);
Result<EnvironmentLock> read_lock(const std::string& path);

// `name` as PEP 503 normalizes it; nullptr where the lock does not have it.
const LockedDistribution* find_locked(const EnvironmentLock& lock, std::string_view name);

// Makes a lock from an environment, without what an installer or an index knows about wheels:
// index.h adds that.

struct RepackedWheel {
  std::string file;   // "scankit_selective_scan_cuda-0.1.0-cp38-abi3-manylinux_2_17_x86_64.whl"
  std::string bytes;  // the same ones from the same installed files
  std::map<std::string, std::string> files;  // path below site-packages -> SHA-256, without its RECORD
};
// What was built on this machine is on no index: the installed files, by their RECORD, as a wheel again. An
// Error says why that cannot be: a file is missing or was changed, or lies outside of site-packages.
Result<RepackedWheel> repack(const Host& host, const Distribution& distribution);
// Its files by RECORD, sorted, without what installers write of their own: RECORD, INSTALLER, byte code and
// the programs in bin. Paths are relative to site-packages. Empty where there is no RECORD.
Result<std::vector<std::string>> content_paths(const Host& host, const Distribution& distribution);

// Machine, Python, torch and distributions, from the snapshot alone: of a stored one, too.
EnvironmentLock lock_facts(const Snapshot& snapshot);

// The libraries with their hashes and what they are bound to, and the modules of ours. An Error: a file that
// cannot be read, or changes meanwhile; a lock with a hole would say that all is well.
Result<void> lock_files(const Host& host, const Snapshot& snapshot, HashCache& cache,
                        const HashProgress& progress, EnvironmentLock& lock);

// What one file is bound to, without its hash.
LockedLibrary locked_library(const Host& host, const std::string& path);
// In what two files of one path differ, but for their bytes: "string ABI new -> old; glibc 2.17 -> 2.34".
std::string library_differences(const LockedLibrary& locked, const LockedLibrary& here);

// Two things that concern a lock after it was read. First, the forms that its texts must have: a lock
// may be a stranger's, and its texts go into files that other programs read (requirements, TOML, YAML,
// Dockerfiles). No text of these forms can end a line or a quotation. Second, the lock's half of
// `scankit env check`: one Outcome for each question, with a Finding for each drift. A fact that is
// missing gives CheckState::Unknown with `could_hide_error`. An Error means that the lock cannot be
// read or is not for this version.

bool is_sha256(std::string_view text);
bool is_locked_name(std::string_view text);     // PEP 503, normalised
bool is_locked_version(std::string_view text);  // PEP 440's letters
bool is_file_name(std::string_view text);       // of a wheel or an archive: one plain name
bool is_inner_path(std::string_view text);      // relative, without "..", one line
bool is_plain_url(std::string_view text);       // https, http or file, percent-encoded, nobody's password

// The first value that is not what it must be, as a sentence; "" where all are.
std::string bad_value(const EnvironmentLock& lock);

// Text of a stranger for a message: one line, not long.
std::string shown_value(std::string_view text);

// What each question gets. References only: it must not outlive the lock and the subject.
struct LockView {
  const std::string& file;  // as the user named it
  const EnvironmentLock& lock;
  const Subject& subject;
};

Outcome locked_python(const LockView& view);
Outcome locked_torch(const LockView& view);
Outcome locked_machine(const LockView& view);  // processor, C library, driver, GPUs
Outcome locked_packages(const LockView& view);
Outcome locked_files(const LockView& view, const Host& host, HashCache& cache);
// For a stored snapshot, which has no files: compares the build-ids of the files that it looked at.
Outcome locked_build_ids(const LockView& view);

Finding lock_finding(const LockView& view, Cause cause, std::string subject, Message summary);
// True where the fact is present. An absent fact gives false without making the outcome Unknown: the
// caller decides what absence means. Everything else makes the outcome Unknown.
bool fact_is_known(Outcome& outcome, ProbeState state, const Message& why);
// Packages that environments bring along, such as pip and setuptools: another version of them changes
// no result, so that their drift is only a note.
bool is_installers_own(const std::string& distribution);
// scankit itself may be installed in the environment and is no drift.
inline constexpr const char* kOurselves = "scankit";

struct LockCheckOptions {
  std::string lock;       // the file
  std::string cache_dir;  // of hashes; "": the user's
};
Result<std::vector<Outcome>> check_lock(const LockCheckOptions& options, const Subject& subject);

}  // namespace scankit::envspec
