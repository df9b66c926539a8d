// SPDX-License-Identifier: Apache-2.0
// The proof that all text for people is in the catalogue: it is translated into a language that can be told
// from everything else, and what stays in ASCII letters must be data of the snapshot.
#include "doctor/text/pseudo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/checks/check.h"
#include "doctor/checks/recorded_cases.h"
#include "doctor/knowledge/faults.h"
#include "doctor/model/snapshot_json.h"
#include "doctor/report/fixes.h"
#include "doctor/report/text.h"
#include "doctor/text/catalogue.h"
#include "doctor/text/pseudo_data.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

const std::string kSource = SCANKIT_SOURCE_DIR, kScankit = SCANKIT_EXECUTABLE;

const std::string& pseudo_mo() {
  static const auto folder = TemporaryDirectory::create("pseudo");
  static const std::string path = [] {
    const auto made = make_pseudo_mo(kSource + "/doctor/text/scankit.pot", folder->path());
    EXPECT_TRUE(made) << made.error().message;
    return made.value_or("");
  }();
  return path;
}

const Language& pseudo() {
  static const auto language = *read_catalogue(*read_whole_file(pseudo_mo()), "qps");
  return *language;
}

// Names of causes and checks, and the commands of repairs, stand in a report as they are.
PseudoData report_data(const Json& snapshot) {
  PseudoData data(snapshot);
  for (const CauseInfo& cause : all_causes()) data.add_words(std::string(cause.slug));
  for (const Check* check : all_checks()) data.add_whole(std::string(check->id));
  for (const char* command :
       {"scankit fix --python", "scankit restore --python", "-m pip install --no-build-isolation",
        "TORCH_CUDA_ARCH_LIST=", "CC=gcc CXX=g++", "selective_scan_cuda.fwd", "CUDA_HOME", "CPython",
        "ImportError", "PTX", "scankit explain", "TMPDIR=", "CXX="})
    data.add_whole(command);
  return data;
}

void expect_translated(const std::string& text, const PseudoData& data, const std::string& where) {
  for (const std::string& problem : untranslated(text, data)) ADD_FAILURE() << where << ": " << problem;
}

TEST(PseudoLanguage, IsMadeOfWideLettersAndBrackets) {
  const std::string made = pseudo_sentence("{} is {b:x}, {{c}}");
  bool open = true;
  EXPECT_EQ(parts_outside_sentences(made, open), (std::vector<std::string>{"{}", "{b:x}"}));
  EXPECT_FALSE(open);
  EXPECT_EQ(parts_outside_sentences("a " + made + "\nb", open),
            (std::vector<std::string>{"a ", "{}", "{b:x}", "b"}));
  parts_outside_sentences(made.substr(0, made.size() - 3), open);
  EXPECT_TRUE(open);
  const auto entries = read_pot(
      "msgid \"\"\nmsgstr \"x\"\n\n#. c\nmsgid \"a\"\n\"b\\n\\\"\"\nmsgid_plural \"c\"\n"
      "msgstr[0] \"\"\n");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].one + entries[0].many, "ab\n\"c");
}

// A test that cannot fail proves nothing: a sentence that is glued is seen.
TEST(PseudoLanguage, ShowsWhatWasNotTranslated) {
  const Json snapshot{{"path", "/lib/libx.so"}, {"note", "it is here"}};
  const PseudoData data = report_data(snapshot);
  EXPECT_EQ(data.stranger("/lib/libx.so"), "");
  EXPECT_EQ(data.stranger("libx.so, it is here"), "");
  EXPECT_EQ(data.stranger("  /path: /lib/libx.so sm_90a 2.1 torch_version_mismatch"), "");
  EXPECT_EQ(data.stranger("from libx import so"), "");
  EXPECT_EQ(data.stranger("from libx import other"), "from");
  EXPECT_EQ(data.stranger("libx.so is here"), "is");
  EXPECT_EQ(data.stranger("/other: x"), "other");
  EXPECT_EQ(data.stranger("sm_x"), "sm_x");
}

class PseudoCases : public ::testing::TestWithParam<std::string> {};

TEST_P(PseudoCases, SayNothingThatIsNotInTheCatalogue) {
  const Json test = case_file(GetParam());
  const Speaking speaking(&pseudo());
  const Report report = diagnosed(test);
  const Json snapshot = Json::parse(snapshot_to_json(report.snapshot));
  PseudoData data = report_data(snapshot);
  for (const Finding& finding : report.findings) {
    data.add_words(finding.module);
    for (const Fix& fix : finding.fixes) {
      data.add_whole(fix_command(fix, report.snapshot));
      if (const auto* packages = std::get_if<InstallPackages>(&fix))
        for (const std::string& requirement : packages->requirements) data.add_words(requirement);
    }
  }
  expect_translated(without_legend(doctor_text(report, {.ascii = false, .verbose = true})), data, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Doctor, PseudoCases, ::testing::ValuesIn(case_names()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

std::string output_of(std::vector<std::string> words) {
  ProcessRequest request;
  request.argv = {kScankit, "--lang", pseudo_mo()};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  request.environment = {{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}};
  const auto ran = run_process(request);
  EXPECT_TRUE(ran) << ran.error().message;
  return ran ? ran->out + ran->err : "";
}

TEST(PseudoProgram, TranslatesTheReportOfEveryRecordedMachine) {
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/doctor/tests/machines")) {
    const std::string path = entry.path().string() + "/snapshot.json";
    const Json snapshot = Json::parse(*read_whole_file(path));
    const std::string text = output_of({"doctor", "--from", path, "--color", "never"});
    EXPECT_NE(text.find("\xE2\x9F\xA6"), std::string::npos) << text;
    PseudoData data = report_data(snapshot);
    data.add_whole(path);
    expect_translated(without_legend(text), data, path);
  }
}

TEST(PseudoProgram, TranslatesWhatItExplains) {
  Json words = Json::array();
  for (const FaultClass& fault : fault_classes()) {
    words.push_back(fault.id);
    for (const std::string& line : fault.error_lines) words.push_back(line);
    for (const std::string& line : fault.seen_with) words.push_back(line);
    for (const std::string& source : fault.sources) words.push_back(source);
  }
  for (const char* column : {"fil", "fi-", "f-l", "f--", "-il", "-i-", "--l"}) words.push_back(column);
  const PseudoData data = report_data(words);
  expect_translated(output_of({"explain", "--list"}), data, "explain --list");
  for (const char* slug : {"torch_version_mismatch", "missing_cudart", "no_kernel_image"})
    expect_translated(output_of({"explain", slug}), data, slug);
}

TEST(PseudoProgram, KeepsWhatProgramsReadInEnglish) {
  const std::string path = kSource + "/doctor/tests/machines/cpu_torch211/snapshot.json";
  for (const char* format : {"json=-", "sarif=-", "junit=-", "github=-"})
    EXPECT_EQ(output_of({"doctor", "--from", path, "--report", format}).find("\xE2\x9F\xA6"),
              std::string::npos)
        << format;
  for (const char* format : {"text=-", "markdown=-", "html=-"})
    EXPECT_NE(output_of({"doctor", "--from", path, "--report", format}).find("\xE2\x9F\xA6"),
              std::string::npos)
        << format;
}

}  // namespace
}  // namespace scankit
