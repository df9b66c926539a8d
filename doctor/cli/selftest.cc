// SPDX-License-Identifier: Apache-2.0
#include "doctor/selftest/selftest.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/host/host.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/snapshot.h"
#include "doctor/report/progress.h"

namespace scankit::cli {
namespace {

// The signal that asked to stop, 0 for none. A handler may only write such a variable.
volatile std::sig_atomic_t interrupted = 0;
void note_signal(int signal) { interrupted = signal; }

// A directory of its own in $TMPDIR. The real path is used, because the interpreter prints that one in
// its messages. Not a TemporaryDirectory: --keep must be able to leave it behind.
Result<std::string> make_folder() {
  const char* named = std::getenv("TMPDIR");
  const std::string base = named == nullptr || *named == '\0' ? "/tmp" : named;
  std::string path = path_join(base, "scankit-selftest-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr)
    return Error{Errc::Io, message("cannot create a directory in {}: {}", base, std::strerror(errno)),
                 message("set TMPDIR to a writable directory")};
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  path = real;
  std::free(real);  // NOLINT(cppcoreguidelines-no-malloc): realpath() allocates
  return path;
}

// Root that runs another user's interpreter runs that user's code (ARCHITECTURE.md, decision 17). Then
// nothing is imported.
bool ours_to_run(const std::string& executable) {
  struct stat info {};
  return ::geteuid() != 0 || (::stat(executable.c_str(), &info) == 0 && info.st_uid == 0);
}

// Facts about the interpreter; no code of it is run. An Error: it cannot be used for this test.
Result<Snapshot> facts_of(const std::string& python_option) {
  const std::unique_ptr<Host> host = make_real_host("");
  std::vector<Message> notes;
  std::optional<std::string> wanted;
  if (!python_option.empty()) wanted = python_option;
  SCANKIT_TRY(const std::string python, probes::choose_python(*host, wanted, notes));
  Snapshot facts = probes::take_snapshot(*host, {.python = python, .modules = {selftest::kSelftestModule}});
  if (!facts.python.present()) return Error{Errc::InvalidArgument, tr(facts.python.note), ""};
  const Python& found = facts.python.value;
  if (found.implementation != "cpython" || found.free_threaded || facts.os.value.machine != "x86_64")
    return Error{Errc::InvalidArgument,
                 message("selftest injects files for a CPython with the GIL on x86_64, and {} is not one",
                         found.requested),
                 message("choose one with --python")};
  return facts;
}

// Prints the result and returns the exit status; an interrupted run prints nothing.
int tell(const selftest::SelftestRequest& request, const SelftestOptions& options,
         const Result<std::vector<selftest::Trial>>& trials) {
  if (!trials) {
    report_error(trials.error());
    return kExitInternal;
  }
  if (interrupted != 0) return 128 + interrupted;
  const int shown = show(selftest::selftest_views(request, *trials), options.show);
  std::cout.flush();
  if (shown != kExitClean || !std::cout) return shown != kExitClean ? shown : kExitInternal;
  return selftest::exit_status_of(*trials);
}

}  // namespace

int run_selftest_command(const SelftestOptions& options) {
  selftest::SelftestRequest request;
  auto facts = facts_of(options.python);
  if (!facts) {
    report_error(facts.error());
    return kExitUsage;
  }
  request.facts = *std::move(facts);
  // The directory is also removed if the user stops the run, so signals are noted before it exists. Children
  // are in process groups of their own, which Ctrl-C does not reach; they end by themselves within seconds.
  std::signal(SIGINT, note_signal);
  std::signal(SIGTERM, note_signal);
  auto folder = make_folder();
  if (!folder) {
    report_error(folder.error());
    return kExitInternal;
  }
  request.folder = *std::move(folder);
  request.self = own_program().value_or("/proc/self/exe");
  request.import = ours_to_run(request.facts.python.value.executable);
  request.stop = [] { return interrupted != 0; };
  std::optional<report::Progress> progress(std::in_place);
  request.progress = [&, planted = std::size_t{0}](const std::string& fault) mutable {
    progress->count(planted++, selftest::selftest_faults().size());
    progress->now(say("injecting {}", fault));
  };
  if (!request.import)
    report::progress_note(
        say("{} belongs to another user: nothing is imported", request.facts.python.value.executable));
  const auto trials = selftest::run_selftest(request);
  // The progress line must be gone before anything is printed.
  progress.reset();
  const int status = tell(request, options, trials);
  if (options.keep) {
    std::cerr << say("scankit: kept {}", request.folder) << "\n";
    return status;
  }
  std::error_code failed;
  std::filesystem::remove_all(request.folder, failed);
  if (failed) report_error({Errc::Io, message("cannot remove {}: {}", request.folder, failed.message()), ""});
  // A shell that runs this in a loop must see by which signal it ended.
  if (interrupted != 0) {
    std::signal(interrupted, SIG_DFL);
    ::raise(interrupted);
  }
  return status;
}

}  // namespace scankit::cli
