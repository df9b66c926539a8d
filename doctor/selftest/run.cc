// SPDX-License-Identifier: Apache-2.0
#include "doctor/selftest/run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "doctor/base/say.h"

namespace scankit {
namespace {

constexpr std::chrono::seconds kDoctorTime{120}, kImportTime{60}, kHangTime{3};

// The user's variables, without those that would put other modules on the path.
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
  trial.again[0] = "scankit";
  return trial;
}

// Only a process that runs can be seen to die or to hang.
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
