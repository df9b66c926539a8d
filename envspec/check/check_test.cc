// SPDX-License-Identifier: Apache-2.0
#include "envspec/check/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/checks/root_cause.h"
#include "doctor/report/json.h"
#include "doctor/report/sinks.h"
#include "envspec/spec/derive.h"

namespace scankit {
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
  EXPECT_TRUE(spec) << spec.error().message;
  Report report;
  report.asked = Asked::Drift;
  report.compared_with = {{"spec", "s.yaml"}};
  report.snapshot = snapshot;
  if (spec) report.outcomes = check_spec(*spec, snapshot, facts_of(snapshot));
  decide_root_cause(report);
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

// Facts with which an evidence points into the snapshot, and
// the line of the spec in every machine-readable report.
TEST(SpecCheck, SaysWhichLineDemandsItInEveryReport) {
  Report report = report_of(machine(), "python: {version: \"3.11.*\"}\ntorch:\n  version: \">=2.12\"\n");
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].demanded_by->line, 4U);
  EXPECT_EQ(report.findings[0].evidence[0].value, "2.11.0+cu130");
  const Json json = Json::parse(doctor_json(report));
  EXPECT_EQ(json["verdict"], "drift");
  EXPECT_EQ(json["compared_with"]["spec"], "s.yaml");
  EXPECT_EQ(json["root"]["demanded_by"]["line"], 4);
  const Json schema =
      Json::parse(*read_whole_file(SCANKIT_SOURCE_DIR "/doctor/report/schema/env-check-1.json"));
  EXPECT_EQ(json["$schema"], schema["$id"]);
  for (const auto& name : schema["required"]) EXPECT_TRUE(json.contains(name)) << name;
  for (const auto& [name, value] : json.items()) EXPECT_TRUE(schema["properties"].contains(name)) << name;
  const Json place =
      Json::parse(doctor_sarif(report, {}))["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "s.yaml");
  EXPECT_EQ(place["region"]["startLine"], 4);
  EXPECT_NE(doctor_github(report).find("::error file=s.yaml,line=4,title="), std::string::npos);
  EXPECT_NE(doctor_junit(report).find("name=\"scankit env check\""), std::string::npos);
  EXPECT_NE(doctor_markdown(report).find("## scankit env check: drift:"), std::string::npos);
}

TEST(SpecMachine, HasTheGpusAndTheOldestDriverOfTheSpec) {
  const auto there = machine_of_spec("schema: 1\ndriver: \">=580.65.06\"\ngpus: [sm_90, sm_100]\n", "s.yaml");
  ASSERT_TRUE(there) << there.error().message;
  ASSERT_EQ(there->gpus.value.size(), 2U);
  EXPECT_EQ(there->gpus.value[1].sm, "100");
  EXPECT_EQ(there->driver.value.version, "580.65.06");
  EXPECT_EQ(machine_of_spec("schema: 1\n", "s.yaml").error().code, Errc::NotFound);
  EXPECT_EQ(machine_of_spec("run: me\n", "s.yaml").error().code, Errc::Malformed);
}

}  // namespace
}  // namespace scankit
