// SPDX-License-Identifier: Apache-2.0
#include "doctor/selftest/run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/plain_json.h"
#include "doctor/report/escape.h"
#include "doctor/report/json.h"
#include "doctor/selftest/faults.h"

namespace scankit {
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
    return Error{Errc::Io, say("cannot make the link {}", scratch.python), ""};
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
using Json = nlohmann::ordered_json;

std::size_t count_of(const std::vector<Trial>& trials, Judgement wanted) {
  return static_cast<std::size_t>(std::ranges::count(trials, wanted, &Trial::judgement));
}

std::string cause_or_none(const std::string& slug) { return slug.empty() ? say("nothing") : slug; }

// The first word is padded to the same width in all cases; it is the second column of the table.
std::string answer(const Trial& trial) {
  switch (trial.judgement) {
    case Judgement::Named:
      return say("found     {}", cause_or_none(trial.expected));
    case Judgement::Missed:
      return say("MISSED    {}, doctor reported {}", cause_or_none(trial.expected), trial.named);
    case Judgement::NotPlanted:
      return say("FAILED    not injected: {}", trial.why);
    case Judgement::Failed:
      return say("FAILED    {}", trial.why);
    case Judgement::Skipped:
      return say("skipped   {}", trial.why);
  }
  return "";
}

// Replaces the directory, whose name is random, so that two runs print the same text.
std::string without_folder(std::string text, const std::string& folder) {
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.replace(at, folder.size(), "$SCRATCH");
  return text;
}

}  // namespace

std::string selftest_text(const SelftestRequest& request, const std::vector<Trial>& trials) {
  const Python& python = request.facts.python.value;
  std::string out =
      plain(say("Injected for {} ({} {})", python.requested, python.implementation, python.version), true) +
      "\n";
  for (const Trial& trial : trials) {
    std::string name = trial.fault;
    name.resize(std::max<std::size_t>(name.size(), 16), ' ');
    out += name + " " + plain(answer(trial), true) + "\n";
    out += std::string(17, ' ') + trial.planted + "\n";
    if (!trial.import_line.empty())
      out += std::string(17, ' ') + plain(without_folder(trial.import_line, request.folder), true) + "\n";
    // The doctor's command is printed for an answer that was wrong, for the reader to repeat. With
    // --keep it works.
    if (trial.judgement == Judgement::Named || trial.again.empty()) continue;
    std::string command;
    for (const std::string& word : trial.again) command += (command.empty() ? "" : " ") + shell_quoted(word);
    out += std::string(17, ' ') + plain(without_folder(command, request.folder), true) + "\n";
  }
  const std::size_t named = count_of(trials, Judgement::Named),
                    tried = trials.size() - count_of(trials, Judgement::Skipped);
  return out + say("{} of {} answers are correct, {} skipped", named, tried, trials.size() - tried) + "\n";
}

std::string selftest_json(const SelftestRequest& request, const std::vector<Trial>& trials) {
  const int status = exit_status_of(trials);
  Json json{{"$schema", "urn:scankit:selftest:1"},
            {"tool_version", request.facts.tool_version},
            {"python", request.facts.python.value.requested},
            {"verdict", status == 0 ? "passed" : "failed"},
            {"imports", request.import},
            {"faults", Json::array()}};
  for (const Trial& trial : trials)
    json["faults"].push_back({{"fault", trial.fault},
                              {"planted", trial.planted},
                              {"expected", or_null(trial.expected)},
                              {"outcome", judgement_word(trial.judgement)},
                              {"named", or_null(trial.named)},
                              {"why", or_null(trial.why)},
                              {"import_error", or_null(without_folder(trial.import_line, request.folder))},
                              {"command", trial.again}});
  return json_document(json);
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

}  // namespace scankit
