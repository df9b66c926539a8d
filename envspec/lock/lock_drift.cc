// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "builder/compile/cache.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/declared/module_file.h"
#include "doctor/report/escape.h"
#include "envspec/check/check.h"
#include "envspec/lock/lock.h"

// The forms of a lock's values, and its questions about Python, torch and the machine. lock_files.cc
// has those about packages and files.
namespace scankit::envspec {
namespace {

constexpr std::string_view kDigits = "0123456789", kLower = "abcdefghijklmnopqrstuvwxyz",
                           kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::size_t kLongest = 4096;

// Not empty, not too long, and only ASCII letters, digits and the characters of `more`.
bool only(std::string_view text, std::string_view more, bool upper = true) {
  return !text.empty() && text.size() <= kLongest && std::ranges::all_of(text, [&](char c) {
    return kDigits.find(c) != std::string_view::npos || kLower.find(c) != std::string_view::npos ||
           (upper && kUpper.find(c) != std::string_view::npos) || more.find(c) != std::string_view::npos;
  });
}

// The weakest form: any text without control characters, also the empty one.
bool one_line(std::string_view text) {
  return text.size() <= kLongest &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; });
}

// Collects the first problem, with the name of its field.
class Values {
 public:
  void demand(bool good, const std::string& field, std::string_view value) {
    if (!good && problem_.empty())
      problem_ = say("{} is {}, which is not possible", field, shown_value(value));
  }
  void plain(const std::string& field, std::string_view value) { demand(one_line(value), field, value); }
  void unique(const std::string& field, const std::string& value) {
    if (!seen_.insert(field + "\n" + value).second && problem_.empty())
      problem_ = say("{} exists twice: {}", field, shown_value(value));
  }
  std::string problem() const { return problem_; }

 private:
  std::string problem_;
  std::set<std::string> seen_;
};

void check_file(Values& values, const std::string& field, const std::optional<LockedArtifact>& artifact) {
  if (!artifact) return;
  values.demand(is_file_name(artifact->file), fmt::format("{}: file", field), artifact->file);
  values.demand(is_sha256(artifact->sha256), fmt::format("{}: sha256", field), artifact->sha256);
  values.demand(artifact->url.empty() || is_plain_url(artifact->url), fmt::format("{}: url", field),
                artifact->url);
}

void check(Values& values, const LockedBuild& one) {
  check_file(values, "distributions: build: sdist", one.sdist);
  check_file(values, "distributions: build: wheel", one.wheel);
  const LockedToolchain& by = one.toolchain;
  for (const std::string* text : {&one.sdist_from, &one.why_no_sdist, &one.why_no_wheel, &by.generator,
                                  &by.why_no_compilers, &by.why_no_cuda, &by.why_no_torch})
    values.plain("distributions: build", *text);
  for (const auto* texts : {&by.compilers, &by.cuda, &by.nvcc, &by.torch})
    for (const std::string& text : *texts) values.plain("distributions: build: toolchain", text);
  // They become the value of a variable of a build.
  for (const std::string& text : by.code)
    values.demand(only(text, "_"), "distributions: build: toolchain: code", text);
  if (one.recorded) {
    values.plain("distributions: build: recorded: torch", one.recorded->torch);
    values.plain("distributions: build: recorded: installer", one.recorded->installer);
    // A build obeys them; a lock may be a stranger's.
    for (const auto& [name, value] : one.recorded->switches) {
      values.demand(declared::is_build_switch(name), "distributions: build: recorded: switches", name);
      values.demand(declared::is_switch_value(value), "distributions: build: recorded: switches", value);
    }
  }
  for (const auto& [path, hash] : one.files) {
    values.demand(is_inner_path(path), "distributions: build: files", path);
    values.demand(is_sha256(hash), "distributions: build: files: sha256", hash);
  }
}

void check(Values& values, const LockedDistribution& one) {
  values.demand(is_locked_name(one.name), "distributions: name", one.name);
  values.unique("distributions: name", one.name);
  values.demand(is_locked_version(one.version), "distributions: version", one.version);
  values.plain("distributions: installer", one.installer);
  values.plain("distributions: why_no_artifact", one.why_no_artifact);
  const std::set<std::string> sources = {"index", "here", "conda", "editable"};
  values.demand(sources.contains(one.source), "distributions: source", one.source);
  check_file(values, "distributions: artifact", one.artifact);
  if (one.build) check(values, *one.build);
}

void check(Values& values, const LockedLibrary& one) {
  values.demand(is_inner_path(one.path), "libraries: path", one.path);
  values.unique("libraries: path", one.path);
  values.demand(is_sha256(one.sha256), "libraries: sha256", one.sha256);
  for (const std::string* text :
       {&one.distribution, &one.state, &one.machine, &one.soname, &one.build_id, &one.glibc_min,
        &one.glibcxx_min, &one.cuda_major, &one.string_abi, &one.pybind_internals})
    values.plain("libraries", *text);
  for (const auto* texts : {&one.needed, &one.code})
    for (const std::string& text : *texts) values.plain("libraries", text);
}

void check(Values& values, const CondaPackage& one) {
  values.demand(only(one.name, "-_."), "conda_packages: name", one.name);
  values.unique("conda_packages: name", one.name);
  values.demand(only(one.version, "-_.+!"), "conda_packages: version", one.version);
  values.demand(only(one.build, "-_.+"), "conda_packages: build", one.build);
  for (const std::string* text : {&one.channel, &one.subdir})
    values.demand(text->empty() || only(*text, "-_./:%~"), "conda_packages: channel", *text);
  values.demand(one.url.empty() || is_plain_url(one.url), "conda_packages: url", one.url);
  values.demand(one.sha256.empty() || is_sha256(one.sha256), "conda_packages: sha256", one.sha256);
  values.demand(one.md5.empty() || only(one.md5, ""), "conda_packages: md5", one.md5);
}

void check(Values& values, const EnvironmentLock& lock) {
  values.demand(lock.spec_sha256.empty() || is_sha256(lock.spec_sha256), "spec_sha256", lock.spec_sha256);
  values.plain("tool_version", lock.tool_version);
  const LockedMachine& machine = lock.machine;
  for (const std::string* text :
       {&machine.architecture, &machine.libc, &machine.libc_version, &machine.driver, &machine.driver_cuda,
        &machine.libcuda, &machine.why_no_driver, &machine.why_no_gpus})
    values.plain("machine", *text);
  for (const auto* texts : {&machine.gpus, &machine.compilers})
    for (const std::string& text : *texts) values.plain("machine", text);
  values.demand(is_locked_version(lock.python.version), "python: version", lock.python.version);
  for (const std::string* text : {&lock.python.implementation, &lock.python.soabi})
    values.demand(text->empty() || only(*text, "-_."), "python", *text);
  if (lock.torch)
    for (const std::string* text : {&lock.torch->version, &lock.torch->cuda, &lock.torch->hip,
                                    &lock.torch->git, &lock.torch->string_abi, &lock.torch->cxx_standard})
      values.plain("torch", *text);
  for (const LockedModule& one : lock.modules) {
    values.demand(only(one.module, "_."), "modules: module", one.module);
    values.demand(is_inner_path(one.path), "modules: path", one.path);
    values.plain("modules: distribution", one.distribution);
  }
}

}  // namespace

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_locked_name(std::string_view text) {
  return only(text, "-", false) && text.front() != '-' && text.back() != '-';
}

// A leading "-" would be an option on a command line.
bool is_locked_version(std::string_view text) { return only(text, ".+!_-") && text.front() != '-'; }

// No slash and no leading dot: the name is joined with a directory, and the file is written there.
bool is_file_name(std::string_view text) {
  return only(text, "._+!-") && text.front() != '.' && text.front() != '-';
}

// Every part must be a real name: the path is joined with a directory and read, and may not leave it. The part
// before a leading slash is empty, and so is the only one of an empty text.
bool is_inner_path(std::string_view text) {
  if (!one_line(text)) return false;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find('/', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

bool is_plain_url(std::string_view text) {
  const auto scheme = text.find("://");
  if (scheme == std::string_view::npos || !only(text, "-._~:/?#[]@!&'()*+,;=%")) return false;
  // RFC 3986 allows these characters, but a quotation, a shell or a comment would take them
  // for its own.
  if (text.find_first_of("'#()*;&!") != std::string_view::npos) return false;
  const std::string_view kind = text.substr(0, scheme);
  const std::string_view rest = text.substr(scheme + 3), host = rest.substr(0, rest.find('/'));
  return (kind == "https" || kind == "http" || kind == "file") && host.find('@') == std::string_view::npos;
}

std::string bad_value(const EnvironmentLock& lock) {
  Values values;
  check(values, lock);
  for (const LockedDistribution& one : lock.distributions) check(values, one);
  for (const CondaPackage& one : lock.conda_packages) check(values, one);
  for (const LockedLibrary& one : lock.libraries) check(values, one);
  return values.problem();
}

std::string shown_value(std::string_view text) {
  constexpr std::size_t kShown = 120;
  std::string shown = report::plain(text.substr(0, kShown), false);
  if (text.size() > kShown) shown += "...";
  return shown.empty() ? "\"\"" : shown;
}

namespace {

// One value of the lock and what is here. A value that the lock does not have demands nothing.
struct Value {
  std::string what, locked, here;
};

// `pointer` is the place in the snapshot of the value whose name is `subject`; the others
// get no evidence.
void compare_values(Outcome& outcome, const LockView& view, Cause cause, const std::string& subject,
                    const std::string& pointer, const std::vector<Value>& values,
                    const std::vector<Fix>& fixes) {
  for (const Value& value : values) {
    if (value.locked.empty() || value.locked == value.here) continue;
    const Message here = value.here.empty() ? message("nothing") : Message(value.here);
    Finding finding =
        lock_finding(view, cause, subject,
                     message("{} locks {} {}, but found {}", view.file, value.what, value.locked, here));
    if (!value.here.empty() && value.what == subject) finding.evidence.push_back({pointer, value.here});
    finding.fixes = fixes;
    drifted(outcome, std::move(finding));
  }
}

// False where either of them is not a version.
bool older(const std::string& here, const std::string& locked) {
  const auto a = Version::parse(here), b = Version::parse(locked);
  return a && b && *a < *b;
}

void check_locked_driver(Outcome& outcome, const LockView& view) {
  const LockedMachine& locked = view.lock.machine;
  const Probed<std::string>& driver = view.subject.facts.driver;
  if (locked.driver.empty()) return;
  if (!driver.present()) {
    // A login node or an image has no driver, and that is no drift: the code runs on another machine.
    if (driver.state == ProbeState::Absent)
      outcome.not_checked.push_back(
          message("the driver: {} was locked, but no driver was found", locked.driver));
    else
      fact_is_known(outcome, driver.state, why_missing(driver));
    return;
  }
  if (driver.value == locked.driver) return;
  const bool is_older = older(driver.value, locked.driver);
  Finding finding =
      lock_finding(view, Cause::DriftLockMachine, "driver",
                   message("{} locks {} {}, but found {}", view.file, "driver", locked.driver, driver.value));
  finding.circumstances = {is_older ? Circumstance::OlderThanLocked : Circumstance::NotOlderThanLocked};
  finding.evidence.push_back({"/driver/value/version", driver.value});
  drifted(outcome, std::move(finding));
}

// Only GPUs that are here and were not locked are reported. A missing GPU is no drift, for the same
// reason as a missing driver.
void check_locked_gpus(Outcome& outcome, const LockView& view) {
  const auto& locked = view.lock.machine.gpus;
  const Probed<std::vector<std::string>>& gpus = view.subject.facts.gpus;
  if (locked.empty()) return;
  if (!gpus.present()) {
    outcome.not_checked.push_back(message("the GPUs: {}", why_missing(gpus)));
    return;
  }
  for (const std::string& gpu : gpus.value) {
    if (std::ranges::find(locked, gpu) != locked.end()) continue;
    Finding finding = lock_finding(
        view, Cause::DriftLockMachine, gpu,
        message("a GPU of type {} was found, but {} contains none of that type", gpu, view.file));
    finding.circumstances = {Circumstance::GpuNotLocked};
    drifted(outcome, std::move(finding));
  }
}

}  // namespace

Finding lock_finding(const LockView& view, Cause cause, std::string subject, Message summary) {
  Finding finding;
  finding.cause = cause;
  finding.subject = std::move(subject);
  finding.summary = std::move(summary);
  finding.demanded_by = FileLine{view.file, 0};
  return finding;
}

bool fact_is_known(Outcome& outcome, ProbeState state, const Message& why) {
  if (state == ProbeState::Present) return true;
  if (state != ProbeState::Absent) not_known(outcome, why);
  return false;
}

bool is_installers_own(const std::string& distribution) {
  static const std::set<std::string> names = {"pip", "setuptools", "wheel", "uv", "distribute"};
  return names.contains(distribution);
}

Outcome locked_python(const LockView& view) {
  Outcome outcome = asked("lock-python", message("Is the Python the locked one?"));
  const Probed<Python>& python = view.subject.snapshot.python;
  if (!fact_is_known(outcome, python.state, why_missing(python)) && python.state != ProbeState::Absent)
    return outcome;
  const LockedPython& locked = view.lock.python;
  compare_values(outcome, view, Cause::DriftLockPython, "python", "/python/value/version",
                 {{"python", locked.version, python.value.version},
                  {"implementation", locked.implementation, python.value.implementation},
                  {"SOABI", locked.soabi, python.value.soabi}},
                 {Advice{message("recreate the environment with Python {}", locked.version)}});
  return outcome;
}

Outcome locked_torch(const LockView& view) {
  Outcome outcome = asked("lock-torch", message("Is torch the locked build?"));
  const Probed<Torch>& torch = view.subject.snapshot.torch;
  if (!view.lock.torch) {
    left_out(outcome, message("the lock contains no torch"));
    return outcome;
  }
  if (!fact_is_known(outcome, torch.state, why_missing(torch)) && torch.state != ProbeState::Absent)
    return outcome;
  const LockedTorch& locked = *view.lock.torch;
  const LockedDistribution* wheel = find_locked(view.lock, "torch");
  std::vector<Fix> fixes;
  if (wheel != nullptr) fixes.push_back(InstallPackages{{"torch==" + wheel->version}, true});
  compare_values(outcome, view, Cause::DriftLockTorch, "torch", "/torch/value/version",
                 {{"torch", locked.version, torch.value.version},
                  {"CUDA", locked.cuda, torch.value.cuda},
                  {"ROCm", locked.hip, torch.value.hip},
                  {"string ABI", locked.string_abi, torch.value.string_abi},
                  {"the commit of torch", locked.git, torch.value.git}},
                 fixes);
  return outcome;
}

// A newer C library is fine, since glibc keeps its old symbol versions; only an older one is reported.
Outcome locked_machine(const LockView& view) {
  Outcome outcome = asked("lock-machine", message("Can this machine run what was locked?"));
  const Snapshot& here = view.subject.snapshot;
  const LockedMachine& locked = view.lock.machine;
  const std::string processor = processor_of(here);
  if (processor.empty())
    fact_is_known(outcome, ProbeState::Failed, message("no file shows which processor this is built for"));
  else
    compare_values(outcome, view, Cause::DriftLockMachine, "processor", "/os/value/machine",
                   {{"processor", locked.architecture, processor}}, {});
  if (fact_is_known(outcome, here.libc.state, why_missing(here.libc)) &&
      older(here.libc.value.version, locked.libc_version)) {
    Finding finding = lock_finding(view, Cause::DriftLockMachine, here.libc.value.kind,
                                   message("{} locks {} {}, but found {}", view.file, locked.libc,
                                           locked.libc_version, here.libc.value.version));
    finding.circumstances = {Circumstance::OlderThanLocked};
    drifted(outcome, std::move(finding));
  }
  check_locked_driver(outcome, view);
  check_locked_gpus(outcome, view);
  return outcome;
}

// A stored snapshot has no files to hash, so that build-ids take their place.
Result<std::vector<Outcome>> check_lock(const LockCheckOptions& options, const Subject& subject) {
  SCANKIT_TRY(const EnvironmentLock lock, read_lock(options.lock));
  const LockView view{options.lock, lock, subject};
  std::vector<Outcome> outcomes = {locked_python(view), locked_torch(view), locked_machine(view),
                                   locked_packages(view)};
  const auto folder =
      compile::usable_cache_folder(options.cache_dir);  // without one every file is read again
  HashCache cache(folder ? *folder : "");
  outcomes.push_back(subject.host ? locked_files(view, *subject.host, cache) : locked_build_ids(view));
  return outcomes;
}

}  // namespace scankit::envspec
