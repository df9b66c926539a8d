// SPDX-License-Identifier: Apache-2.0
#include "envspec/check/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/checks/check.h"
#include "doctor/report/doctor_document.h"
#include "envspec/check/findings_test.h"
#include "envspec/spec/derive.h"

namespace scankit::envspec {
namespace {
using Json = nlohmann::json;

Snapshot machine() {
  Snapshot snapshot;
  Python python;
  python.version = "3.11.7";
  python.implementation = "cpython";
  snapshot.python = Probed<Python>::of(python);
  Torch torch;
  torch.version = "2.11.0+cu130";
  torch.cuda = "13.0";
  torch.string_abi = "new";
  snapshot.torch = Probed<Torch>::of(torch);
  snapshot.gpus = Probed<std::vector<Gpu>>::absent("no GPU");
  snapshot.driver = Probed<Driver>::absent("no driver");
  snapshot.compilers = Probed<std::vector<Compiler>>::of({{"/usr/bin/g++", "gcc", "12.2.0"}});
  snapshot.modules = {"selective_scan_cuda", "other"};
  Extension file;
  file.module = "selective_scan_cuda";
  file.path = "/site/selective_scan_cuda.abi3.so";
  file.selected = true;
  file.file_state = "elf";
  file.tag = "abi3";
  file.distribution = "scankit-selective-scan-cuda";
  DeviceImage image;
  image.kind = "cubin";
  image.sm = 90;
  file.images = {image};
  snapshot.extensions = Probed<std::vector<Extension>>::of({file});
  return snapshot;
}

Report report_of(const Snapshot& snapshot, const std::string& yaml) {
  const auto spec = parse_spec("schema: 1\n" + yaml, "s.yaml");
  EXPECT_TRUE(spec) << english(spec.error().message);
  Report report;
  report.asked = Asked::Drift;
  report.compared_with = {{"spec", "s.yaml"}};
  report.snapshot = snapshot;
  if (spec) report.outcomes = check_spec(*spec, snapshot, facts_of(snapshot));
  checks::decide_root_cause(report);
  return report;
}

// "clean", "unknown", or the causes in their order: "drift_torch drift_cuda".
std::string answer(const Snapshot& snapshot, const std::string& yaml) {
  const Report report = report_of(snapshot, yaml);
  std::string causes;
  for (const Finding& finding : report.findings)
    causes += (causes.empty() ? "" : " ") + std::string(info(finding.cause).slug);
  if (!causes.empty()) return causes;
  return report.verdict == Verdict::Healthy ? "clean" : "unknown";
}

// The answer to one question of the spec.
std::vector<std::string> answer_to(const std::string& check, const Snapshot& snapshot,
                                   const std::string& yaml) {
  const auto report = report_of(snapshot, yaml);
  const auto found = std::ranges::find(report.outcomes, check, &Outcome::check);
  return found == report.outcomes.end() ? std::vector<std::string>{"not asked"} : test::in_words(*found);
}
using Lines = std::vector<std::string>;

const std::string kExtension = "extensions:\n  selective_scan_cuda:\n    ";

TEST(SpecCheck, IsCleanWhereAllIsAsDemanded) {
  EXPECT_EQ(
      answer(machine(),
             "driver: \">=580\"\ngpus: [sm_90]\npython: {implementation: cpython, version: \"3.11.*\"}\n"
             "torch: {version: \"2.11.*\", cuda: \"13.0\", string_abi: new}\n"
             "host_compiler: {kind: gcc, version: \">=11,<13\"}\n" +
                 kExtension + "code: [sm_90]\n    torch_abi: none\n    python_tag: abi3\n"),
      "clean");
}

TEST(SpecCheck, NamesEachDrift) {
  const Snapshot here = machine();
  EXPECT_EQ(answer(here, "python: {version: \"3.12.*\"}"), "drift_python");
  EXPECT_EQ(answer(here, "python: {implementation: pypy}"), "drift_python");
  EXPECT_EQ(answer(here, "torch: {version: \">=2.12\"}"), "drift_torch");
  EXPECT_EQ(answer(here, "torch: {cuda: \"12.*\"}"), "drift_cuda");
  EXPECT_EQ(answer(here, "torch: {string_abi: old}"), "drift_string_abi");
  EXPECT_EQ(answer(here, "host_compiler: {kind: clang}"), "drift_compiler");
  EXPECT_EQ(answer(here, "host_compiler: {version: \">=13\"}"), "drift_compiler");
  EXPECT_EQ(answer(here, "gpus: [sm_100]"), "drift_gpu");  // no code for it
  EXPECT_EQ(answer(here, "extensions: {other: }"), "drift_extension_missing");
  EXPECT_EQ(answer(here, kExtension + "code: [sm_80]"), "drift_extension");
  EXPECT_EQ(answer(here, kExtension + "torch_abi: full"), "drift_extension");
  EXPECT_EQ(answer(here, kExtension + "cuda: \"13.*\""), "drift_extension");
  EXPECT_EQ(answer(here, kExtension + "distribution: mamba-ssm"), "drift_extension");
  EXPECT_EQ(answer(here, kExtension + "distribution: scankit_selective.scan_cuda"), "clean");  // PEP 503
}

TEST(SpecCheck, PutsWhatFollowsFromAnotherTorchBelowIt) {
  const Report report = report_of(machine(), "torch: {version: \">=2.12\", cuda: \"12.*\", string_abi: old}");
  ASSERT_EQ(report.findings.size(), 3U);
  EXPECT_EQ(report.findings[0].cause, Cause::DriftTorch);
  EXPECT_EQ(report.findings[1].because_of, Cause::DriftTorch);
  EXPECT_EQ(report.findings[2].because_of, Cause::DriftTorch);
}

TEST(SpecCheck, LooksAtGpusAndDriverWhereTheyAre) {
  Snapshot here = machine();
  Gpu gpu;
  gpu.name = "NVIDIA H200";
  gpu.sm = "90";
  here.gpus = Probed<std::vector<Gpu>>::of({gpu});
  EXPECT_EQ(answer(here, "gpus: [sm_90]"), "clean");
  EXPECT_EQ(answer(here, "gpus: [sm_90, sm_100]"), "drift_gpu");
  EXPECT_EQ(answer(here, "driver: \">=580\""), "drift_driver");  // a GPU, and no driver
  Driver driver;
  driver.version = "570.86.15";
  here.driver = Probed<Driver>::of(driver);
  EXPECT_EQ(answer(here, "driver: \">=580\""), "drift_driver");
  EXPECT_EQ(answer(here, "driver: \">=570.26\""), "clean");
  here.gpus.value[0].sm = "100";
  EXPECT_EQ(answer(here, "gpus: [sm_90]"), "drift_gpu");
}

TEST(SpecCheck, NeverTakesTheUnknownForAMatch) {
  Snapshot here = machine();
  here.torch = Probed<Torch>::failed("unreadable");
  EXPECT_EQ(answer(here, "torch: {version: \"2.11.*\"}"), "unknown");
  EXPECT_EQ(answer(here, "torch: {cuda: \"13.0\"}"), "unknown");
  EXPECT_EQ(answer(here, "python: {version: \"3.11.*\"}"), "clean");
  here = machine();
  here.torch.value.string_abi = "unknown";
  EXPECT_EQ(answer(here, "torch: {string_abi: new}"), "unknown");
  here.torch.value.version = "main";
  EXPECT_EQ(answer(here, "torch: {version: \"2.11.*\"}"), "unknown");
  here.driver = Probed<Driver>::failed("unreadable");
  EXPECT_EQ(answer(here, "driver: \">=1\""), "unknown");
  here.gpus = Probed<std::vector<Gpu>>::of({Gpu{}});
  EXPECT_EQ(answer(here, "gpus: [sm_90]"), "unknown");
  here.compilers = {};
  EXPECT_EQ(answer(here, "host_compiler: {kind: gcc}"), "unknown");
  EXPECT_EQ(answer(here, "extensions: {never_looked_for: }"), "unknown");
  here.extensions.value[0].file_state = "unreadable";
  EXPECT_EQ(answer(here, kExtension + "code: [sm_90]"), "unknown");
  here.extensions = Probed<std::vector<Extension>>::failed("unreadable");
  EXPECT_EQ(answer(here, kExtension + "code: [sm_90]"), "unknown");
}

TEST(SpecCheck, TakesAnAbsentTorchForADrift) {
  Snapshot here = machine();
  here.torch = Probed<Torch>::absent("not installed");
  EXPECT_EQ(answer(here, "torch: {version: \"2.11.*\", cuda: \"13.0\", string_abi: new}"), "drift_torch");
}

TEST(SpecCheck, LooksForDeviceCodeWhereThereIsAny) {
  const auto code = [](const Snapshot& here) { return answer_to("spec-gpu-code", here, "gpus: [sm_90]"); };
  Snapshot here = machine();
  EXPECT_EQ(code(here), Lines{"passed"});
  here.torch = Probed<Torch>::absent("not installed");
  EXPECT_EQ(code(here), Lines{"passed"});
  here.torch = Probed<Torch>::failed("unreadable");
  EXPECT_EQ(code(here), Lines{"unknown"});
  here.extensions.value[0].images.clear();
  EXPECT_EQ(code(here), Lines{"unknown"});
  here.torch = Probed<Torch>::absent("not installed");
  EXPECT_EQ(code(here), Lines{"left out"});
}

TEST(SpecCheck, HasOurModuleBuiltForTheGpusAndAnotherInstalled) {
  Snapshot here = machine();
  EXPECT_EQ(
      answer_to("spec-gpu-code", here, "gpus: [sm_80]"),
      Lines{"error drift_gpu /site/selective_scan_cuda.abi3.so: build it for them: scankit build --module "
            "selective_scan_cuda --for s.yaml"});
  here.extensions.value[0].module = "other";
  EXPECT_EQ(
      answer_to("spec-gpu-code", here, "gpus: [sm_80]"),
      Lines{"error drift_gpu /site/selective_scan_cuda.abi3.so: install a build for these GPUs, or remove "
            "them from s.yaml"});
}

TEST(SpecCheck, TakesNoCompilerForADrift) {
  Snapshot here = machine();
  here.compilers.value[0].version = "unknown";
  EXPECT_EQ(answer(here, "host_compiler: {version: \">=11\"}"), "drift_compiler");
  here.compilers = Probed<std::vector<Compiler>>::absent("none on PATH");
  EXPECT_EQ(answer(here, "host_compiler: {kind: gcc}"), "drift_compiler");
}

TEST(SpecCheck, ProposesHowToGetWhatIsNotInstalled) {
  Snapshot here = machine();
  here.extensions.value.clear();
  const std::string ours = "error drift_extension_missing selective_scan_cuda: ",
                    other = "error drift_extension_missing other: ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"selective_scan_cuda: ", ours + "fix selective_scan_cuda"},
      {"selective_scan_cuda: {torch_abi: none}", ours + "fix selective_scan_cuda"},
      {"selective_scan_cuda: {torch_abi: full, distribution: mamba-ssm}", ours + "install mamba-ssm"},
      {"other: {distribution: mamba-ssm, version: \"2.*\"}", other + "install mamba-ssm==2.*"},
      {"other: ", other + "install the package that provides other, or remove it from the spec"}};
  for (const auto& [spec, wanted] : cases)
    EXPECT_EQ(answer_to("spec-extension", here, "extensions: {" + spec + "}"), Lines{wanted}) << spec;
}

TEST(SpecCheck, ProposesHowToGetAnotherBuild) {
  Snapshot here = machine();
  here.distributions = Probed<std::vector<Distribution>>::of({{.name = "pkg", .version = "1.5"}});
  const auto proposed = [&](const std::string& module, const std::string& distribution,
                            const std::string& spec) {
    here.extensions.value[0].module = module;
    here.extensions.value[0].distribution = distribution;
    const auto lines = answer_to("spec-extension", here, "extensions: {" + module + ": {" + spec + "}}");
    return lines[0].substr(lines[0].find(": ") + 2);
  };
  const std::string tag = "python_tag: cpython-311-x86_64-linux-gnu";
  EXPECT_EQ(proposed("selective_scan_cuda", "pkg", tag), "fix selective_scan_cuda");
  EXPECT_EQ(proposed("selective_scan_cuda", "pkg", tag + ", torch_abi: none"), "fix selective_scan_cuda");
  EXPECT_EQ(proposed("selective_scan_cuda", "pkg", "torch_abi: full"), "rebuild pkg 1.5");
  EXPECT_EQ(proposed("other", "pkg", tag), "rebuild pkg 1.5");
  EXPECT_EQ(proposed("other", "", tag + ", distribution: pkg"), "rebuild pkg ");
  EXPECT_EQ(proposed("other", "", tag), "install it as the spec says, or edit the spec");
}

TEST(SpecCheck, PointsToTheFactWhereTheSnapshotHasIt) {
  EXPECT_EQ(
      answer_to("spec-extension", machine(),
                kExtension + "torch_abi: full\n    python_tag: cpython-311-x86_64-linux-gnu\n"),
      (Lines{"error drift_extension /site/selective_scan_cuda.abi3.so: rebuild scankit-selective-scan-cuda ",
             "error drift_extension /site/selective_scan_cuda.abi3.so [/extensions/value/0/tag]: rebuild "
             "scankit-selective-scan-cuda "}));
}

TEST(SpecCheck, ComparesTheVersionOfTheOwningPackage) {
  Snapshot here = machine();
  const auto version = [&](const std::string& range) {
    return answer(here, kExtension + "version: \"" + range + "\"");
  };
  EXPECT_EQ(version(">=1"), "unknown");  // its package has no metadata
  here.distributions =
      Probed<std::vector<Distribution>>::of({{.name = "scankit-selective-scan-cuda", .version = "1.5"}});
  EXPECT_EQ(version(">=1"), "clean");
  EXPECT_EQ(version(">=2"), "drift_extension");
  here.extensions.value[0].distribution = "";
  EXPECT_EQ(version(">=1"), "drift_extension");  // no package has this file
}

TEST(SpecCheck, KnowsScankitsOwnModuleAndThePackageThatItIsFor) {
  Snapshot here = machine();
  here.distributions = Probed<std::vector<Distribution>>::of(
      {{.name = "scankit-selective-scan-cuda", .version = "1.5"}, {.name = "Mamba_SSM", .version = "2.3.1"}});
  const std::string own = kExtension + "from: scankit\n";
  EXPECT_EQ(answer(here, own), "clean");
  EXPECT_EQ(answer(here, own + "    package: mamba-ssm\n    package_version: \"2.3.*\"\n"), "clean");
  EXPECT_EQ(answer(here, own + "    package: mamba-ssm\n    package_version: \">=2.4\"\n"),
            "drift_extension");
  EXPECT_EQ(answer(here, own + "    package: causal-conv1d\n"), "drift_extension");
  here.extensions.value[0].distribution = "mamba-ssm";
  EXPECT_EQ(answer(here, own), "drift_extension");
  EXPECT_EQ(answer(here, kExtension + "from: wheel\n"), "clean");
}

TEST(SpecCheck, ComparesTheReleasesThatAFileWasBuiltFor) {
  Snapshot here = machine();
  const auto built_for = [&](const char* oldest, const char* newest) {
    here.extensions.value[0].built_for.torch_min = oldest;
    here.extensions.value[0].built_for.torch_max = newest;
    return answer_to("spec-extension", here, kExtension + "torch: \">=2.8,<2.12\"")[0].substr(0, 92);
  };
  EXPECT_EQ(built_for("2.4", "2.4"), "passed");  // it does not use torch
  here.extensions.value[0].uses_torch = true;
  EXPECT_EQ(built_for("2.8", "2.11"), "passed");
  EXPECT_EQ(built_for("2.8", ""), "passed");
  EXPECT_EQ(built_for("", "2.11"), "passed");
  EXPECT_EQ(built_for("", ""), "unknown");
  const std::string drift =
      "error drift_extension /site/selective_scan_cuda.abi3.so [/extensions/value/0/built_for/";
  EXPECT_EQ(built_for("2.7", "2.11"), (drift + "torch_min]: ").substr(0, 92));
  EXPECT_EQ(built_for("2.8", "2.12"), (drift + "torch_max]: ").substr(0, 92));
  EXPECT_EQ(built_for("main", ""), (drift + "torch_min]: ").substr(0, 92));  // nobody knows whether it fits
}

// Facts with which an evidence points into the snapshot, and
// the line of the spec in every machine-readable report.
TEST(SpecCheck, SaysWhichLineDemandsItInEveryReport) {
  Report report = report_of(machine(), "python: {version: \"3.11.*\"}\ntorch:\n  version: \">=2.12\"\n");
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].demanded_by->line, 4U);
  EXPECT_EQ(report.findings[0].evidence[0].value, "2.11.0+cu130");
  const Json json = Json::parse(report::doctor_json(report));
  EXPECT_EQ(json["verdict"], "drift");
  EXPECT_EQ(json["compared_with"]["spec"], "s.yaml");
  EXPECT_EQ(json["root"]["demanded_by"]["line"], 4);
  const Json schema =
      Json::parse(*read_whole_file(SCANKIT_SOURCE_DIR "/doctor/report/schema/env-check-1.json"));
  EXPECT_EQ(json["$schema"], schema["$id"]);
  for (const auto& name : schema["required"]) EXPECT_TRUE(json.contains(name)) << name;
  for (const auto& [name, value] : json.items()) EXPECT_TRUE(schema["properties"].contains(name)) << name;
  const Json place = Json::parse(report::render(
      "sarif", report::doctor_views(report, 7)))["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "s.yaml");
  EXPECT_EQ(place["region"]["startLine"], 4);
  EXPECT_NE(
      report::render("github", report::doctor_views(report, 7)).find("::error file=s.yaml,line=4,title="),
      std::string::npos);
  EXPECT_NE(report::render("junit", report::doctor_views(report, 7)).find("name=\"scankit env check\""),
            std::string::npos);
  EXPECT_NE(report::render("markdown", report::doctor_views(report, 7))
                .find("## scankit env check: the environment has drifted:"),
            std::string::npos);
}

TEST(SpecMachine, HasTheGpusAndTheOldestDriverOfTheSpec) {
  const auto there = machine_of_spec("schema: 1\ndriver: \">=580.65.06\"\ngpus: [sm_90, sm_100]\n", "s.yaml");
  ASSERT_TRUE(there) << english(there.error().message);
  ASSERT_EQ(there->gpus.value.size(), 2U);
  EXPECT_EQ(there->gpus.value[1].sm, "100");
  EXPECT_EQ(there->driver.value.version, "580.65.06");
  EXPECT_EQ(machine_of_spec("schema: 1\n", "s.yaml").error().code, Errc::NotFound);
  EXPECT_EQ(machine_of_spec("run: me\n", "s.yaml").error().code, Errc::Malformed);
}

}  // namespace
}  // namespace scankit::envspec
