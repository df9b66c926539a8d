// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "doctor/selftest/selftest.h"

namespace scankit::selftest {
namespace {
using ParsedJson = nlohmann::json;

// The last line that is not empty: of a traceback, the exception.
std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of("\r\n ");
  if (end == std::string::npos) return "";
  const auto start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1) + 1);
}

// How the interpreter failed, in one line.
std::string seen(const ProcessResult& imported) {
  if (imported.timed_out) return say("no answer within {} ms", imported.duration.count());
  if (imported.signal != 0) return say("killed by signal {}", imported.signal);
  return last_line(imported.err);
}

// Compares the doctor's JSON and its exit status with what the fault demands. Throws if a key is missing;
// the caller then reports that the answer does not follow its schema.
Judgement judgement_of(const SelftestFault& fault, const ParsedJson& answer, int exit_code, Trial& trial) {
  const ParsedJson& root = answer.at("root");
  const std::string verdict = answer.at("verdict").get<std::string>();
  trial.named = root.is_object() ? root.at("cause").get<std::string>() : verdict;
  const bool right = fault.cause.empty()
                         ? verdict == "healthy" && root.is_null() && exit_code == kExitClean
                         : verdict == "broken" && trial.named == fault.cause && exit_code == kExitFindings;
  return right ? Judgement::Named : Judgement::Missed;
}

}  // namespace

// These words are part of selftest's JSON and are not translated.
std::string_view judgement_word(Judgement judgement) {
  switch (judgement) {
    case Judgement::Named:
      return "named";
    case Judgement::Missed:
      return "missed";
    case Judgement::NotPlanted:
      return "not-planted";
    case Judgement::Failed:
      return "failed";
    case Judgement::Skipped:
      return "skipped";
  }
  return "";
}

Trial judge(const SelftestFault& fault, const std::optional<ProcessResult>& imported,
            const Result<ProcessResult>& doctor) {
  Trial trial{.fault = fault.name, .planted = fault.planted, .expected = fault.cause};
  // The interpreter must fail over every fault, except where a package hides it or nothing is wrong.
  // Otherwise the fault is not there, and the doctor's answer means nothing.
  if (imported) {
    trial.import_line = imported->ok() ? "" : seen(*imported);
    const bool should_work = fault.cause.empty() || fault.hides;
    if (imported->ok() != should_work) {
      trial.judgement = Judgement::NotPlanted;
      trial.why = should_work ? say("the interpreter rejects it: {}", trial.import_line)
                              : say("the interpreter imports it without an error");
      return trial;
    }
  }
  trial.judgement = Judgement::Failed;
  if (!doctor) {
    trial.why = tr(doctor.error().message);
  } else if (doctor->timed_out || doctor->signal != 0) {
    trial.why = doctor->timed_out ? say("doctor gave no answer in time")
                                  : say("doctor was killed by signal {}", doctor->signal);
  } else {
    try {
      trial.judgement = judgement_of(fault, parse_json<ParsedJson>(doctor->out), doctor->exit_code, trial);
    } catch (const ParsedJson::exception&) {
      trial.why = say("doctor's answer does not match its schema; exit status {}: {}", doctor->exit_code,
                      last_line(doctor->err));
    }
  }
  return trial;
}

int exit_status_of(const std::vector<Trial>& trials) {
  const auto any = [&](Judgement wanted) {
    return std::ranges::any_of(trials, [&](const Trial& trial) { return trial.judgement == wanted; });
  };
  // A selftest that could not do its own part is an internal error, even if the doctor also
  // missed something.
  if (any(Judgement::Failed) || any(Judgement::NotPlanted)) return kExitInternal;
  if (any(Judgement::Missed)) return kExitFindings;
  return any(Judgement::Named) ? kExitClean : kExitInternal;
}

namespace {

// The 11 of "3.11.4"; 0 for anything that is not Python 3.
unsigned minor_of(const std::string& version) {
  unsigned minor = 0;
  if (version.starts_with("3.")) std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor;
}

}  // namespace

// A virtual environment is a pyvenv.cfg and a link to the interpreter (PEP 405). `python -m venv` would
// run the interpreter, and Debian's Python lacks it.
Result<Scratch> make_scratch(const Snapshot& facts, const std::string& folder, bool torch) {
  const Python& python = facts.python.value;
  Scratch scratch;
  scratch.folder = folder;
  scratch.minor = minor_of(python.version);
  scratch.python = folder + "/bin/python";
  scratch.site = folder + "/lib/python3." + std::to_string(scratch.minor) + "/site-packages";
  scratch.suffix = "." + python.soabi + ".so";
  SCANKIT_CHECK(make_directories(folder + "/bin"));
  SCANKIT_CHECK(make_directories(scratch.site));
  SCANKIT_CHECK(write_file_atomically(
      folder + "/pyvenv.cfg", "home = " + path_dirname(python.executable) +
                                  "\ninclude-system-site-packages = false\nversion = " + python.version +
                                  "\n"));
  if (::symlink(python.executable.c_str(), scratch.python.c_str()) != 0)
    return Error{Errc::Io, message("cannot make the link {}", scratch.python), ""};
  // A line of a .pth file is appended to sys.path (site.py), so the site-packages directory that contains
  // torch becomes visible.
  if (torch) {
    scratch.string_abi = facts.torch.value.string_abi;
    SCANKIT_CHECK(write_file_atomically(scratch.site + "/torch-of-the-user.pth",
                                        path_dirname(facts.torch.value.location) + "\n"));
  }
  return scratch;
}

namespace {

// The doctor's limit is longer than that of the import that it may make. An import that is planted to
// hang gets 3 seconds.
constexpr std::chrono::seconds kDoctorTime{120}, kImportTime{60}, kHangTime{3};

// The user's variables without those that would put other modules on the path: every PYTHON... variable
// and the marks of an active environment.
std::vector<std::string> environment() {
  constexpr std::array<std::string_view, 3> kLeftOut{"PYTHON", "VIRTUAL_ENV=", "CONDA_PREFIX="};
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::ranges::none_of(
            kLeftOut, [&](std::string_view start) { return std::string_view(*entry).starts_with(start); }))
      kept.emplace_back(*entry);
  return kept;
}

Result<std::optional<ProcessResult>> imported(const SelftestFault& fault, const Scratch& scratch,
                                              const RunCommand& run) {
  ProcessRequest request{.argv = {scratch.python, "-c", fault.import},
                         .environment = environment(),
                         .working_directory = scratch.folder,
                         .standard_input = {}};
  request.timeout = fault.cause == "import_hang" ? kHangTime : kImportTime;
  SCANKIT_TRY(ProcessResult result, run(request));
  return std::optional(std::move(result));
}

// Plants one fault, asks the interpreter (unless the request forbids it) and then the doctor, and judges.
Result<Trial> try_one(const SelftestFault& fault, const SelftestRequest& request, const RunCommand& run) {
  SCANKIT_TRY(const Scratch scratch,
              make_scratch(request.facts, request.folder + "/" + fault.name, fault.needs_torch));
  SCANKIT_CHECK(fault.plant(scratch));
  std::optional<ProcessResult> seen;
  if (request.import) {
    SCANKIT_TRY(seen, imported(fault, scratch, run));
  }
  ProcessRequest doctor{
      .argv = {request.self, "doctor", "--python", scratch.python, "--module", kSelftestModule, "--json"},
      .environment = environment(),
      .working_directory = scratch.folder,
      .standard_input = {}};
  doctor.argv.insert(doctor.argv.end(), fault.doctor_options.begin(), fault.doctor_options.end());
  if (!request.import && !std::ranges::count(doctor.argv, "--no-import"))
    doctor.argv.emplace_back("--no-import");
  doctor.timeout = kDoctorTime;
  Trial trial = judge(fault, seen, run(doctor));
  trial.again = doctor.argv;
  // What the user would type, in place of the path of this executable.
  trial.again[0] = "scankit";
  return trial;
}

// Why this fault is not tried. A crash or a hang can only be seen in a process that runs.
std::string cannot_try(const SelftestFault& fault, const SelftestRequest& request) {
  if (!request.import && (fault.cause == "import_crash" || fault.cause == "import_hang"))
    return say("nothing is imported");
  return cannot_plant(fault, request.facts);
}

}  // namespace

Result<std::vector<Trial>> run_selftest(const SelftestRequest& request, const RunCommand& run) {
  std::vector<Trial> trials;
  for (const SelftestFault& fault : selftest_faults()) {
    if (request.stop && request.stop()) break;
    if (const std::string why = cannot_try(fault, request); !why.empty()) {
      trials.push_back({.fault = fault.name, .planted = fault.planted, .expected = fault.cause, .why = why});
      continue;
    }
    if (request.progress) request.progress(fault.name);
    SCANKIT_TRY(Trial trial, try_one(fault, request, run));
    trials.push_back(std::move(trial));
  }
  return trials;
}

}  // namespace scankit::selftest
