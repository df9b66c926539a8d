// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/report_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "doctor/report/doctor_document.h"
#include "doctor/report/fixes.h"
#include "doctor/report/text.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {
using Json = nlohmann::json;

// SCANKIT_UPDATE_GOLDEN=1 writes the files; review them as a diff.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = kTests + "golden/" + name;
  if (std::getenv("SCANKIT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, read(path)) << path;
}

TEST(DoctorText, OfAHealthyEnvironment) {
  expect_golden("healthy.txt", doctor_text(report_of("torch_imported_first.as_every_torch_extension"), {}));
}
TEST(DoctorText, OfOneCauseWithItsSymptoms) {
  expect_golden("old_wheel.txt", doctor_text(report_of("torch_symbols_resolve.old_wheel"), {}));
}
TEST(DoctorText, OfManyUnknownFacts) {
  expect_golden("vanished.txt",
                doctor_text(report_of("file_is_whole.vanished"), {.ascii = false, .verbose = true}));
}

TEST(DoctorText, EndsWithTheCommandThatRepairs) {
  const std::string text = doctor_text(report_of("torch_symbols_resolve.drifted"), {});
  EXPECT_TRUE(text.ends_with("\nscankit fix --python /home/user/project/.venv/bin/python\n")) << text;
  EXPECT_EQ(doctor_text(report_of("torch_complete.cusparselt_gone"), {}).find("scankit fix"),
            std::string::npos);
}

TEST(DoctorText, NeverEchoesBytesOfAFileRaw) {
  Report report = report_of("torch_symbols_resolve.drifted");
  report.findings[0].summary = english(report.findings[0].summary) + "\x1b]0;owned\x07";
  report.snapshot.torch.value.version = "\x1b[2J";
  for (const bool ascii : {true, false}) {
    const std::string text = doctor_text(report, {.ascii = ascii, .verbose = true});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x07'), std::string::npos);
  }
}

TEST(DoctorText, IsAsciiWhereTheLocaleIsNot) {
  for (const char c : doctor_text(report_of("torch_symbols_resolve.old_wheel"), {.ascii = true}))
    ASSERT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(DoctorText, HasColourOnlyBesideWords) {
  const std::string text = doctor_text(report_of("torch_symbols_resolve.drifted"), {.color = true});
  EXPECT_NE(text.find("\x1b[1;31mx ERROR\x1b[0m  \x1b[1mtorch_version_mismatch\x1b[0m: "), std::string::npos);
  EXPECT_TRUE(text.ends_with("\x1b[1mscankit fix --python /home/user/project/.venv/bin/python\x1b[0m\n"));
}

TEST(DoctorText, ShortensPathsButNeverInACommand) {
  const std::string text = doctor_text(report_of("torch_symbols_resolve.old_wheel"), {});
  const std::string site = "/home/user/project/.venv/lib/python3.11/site-packages";
  EXPECT_EQ(text.find(site), text.rfind(site)) << text;  // the legend alone names it
  EXPECT_NE(text.find("\n$SITE = " + site + "\n"), std::string::npos);
  EXPECT_NE(text.find("  $SITE/selective_scan_cuda.cpython-311-x86_64-linux-gnu.so\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\nscankit fix --python /home/user/project/.venv/bin/python\n"));
  const Json json = Json::parse(doctor_json(report_of("torch_symbols_resolve.old_wheel")));
  EXPECT_EQ(json.dump().find("$SITE"), std::string::npos);
}

// By whom the GIL of a free-threaded Python is on or off; a Python with a GIL has no such choice.
TEST(DoctorText, SaysWhatTurnsTheGilOnOrOff) {
  Report report = report_of("torch_imported_first.as_every_torch_extension");
  report.snapshot.environment["PYTHON_GIL"] = "1";
  EXPECT_EQ(doctor_text(report, {}).find("GIL"), std::string::npos);
  report.snapshot.python.value.free_threaded = true;
  EXPECT_NE(doctor_text(report, {}).find("  GIL     on, by PYTHON_GIL=1"), std::string::npos)
      << doctor_text(report, {});
  report.snapshot.environment["PYTHON_GIL"] = "0";
  EXPECT_NE(doctor_text(report, {}).find("  GIL     off, by PYTHON_GIL=0"), std::string::npos);
  report.snapshot.environment["PYTHON_GIL"] = "yes";  // such a Python does not start
  EXPECT_EQ(doctor_text(report, {}).find("GIL"), std::string::npos);
}

TEST(DoctorText, NamesTheExplanationOfEachCauseOnce) {
  Report report = report_of("torch_symbols_resolve.old_wheel");
  report.findings.push_back(report.findings.front());
  const std::string text = doctor_text(report, {});
  for (const Finding& finding : report.findings) {
    const std::string command = "explain: scankit explain " + std::string(info(finding.cause).slug) + "\n";
    EXPECT_NE(text.find(command), std::string::npos) << command;
    EXPECT_EQ(text.find(command), text.rfind(command)) << command;
  }
}

TEST(Verdict, SaysWhoseFaultItIs) {
  const auto line = [](Cause cause) {
    Report report;
    report.verdict = Verdict::Broken;
    report.findings.push_back({.cause = cause, .subject = "x", .module = "m", .summary = "s"});
    return verdict_line(report);
  };
  EXPECT_TRUE(line(Cause::TorchVersionMismatch).starts_with("the environment is broken: "));
  EXPECT_TRUE(line(Cause::CorruptBinary).starts_with("the module is at fault: "));
  EXPECT_TRUE(line(Cause::FabricManagerDown).starts_with("the driver is at fault: "));
  EXPECT_TRUE(line(Cause::ContainerToolkitMissing).starts_with("the machine is at fault: "));
  EXPECT_TRUE(line(Cause::TensorsOnWrongDevice).starts_with("the code is at fault, not the environment: "));
  EXPECT_TRUE(line(Cause::NvccMissing).starts_with("the build fails here: "));
  EXPECT_TRUE(line(Cause::ReleaseNotOnIndex).starts_with("the installation fails: "));
}

TEST(DoctorText, IsTheVerdictAndTheCommandWhereQuiet) {
  const std::string text = doctor_text(report_of("torch_symbols_resolve.old_wheel"), {.quiet = true});
  EXPECT_TRUE(
      text.starts_with("x ERROR  the environment is broken: the module was built against another torch "
                       "release (torch_version_mismatch)"))
      << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
  EXPECT_TRUE(text.ends_with("\nscankit fix --python /home/user/project/.venv/bin/python\n"));
}

Environment variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(std::string(name));
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Terminal, FollowsTheLocaleAndNoColor) {
  EXPECT_TRUE(locale_is_utf8(variables({{"LANG", "en_US.UTF-8"}})));
  EXPECT_TRUE(locale_is_utf8(variables({{"LC_ALL", ""}, {"LC_CTYPE", "C.utf8"}, {"LANG", "C"}})));
  EXPECT_FALSE(locale_is_utf8(variables({{"LC_ALL", "C"}, {"LANG", "en_US.UTF-8"}})));
  EXPECT_FALSE(locale_is_utf8(variables({})));
  EXPECT_TRUE(wants_color("auto", true, variables({{"TERM", "xterm"}})));
  EXPECT_FALSE(wants_color("auto", true, variables({})));  // nobody says that it knows escapes
  EXPECT_FALSE(wants_color("auto", false, variables({{"TERM", "xterm"}})));
  EXPECT_FALSE(wants_color("auto", true, variables({{"TERM", "xterm"}, {"NO_COLOR", "1"}})));
  EXPECT_FALSE(wants_color("auto", true, variables({{"TERM", "dumb"}})));
  EXPECT_TRUE(wants_color("always", false, variables({{"NO_COLOR", "1"}})));
  EXPECT_FALSE(wants_color("never", true, variables({})));
}

TEST(DoctorJson, HasTheShapeThatOthersProgramAgainst) {
  const Json json = Json::parse(doctor_json(report_of("torch_symbols_resolve.old_wheel")));
  EXPECT_EQ(json["schema"], kDoctorSchema);
  EXPECT_EQ(json["verdict"], "broken");
  EXPECT_EQ(json["root"]["cause"], "torch_version_mismatch");
  ASSERT_GE(json["findings"].size(), 3u);
  EXPECT_EQ(json["findings"][0], json["root"]);
  EXPECT_EQ(json["findings"][1]["because_of"], "torch_version_mismatch");
  EXPECT_EQ(json["root"]["fixes"][0]["command"], "scankit fix --python /home/user/project/.venv/bin/python");
  ASSERT_EQ(json["built_for"].size(), 1u);
  EXPECT_EQ(json["built_for"][0]["torch_min"], nullptr);
  EXPECT_EQ(json["built_for"][0]["string_abi"], "new");
  EXPECT_EQ(json["built_for"][0]["python_tag"], "cpython-311-x86_64-linux-gnu");
}

TEST(DoctorJson, DatesEachFileAndThoseThatBelongTogether) {
  const Json json = Json::parse(doctor_json(report_of("torch_symbols_resolve.dated")));
  ASSERT_EQ(json["built_for"].size(), 2u);
  const Json& file = json["built_for"][0];
  EXPECT_EQ(file["torch_min"], "2.1");
  EXPECT_EQ(file["torch_max"], "2.2");
  EXPECT_EQ(file["string_abi"], "old");
  EXPECT_EQ(file["glibc_min"], "2.17");
  EXPECT_EQ(file["cuda_major"], nullptr);
  EXPECT_EQ(file["evidence"][0]["fact"], "/extensions/value/0/built_for/evidence/0");
  EXPECT_EQ(file["evidence"][0]["value"], "c10::cuda::SetDevice(int): exported by torch 2.1-2.2");
  EXPECT_EQ(json["built_for"][1]["file"], "mamba-ssm");
  EXPECT_EQ(json["built_for"][1]["why_not_narrower"], nullptr);
  EXPECT_NE(json["root"]["summary"].get<std::string>().find("; it was built for torch 2.1 to 2.2"),
            std::string::npos);
  const std::string text = doctor_text(report_of("torch_symbols_resolve.dated"), {});
  EXPECT_NE(text.find("built for torch 2.1 to 2.2, pre-CXX11 ABI; 2.11 is installed\n"), std::string::npos);
  EXPECT_NE(text.find("mamba-ssm, 2 files together: built for torch 2.1, pre-CXX11 ABI; 2.11 is installed\n"),
            std::string::npos);
}

TEST(DoctorJson, OldStringsComeFromAnOldTorchOrFromAFlag) {
  const Json json = Json::parse(doctor_json(report_of("string_abi_matches.dated")));
  EXPECT_NE(json["root"]["summary"].get<std::string>().find(
                "; it was built for torch 2.5 to 2.6, or with -D_GLIBCXX_USE_CXX11_ABI=0"),
            std::string::npos);
}

TEST(DoctorJson, OldStringsOfTheInstalledTorchComeFromAFlag) {
  const Json json = Json::parse(doctor_json(report_of("string_abi_matches.of_the_installed_torch")));
  EXPECT_NE(json["root"]["summary"].get<std::string>().find(
                "; its symbols match torch 2.10 to 2.12: it was built with "
                "-D_GLIBCXX_USE_CXX11_ABI=0, or for an older"),
            std::string::npos);
}

// The published schema and the renderer name the same keys.
TEST(DoctorJson, KeepsToItsSchema) {
  const Json schema = Json::parse(read(SCANKIT_SOURCE_DIR "/doctor/report/schema/doctor-1.json"));
  EXPECT_EQ(schema["$id"], kDoctorSchema);
  const auto same_keys = [](const Json& value, const Json& described) {
    for (const Json& key : described["required"]) EXPECT_TRUE(value.contains(key.get<std::string>())) << key;
    for (const auto& [key, unused] : value.items()) {
      const bool variant = described["properties"].contains("kind");  // a fix carries the fields of its kind
      EXPECT_TRUE(variant || described["properties"].contains(key)) << key;
    }
  };
  for (const char* name : {"torch_symbols_resolve.old_wheel", "torch_symbols_resolve.dated",
                           "file_is_whole.vanished", "every_extension_loads.old_torch_module"}) {
    const Json json = Json::parse(doctor_json(report_of(name)));
    same_keys(json, schema);
    same_keys(json["target"], schema["properties"]["target"]);
    for (const Json& finding : json["findings"]) same_keys(finding, schema["$defs"]["finding"]);
    for (const Json& entry : json["unknown"]) same_keys(entry, schema["properties"]["unknown"]["items"]);
    for (const Json& entry : json["not_checked"])
      same_keys(entry, schema["properties"]["not_checked"]["items"]);
    EXPECT_EQ(json.contains("audit"), std::string(name).starts_with("every_extension"));
    if (json.contains("audit"))
      for (const Json& entry : json["audit"]) same_keys(entry, schema["properties"]["audit"]["items"]);
    for (const Json& entry : json["built_for"]) same_keys(entry, schema["properties"]["built_for"]["items"]);
  }
}

TEST(DoctorJson, HasTheCommandOfRunAsItsSchemaSays) {
  const Json schema =
      Json::parse(read(SCANKIT_SOURCE_DIR "/doctor/report/schema/doctor-1.json"))["properties"]["command"];
  const auto has_exactly = [](const Json& value, const Json& described) {
    EXPECT_EQ(value.size(), described["properties"].size());
    EXPECT_EQ(described["required"].size(), described["properties"].size());
    for (const auto& [key, unused] : value.items()) EXPECT_TRUE(described["properties"].contains(key)) << key;
  };
  Report report = report_of("torch_symbols_resolve.drifted");
  EXPECT_FALSE(Json::parse(doctor_json(report)).contains("command"));
  report.snapshot.command = RanCommand{.words = {"python", "a b.py"},
                                       .directory = "/w",
                                       .signal = 11,
                                       .end = "it crashed",
                                       .duration_ms = 1500,
                                       .output_bytes = 9,
                                       .interpreters = {{.path = "/v/bin/python", .modules = {"/v/a.so"}}},
                                       .at = CommandPlace{.file = "a b.py", .line = 3, .importing = true}};
  const Json command = Json::parse(doctor_json(report))["command"];
  has_exactly(command, schema);
  has_exactly(command["output"], schema["properties"]["output"]);
  has_exactly(command["at"], schema["properties"]["at"]["oneOf"][1]);
  has_exactly(command["interpreters"][0], schema["properties"]["interpreters"]["items"]);
  EXPECT_EQ(command["exit_status"], nullptr);
  EXPECT_EQ(command["signal_name"], "SIGSEGV");
  EXPECT_EQ(command["at"]["module"], nullptr);
  EXPECT_EQ(command["argv"], Json::array({"python", "a b.py"}));
  const auto rows = command_rows(*report.snapshot.command);
  EXPECT_EQ(rows[0].second, "python 'a b.py'");
  EXPECT_EQ(rows[4].second, "importing at a b.py:3");
}

TEST(DoctorJson, HoldsForBytesThatAreNotUtf8) {
  Report report = report_of("torch_symbols_resolve.drifted");
  report.findings[0].subject = "/x/\xFF.so";
  EXPECT_EQ(Json::parse(doctor_json(report))["root"]["subject"], "/x/\xEF\xBF\xBD.so");
}

// A snapshot is data of a stranger: whatever one value of it is replaced by, there is an answer and no crash.
TEST(DoctorJson, AnswersToAnyOddSnapshot) {
  const Json machine = Json::parse(read(kTests + "machines/cpu_torch211/snapshot.json"));
  const Json odd[] = {
      nullptr, "", "\x1b-linux", -1, 4000000000u, Json::array(), Json::array({Json::object()}), false};
  const Json leaves = machine.flatten();
  unsigned answered = 0;
  for (const auto& [pointer, unused] : leaves.items()) {
    for (const Json& value : odd) {
      Json changed = machine;
      changed[Json::json_pointer(pointer)] = value;
      const auto snapshot = snapshot_from_json(changed.dump());
      if (!snapshot) continue;  // refused in one line
      Report report = checks::diagnose(*snapshot);
      EXPECT_EQ(tally(report).crashed, 0u) << pointer;
      EXPECT_FALSE(doctor_json(report).empty());
      ++answered;
    }
  }
  EXPECT_GT(answered, 500u);
}

TEST(Repair, NamesTheUsersOwnInstaller) {
  Snapshot snapshot;
  snapshot.python.value.requested = "/my env/bin/python";
  const Fix fix = InstallPackages{{"torch==2.11.0"}};
  EXPECT_EQ(fix_command(fix, snapshot), "uv pip install --python '/my env/bin/python' torch==2.11.0");
  EXPECT_EQ(fix_command(InstallPackages{{"a==1", "b>2"}, true}, snapshot),
            "uv cache clean a b && uv pip install --python '/my env/bin/python' --reinstall a==1 'b>2'");
  snapshot.python.value.has_pip = true;
  EXPECT_EQ(fix_command(fix, snapshot), "'/my env/bin/python' -m pip install torch==2.11.0");
}

TEST(Repair, GivesCondaWhatCondaInstalled) {
  Snapshot snapshot;
  Python& python = snapshot.python.value;
  python = {.executable = "/c/bin/python3.11", .prefix = "/c", .kind = "conda", .has_pip = true};
  snapshot.distributions.value = {{.name = "torch", .conda_channel = "conda-forge"}, {.name = "triton"}};
  EXPECT_EQ(fix_command(InstallPackages{{"torch==2.4.0"}}, snapshot),
            "conda install --prefix /c pytorch=2.4.0");
  EXPECT_EQ(fix_command(InstallPackages{{"triton==3.0.0"}, true}, snapshot),
            "/c/bin/python3.11 -m pip install --force-reinstall --no-deps triton==3.0.0 && "
            "/c/bin/python3.11 -m pip install triton==3.0.0");
}

TEST(Repair, BuildsAPackageAgainWithoutReplacingTorch) {
  Snapshot snapshot;
  snapshot.python.value.executable = "/v/bin/python";
  const Fix fix = RebuildPackage{"flash-attn", "2.8.3", "", {{"TORCH_CUDA_ARCH_LIST", "9.0"}}};
  EXPECT_EQ(fix_command(fix, snapshot),
            "TORCH_CUDA_ARCH_LIST=9.0 uv pip install --python /v/bin/python --no-build-isolation --no-deps "
            "--no-binary flash-attn --no-cache --reinstall-package flash-attn flash-attn==2.8.3");
  snapshot.python.value.has_pip = true;
  EXPECT_EQ(fix_command(RebuildPackage{"mine", "", "/src/my ext", {}}, snapshot),
            "/v/bin/python -m pip install --no-build-isolation --no-deps --editable '/src/my ext'");
}

}  // namespace
}  // namespace scankit::report
