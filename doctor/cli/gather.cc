// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/host/host.h"
#include "doctor/probes/named_files.h"
#include "doctor/probes/python_choice.h"
#include "doctor/probes/snapshot.h"
#include "doctor/report/plain.h"
#include "doctor/report/progress.h"

namespace scankit {
namespace {

constexpr unsigned kPhases = 3;  // machine, environment, imports

// --python names a path of the examined system; the same path as seen from here is understood too.
std::string inside_root(const Host& host, const std::string& root, const std::string& path) {
  const bool outer = !root.empty() && path.starts_with(root + "/") && !host.lstat(path);
  return outer ? path.substr(root.size()) : path;
}

void complain_in(const Language* language, const Error& error) {
  const Speaking speaking(language);
  complain(error);
}

}  // namespace

void complain(const Error& error) {
  std::cerr << "scankit: " << plain(retold(error.message), false);
  if (!error.hint.empty()) std::cerr << " (" << plain(retold(error.hint), false) << ")";
  std::cerr << "\n";
}

int exit_status_of(const Error& error) {
  const bool wrong_path = error.code == Errc::NotFound || error.code == Errc::PermissionDenied ||
                          error.code == Errc::InvalidArgument;
  return wrong_path ? kExitUsage : kExitInternal;
}

Result<Facts> gather(const EnvironmentOptions& options) {
  const Language* language = spoken_language();
  const Speaking facts_are_english(nullptr);  // a snapshot is the same in whatever language it was taken
  Facts facts;
  NamedFiles named;
  std::unique_ptr<Host> system = make_real_host(options.root);
  const Host* host = system.get();
  if (!options.so.empty()) {
    auto opened = open_named_files(std::move(system), options.so);
    if (!opened) return opened.error();
    named = *std::move(opened);
    host = named.host.get();
  }
  std::optional<std::string> requested;
  if (!options.python.empty()) requested = inside_root(*host, options.root, options.python);
  const auto python = choose_python(*host, requested, facts.notes);

  Progress progress(std::cerr, ::isatty(STDERR_FILENO) != 0, kPhases + (options.all ? 1u : 0u));
  const auto show = [&](const std::string& phase) {
    const Speaking to_the_user(language);
    progress.phase(retold(phase));
  };
  SnapshotRequest request;
  request.python = python.value_or(requested.value_or(""));
  request.modules = options.modules;
  if (!options.so.empty()) request.named = &named;
  request.audit = options.all;
  request.with_exports = options.with_exports;
  request.ask_nvml = true;
  request.sources = options.sources;
  // A path that is no Python is answered in one line.
  if (python) request.progress = show;
  request.part = [&](std::size_t done, std::size_t of) { progress.part(done, of); };
  facts.snapshot = take_snapshot(*host, request);
  facts.snapshot.target_root = options.root;
  facts.snapshot.named_files = options.so;
  if (!python) {
    facts.snapshot.python = Probed<Python>::failed(python.error().message);
    if (requested) facts.status = kExitUsage;
  }
  if (!options.sources.empty() && !facts.snapshot.sources.present()) {
    complain({Errc::InvalidArgument, say("--sources: {}", facts.snapshot.sources.note), ""});
    facts.status = kExitUsage;
  }
  ObserveRequest observe;
  observe.policy = options.imports;
  observe.can_be_asked_for = options.foreign_too;
  observe.timeout = std::chrono::milliseconds(static_cast<long long>(options.timeout_s * 1000));
  if (!options.so.empty()) {
    facts.snapshot.observations = {ProbeState::NotRun, say("what --so names is read, never run"), {}};
    progress.finish();
    if (!python) complain_in(language, python.error());
    return facts;
  }
  if (python)
    observe.starting = [&] { show(say("importing torch and the modules, each in its own process")); };
  facts.snapshot.observations = observe_imports(*host, facts.snapshot, observe);
  progress.finish();
  if (!python) complain_in(language, python.error());
  return facts;
}

// The machine of a stored snapshot, with files of this one in the place of its modules.
Result<void> join_named_files(const std::vector<std::string>& so, Snapshot& snapshot) {
  SCANKIT_TRY(NamedFiles named, open_named_files_alone(so));
  probe_named_files_elsewhere(named, snapshot);
  snapshot.named_files = so;
  return {};
}

}  // namespace scankit
