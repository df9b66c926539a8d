// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "doctor/base/say.h"
#include "doctor/declared/own_test.h"
#include "doctor/host/host.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "validate/run/run.h"

namespace scankit::validate {
namespace {

CaseState state_of(declared::TestState state) {
  switch (state) {
    case declared::TestState::NotRun:
      return CaseState::NotRun;
    case declared::TestState::Passed:
      return CaseState::Passed;
    case declared::TestState::Failed:
      return CaseState::Failed;
    case declared::TestState::Crashed:
      return CaseState::Crashed;
    case declared::TestState::Hung:
      return CaseState::Hung;
  }
  return CaseState::NotRun;
}

void take_versions(Validation& validation) {
  const auto host = make_real_host();
  const auto python = probes::probe_python(*host, validation.python);
  if (!python.present()) return;
  validation.python_version = python.value.version;
  const auto installed = probes::probe_distributions(*host, python.value);
  if (const Distribution* torch = find_distribution(installed.value, "torch"))
    validation.torch_version = torch->version;
}

}  // namespace

Validation run_test_file(const std::string& python, const std::string& file, std::chrono::seconds limit,
                         bool shown) {
  Validation validation;
  validation.python = python;
  validation.mode = "test";
  validation.module = file;
  take_versions(validation);
  const auto show = [&](std::string_view piece) {
    if (shown) std::fwrite(piece.data(), 1, piece.size(), stderr);
  };
  const declared::TestRun run = declared::run_own_test(python, file, limit, show);
  CaseResult one{.id = "own-test", .device = "test", .state = state_of(run.state), .seconds = run.seconds};
  if (!run.why.empty()) one.reasons.push_back(tr(run.why));
  if (run.state != declared::TestState::Passed)
    one.reasons.insert(one.reasons.end(), run.lines.begin(), run.lines.end());
  else
    for (const std::string& line : run.lines) validation.notes.push_back(line);
  if (!run.by.empty()) validation.notes.push_back(say("run with {}", run.by));
  validation.seconds = run.seconds;
  validation.verdict = one.state == CaseState::Passed   ? Verdict::Passed
                       : one.state == CaseState::NotRun ? Verdict::Inconclusive
                                                        : Verdict::Failed;
  validation.cases.push_back(std::move(one));
  return validation;
}

}  // namespace scankit::validate
