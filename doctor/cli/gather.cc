// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <thread>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/cli/commands.h"
#include "doctor/host/host.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/model/redact.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/imports/observed.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/snapshot.h"
#include "doctor/probes/target/target.h"
#include "doctor/report/progress.h"

namespace scankit::cli {
namespace {

// The names that a user can mean: scankit's modules, the packages around them, what is installed here and
// what the sources build.
std::vector<std::string> known_names(const Snapshot& snapshot) {
  std::vector<std::string> names = probes::kDefaultModules;
  names.insert(names.end(), probes::kRareModules.begin(), probes::kRareModules.end());
  const auto& packages = knowledge::known_importers().packages;
  names.insert(names.end(), packages.begin(), packages.end());
  for (const Distribution& installed : snapshot.distributions.value) names.push_back(installed.name);
  const auto& built = snapshot.sources.value.modules;
  names.insert(names.end(), built.begin(), built.end());
  return names;
}

// Whether a compiled file, a Python file that imports it, or an installed package of this name was found.
bool is_here(const Snapshot& snapshot, const std::string& module) {
  const auto same = [&](const auto& each) { return each.module == module; };
  return std::ranges::any_of(snapshot.extensions.value, same) ||
         std::ranges::any_of(snapshot.importers.value, same) ||
         checks::asked_package(snapshot, module) != nullptr;
}

// Compares the first part of a dotted name, ignoring case and the kind of separator.
bool is_known(const std::vector<std::string>& names, const std::string& module) {
  const std::string top = normalized_name(module.substr(0, module.find('.')));
  return std::ranges::any_of(names, [&](const std::string& name) { return normalized_name(name) == top; });
}

// Whether the observed import has found the module. An import hook may provide what no file shows.
bool imports(const Snapshot& snapshot, const std::string& module) {
  const Observation* seen = checks::deciding_import(snapshot, module);
  return seen != nullptr && (seen->outcome != "error" || seen->exception != "ModuleNotFoundError");
}

// The name that was probably meant: one that begins with the given name ("selective_scan"), else
// the nearest one.
std::string meant(const std::string& module, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (module.size() >= 4 && name.starts_with(module)) return name;
  return nearest_word(module, names);
}

}  // namespace

std::optional<Error> meaningless_module(const Snapshot& snapshot) {
  if (!snapshot.python.present() || snapshot.extensions.state == ProbeState::Failed ||
      snapshot.distributions.state == ProbeState::Failed)
    return std::nullopt;
  const std::vector<std::string> names = known_names(snapshot);
  // Only the names that the user has given are judged; the defaults may well be absent.
  for (const std::string& module : snapshot.modules_asked) {
    // VMamba's package is called selective_scan. Names of packages are known only where they
    // are installed.
    const bool known =
        is_known(names, module) && std::ranges::find(knowledge::known_importers().packages, module) ==
                                       knowledge::known_importers().packages.end();
    const bool model_package = module == "mamba_ssm" || module == "causal_conv1d";
    if (known || model_package || is_here(snapshot, module) || imports(snapshot, module)) continue;
    std::vector<std::string> others = names;
    std::erase(others, module);
    const std::string near = meant(module, others);
    return Error{Errc::InvalidArgument,
                 near.empty()
                     ? message("no module {}: no installed file has that name for this Python", module)
                     : message("no module {}; did you mean {}?", module, near),
                 ""};
  }
  return std::nullopt;
}

namespace {

// A snapshot with the names of torch's libraries has about 20 MB.
constexpr std::size_t kSnapshotLimit = 64u << 20;

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// --python names a path inside the root. A path that contains the root itself, as seen from here, is
// understood too, unless that path also exists inside.
std::string inside_root(const Host& host, const std::string& root, const std::string& path) {
  const bool outer = !root.empty() && path.starts_with(root + "/") && !host.lstat(path);
  return outer ? path.substr(root.size()) : path;
}

// Everything that the reading of files uses. It is shared with the reading thread, which continues with
// it after the budget has ended, perhaps stuck in a file system that does not answer.
struct Reading {
  std::unique_ptr<Host> system;
  probes::NamedFiles named;
  const Host* host = nullptr;
  std::optional<std::string> requested;
  probes::SnapshotRequest request;
  std::optional<report::Progress> progress{std::in_place};
};

struct Read {
  Result<std::string> python;
  BrokenEnvironment broken;
  std::vector<Message> notes;
  Snapshot snapshot;
};

// Chooses the Python and reads the files. It starts no interpreter.
Read read_files(Reading& reading, const std::function<void(const Message&)>& show) {
  std::vector<Message> notes;
  BrokenEnvironment broken;
  auto python = probes::choose_python(*reading.host, reading.requested, notes, &broken);
  // A --python that cannot be used is the whole answer, in one line.
  if (!python && reading.requested) return {std::move(python), {}, std::move(notes), {}};
  reading.request.python = python.value_or("");
  if (python) reading.request.progress = show;
  Snapshot snapshot = probes::take_snapshot(*reading.host, reading.request);
  return {std::move(python), std::move(broken), std::move(notes), std::move(snapshot)};
}

// Nothing if the deadline came first. The thread is then left alone: a thread in a system call that does
// not return cannot be ended.
std::optional<Read> read_until(Deadline deadline, const std::shared_ptr<Reading>& reading,
                               const std::function<void(const Message&)>& show) {
  if (!deadline) return read_files(*reading, show);
  std::packaged_task<Read()> task([reading, show] { return read_files(*reading, show); });
  auto done = task.get_future();
  std::thread(std::move(task)).detach();
  if (done.wait_until(*deadline) != std::future_status::ready) return std::nullopt;
  return done.get();
}

// The snapshot of a budget that ended too early. Every fact is Failed, because Absent would let a check
// conclude that something is not there.
Snapshot unread(const EnvironmentOptions& options) {
  const Message why =
      message("the files were not read within the time limit of --budget ({})", options.budget);
  Snapshot snapshot;
  snapshot.tool_version = kToolVersion;
  snapshot.modules = options.modules.empty() ? probes::kDefaultModules : options.modules;
  snapshot.modules_asked = options.modules;
  set_requirements(snapshot, probes::unread_requirements(options.required));
  snapshot.os = Probed<Os>::failed(why);
  snapshot.libc = Probed<LibC>::failed(why);
  snapshot.driver = Probed<Driver>::failed(why);
  snapshot.gpus = Probed<std::vector<Gpu>>::failed(why);
  snapshot.python = Probed<Python>::failed(why);
  snapshot.distributions = Probed<std::vector<Distribution>>::failed(why);
  snapshot.torch = Probed<Torch>::failed(why);
  snapshot.extensions = Probed<std::vector<Extension>>::failed(why);
  snapshot.importers = Probed<std::vector<Importer>>::failed(why);
  snapshot.packages = Probed<Packages>::failed(why);
  snapshot.observations = Probed<std::vector<Observation>>::failed(why);
  return snapshot;
}

Deadline deadline_of(const EnvironmentOptions& options) {
  const auto budget = parse_duration(options.budget);
  if (!budget) return std::nullopt;
  return std::chrono::steady_clock::now() + *budget;
}

// Opens the host and translates the options into the probes' requests. An Error: --so names
// something unusable.
Result<std::shared_ptr<Reading>> prepare(const EnvironmentOptions& options) {
  auto reading = std::make_shared<Reading>();
  reading->system = make_real_host(options.root);
  reading->host = reading->system.get();
  if (!options.so.empty()) {
    SCANKIT_TRY(reading->named, probes::open_named_files(std::move(reading->system), options.so));
    reading->host = reading->named.host.get();
  }
  if (!options.python.empty()) reading->requested = inside_root(*reading->host, options.root, options.python);
  probes::SnapshotRequest& request = reading->request;
  request.modules = options.modules;
  if (!options.so.empty()) request.named = &reading->named;
  request.audit = options.all;
  // The audit of linked extensions is what doctor does without being told what to look at.
  request.audit_linked = options.linked && options.modules.empty() && options.so.empty();
  request.required = options.required;
  request.with_exports = options.with_exports;
  request.ask_nvml = options.ask_nvml;
  request.gpu_details = options.gpu_details;
  request.sources = options.sources;
  request.part = [progress = &*reading->progress](std::size_t done, std::size_t of) {
    progress->count(done, of);
  };
  return reading;
}

// At most as much as of a file. Piped input has no size that could be checked first.
Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 1u << 16> buffer{};
  while (std::cin.read(buffer.data(), buffer.size()) || std::cin.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > kSnapshotLimit)
      return Error{
          Errc::Unsupported,
          message("standard input has more than {} MiB, more than any snapshot", kSnapshotLimit >> 20),
          message("pipe in the output of scankit snapshot --out -")};
  }
  return text;
}

// Makes the imports and stores what they did. try_suspects() then loads the files of the audit that the
// files alone say would fail.
void observe(const EnvironmentOptions& options, Reading& reading, Deadline deadline, Facts& facts) {
  if (!options.so.empty()) {
    facts.snapshot.observations = {
        ProbeState::NotRun, message("the files of --so are only read, not run"), {}};
    return;
  }
  probes::ObserveRequest request;
  request.policy = options.imports;
  request.can_be_asked_for = options.foreign_too;
  request.timeout = std::chrono::milliseconds(static_cast<long long>(options.timeout_s * 1000));
  request.deadline = deadline;
  reading.progress->count(0, 0);
  request.running = [&](const Message& what, auto since, auto limit) {
    reading.progress->now(what, limit, since);
  };
  facts.snapshot.observations = probes::observe_imports(*reading.host, facts.snapshot, request);
  if (facts.snapshot.observations.present())
    for (Message& note : probes::namesakes_here(*reading.host, facts.snapshot))
      facts.notes.push_back(std::move(note));
  if (facts.snapshot.observations.present()) probes::try_suspects(facts.snapshot, request);
}

}  // namespace

void report_error(const Error& error) {
  report::progress_note(error.hint.empty() ? tr(error.message) : say("{} ({})", error.message, error.hint));
}

void report_error(const Error& error, bool redact) {
  report_error(redact ? redacted(error, own_names()) : error);
}

// A path that the user has mistyped is a usage error; a disk that fails is not.
int exit_status_of(const Error& error) {
  if (error.code == Errc::ToolFailed) return kExitFindings;
  const bool wrong_path = error.code == Errc::NotFound || error.code == Errc::PermissionDenied ||
                          error.code == Errc::InvalidArgument;
  return wrong_path ? kExitUsage : kExitInternal;
}

Result<Facts> gather(const EnvironmentOptions& options) {
  const Deadline deadline = deadline_of(options);
  SCANKIT_TRY(const auto reading, prepare(options));
  const auto show = [progress = &*reading->progress](const Message& phase) {
    progress->count(0, 0);
    progress->now(phase);
  };
  auto read = read_until(deadline, reading, show);
  Facts facts;
  if (!read) {
    report::abandon_progress();
    facts.snapshot = unread(options);
    facts.abandoned = true;
    return facts;
  }
  if (!read->python && reading->requested) {
    reading->progress.reset();
    return read->python.error();
  }
  facts.snapshot = std::move(read->snapshot);
  facts.notes = std::move(read->notes);
  for (Message& problem : probes::module_file_problems(*reading->host, reading->named))
    facts.notes.push_back(std::move(problem));
  facts.snapshot.target_root = options.root;
  facts.snapshot.named_files = options.so;
  // Without a usable Python the snapshot still describes the machine; why the Python is missing explains
  // the other gaps.
  if (!read->python) {
    const Message& why = read->python.error().message;
    facts.snapshot.python = Probed<Python>::failed(why);
    facts.snapshot.distributions.note = facts.snapshot.torch.note = facts.snapshot.extensions.note =
        facts.snapshot.importers.note = why;
    if (!read->broken.origin.empty()) facts.snapshot.broken_environment = read->broken;
  }
  if (!options.sources.empty() && !facts.snapshot.sources.present()) {
    report_error({Errc::InvalidArgument, message("--sources: {}", facts.snapshot.sources.note), ""},
                 options.redact);
    facts.status = kExitUsage;
  }
  observe(options, *reading, deadline, facts);
  reading->progress.reset();
  // An active environment that is broken becomes a finding of the report instead of this message.
  if (!read->python && read->broken.origin.empty() && options.needs_python)
    report_error(read->python.error(), options.redact);
  return facts;
}

Result<Snapshot> stored_snapshot(const std::string& path) {
  std::string text;
  if (path == "-") {
    SCANKIT_TRY(text, read_standard_input());
  } else {
    SCANKIT_TRY(text, read_whole_file(path, kSnapshotLimit));
  }
  auto snapshot = snapshot_from_json(text);
  if (!snapshot) {
    Error error = snapshot.error();
    error.message = message("{}: {}", path, error.message);
    return error;
  }
  return snapshot;
}

// Examines files of this machine for the machine of a stored snapshot.
Result<void> join_named_files(const std::vector<std::string>& so, Snapshot& snapshot) {
  SCANKIT_TRY(probes::NamedFiles named, probes::open_named_files_alone(so));
  probes::probe_named_files_on_target(named, snapshot);
  snapshot.named_files = so;
  return {};
}

}  // namespace scankit::cli
