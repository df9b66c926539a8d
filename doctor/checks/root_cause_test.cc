// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/checks/check.h"
#include "doctor/model/snapshot_variables.h"

namespace scankit::checks {
namespace {

// Of a machine with something to check.
Report report(std::vector<Finding> findings = {}) {
  Report made;
  made.snapshot.torch = Probed<Torch>::of({});
  made.snapshot.modules = {"a", "b"};
  Outcome outcome{.check = "step-doctor", .question = "?"};
  if (!findings.empty()) outcome.state = CheckState::Found;
  outcome.findings = std::move(findings);
  made.outcomes.push_back(std::move(outcome));
  return made;
}

Verdict verdict(Report made) {
  decide_root_cause(made);
  return made.verdict;
}

// "cause module < cause that it follows from", in the order of the report.
std::vector<std::string> order(std::vector<Finding> findings) {
  Report made = report(std::move(findings));
  decide_root_cause(made);
  std::vector<std::string> lines;
  for (const Finding& finding : made.findings) {
    std::string line = std::string(info(finding.cause).slug) + " " + finding.module;
    if (finding.because_of) line += " < " + std::string(info(*finding.because_of).slug);
    lines.push_back(std::move(line));
  }
  return lines;
}
using Lines = std::vector<std::string>;

TEST(RootCause, OrdersBySeverityThenModuleThenRank) {
  EXPECT_EQ(order({{.cause = Cause::NinjaMissing, .module = "a"},
                   {.cause = Cause::MissingCudart, .module = "b"},
                   {.cause = Cause::PtxToolchain, .module = "a"},
                   {.cause = Cause::MissingCudart, .module = "a"},
                   {.cause = Cause::PtxToolchain, .module = "other"},
                   {.cause = Cause::PtxToolchain, .module = "torch"},
                   {.cause = Cause::PtxToolchain, .module = "python"}}),
            (Lines{"ptx_toolchain torch", "ptx_toolchain python", "missing_cudart a", "ptx_toolchain a",
                   "missing_cudart b", "ptx_toolchain other", "ninja_missing a"}));
}

TEST(RootCause, PutsASymptomBelowTheCauseOfItsModule) {
  EXPECT_EQ(order({{.cause = Cause::TorchVersionMismatch, .module = "a"},
                   {.cause = Cause::PtxToolchain, .module = "a"},
                   {.cause = Cause::TorchVersionMismatch, .module = "b"},
                   {.cause = Cause::ImportCrash, .module = "b"},
                   {.cause = Cause::ImportCrash, .module = "a"}}),
            (Lines{"torch_version_mismatch a", "import_crash a < torch_version_mismatch", "ptx_toolchain a",
                   "torch_version_mismatch b", "import_crash b < torch_version_mismatch"}));
  // A cause of another module explains nothing.
  EXPECT_EQ(order({{.cause = Cause::TorchVersionMismatch, .module = "a"},
                   {.cause = Cause::ImportCrash, .module = "b"}}),
            (Lines{"torch_version_mismatch a", "import_crash b"}));
}

// Of calls that do not work, a name that became None is no consequence.
TEST(RootCause, OfANameThatBecameNoneIsAnImportThatFails) {
  EXPECT_EQ(
      order({{.cause = Cause::SilentNoneCausalConv1d, .module = "a"},
             {.cause = Cause::PybindInternalsMismatch, .module = "a"}}),
      (Lines{"pybind_internals_mismatch a", "silent_none_causal_conv1d a < pybind_internals_mismatch"}));
  EXPECT_EQ(order({{.cause = Cause::SilentNoneCausalConv1d, .module = "a"},
                   {.cause = Cause::SignatureMismatch, .module = "a"}}),
            (Lines{"signature_mismatch a", "silent_none_causal_conv1d a"}));
  EXPECT_EQ(order({{.cause = Cause::SilentNoneCausalConv1d, .module = "a"},
                   {.cause = Cause::TransformersIncompatible, .module = "a"}}),
            (Lines{"transformers_incompatible a", "silent_none_causal_conv1d a"}));
}

// Code that the driver cannot unpack is there; code that does not exist is no consequence of an old driver.
TEST(RootCause, FollowsACircumstanceWhereItsCauseWasFound) {
  const Finding old_driver{.cause = Cause::DriverTooOld, .module = "a"};
  const Finding no_code{.cause = Cause::NoKernelImage, .module = "a"};
  const Finding packed{
      .cause = Cause::NoKernelImage, .module = "a", .circumstances = {Circumstance::DriverCannotUnpack}};
  EXPECT_EQ(order({packed, old_driver}), (Lines{"driver_too_old a", "no_kernel_image a < driver_too_old"}));
  EXPECT_EQ(order({no_code, old_driver}), (Lines{"driver_too_old a", "no_kernel_image a"}));
  EXPECT_EQ(order({packed}), (Lines{"no_kernel_image a"}));
  // A symptom that became milder is still one.
  Finding milder = packed;
  milder.circumstances.push_back(Circumstance::PackageImportsWithoutIt);
  EXPECT_EQ(order({milder, old_driver}), (Lines{"driver_too_old a", "no_kernel_image a < driver_too_old"}));
  EXPECT_EQ(order({milder}), (Lines{"no_kernel_image a"}));
}

TEST(Verdict, IsBrokenByAnErrorAlone) {
  EXPECT_EQ(verdict(report()), Verdict::Healthy);
  EXPECT_EQ(verdict(report({{.cause = Cause::NinjaMissing, .module = "a"}})), Verdict::Healthy);
  EXPECT_EQ(verdict(report({{.cause = Cause::ImportCrash, .module = "a"}})), Verdict::Broken);
}

TEST(Verdict, IsUnknownWhereAnErrorMayBeHidden) {
  Report made = report();
  made.outcomes[0].could_hide_error = true;
  EXPECT_EQ(verdict(made), Verdict::Unknown);
  made.outcomes[0].findings = {{.cause = Cause::ImportCrash, .module = "a"}};
  EXPECT_EQ(verdict(made), Verdict::Broken);
  Report broken = report();
  broken.snapshot.broken_environment = {"VIRTUAL_ENV", "/venv", "gone", "", ""};
  EXPECT_EQ(verdict(broken), Verdict::Unknown);
}

TEST(Verdict, IsEmptyWhereThereIsNothingToLookAt) {
  Report made = report();
  made.snapshot = {};
  made.snapshot.python = Probed<Python>::of({});
  made.snapshot.torch = Probed<Torch>::absent("none");
  made.snapshot.extensions = Probed<std::vector<Extension>>::absent("none");
  ASSERT_TRUE(nothing_to_check(made.snapshot));
  EXPECT_EQ(verdict(made), Verdict::Empty);
  made.asked = Asked::Drift;  // what the spec asks for is something
  EXPECT_EQ(verdict(made), Verdict::Healthy);
}

TEST(Verdict, OfAGateIsEmptyWhereNoStepRan) {
  Report made = report();
  made.asked = Asked::Gate;
  EXPECT_EQ(verdict(made), Verdict::Healthy);
  made.outcomes[0].state = CheckState::NotApplicable;
  EXPECT_EQ(verdict(made), Verdict::Empty);
  made.outcomes.push_back({.check = "step-validate", .question = "?"});
  EXPECT_EQ(verdict(made), Verdict::Healthy);
  made.outcomes[1].state = CheckState::NotApplicable;
  made.outcomes.push_back({.check = "another", .question = "?"});
  EXPECT_EQ(verdict(made), Verdict::Empty);
  made.asked = Asked::Health;
  EXPECT_EQ(verdict(made), Verdict::Healthy);
  made.asked = Asked::Gate;
  made.outcomes.erase(made.outcomes.begin(), made.outcomes.begin() + 2);  // not the report of any step
  EXPECT_EQ(verdict(made), Verdict::Healthy);
}

}  // namespace
}  // namespace scankit::checks
