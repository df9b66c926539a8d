// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "ci/fleet/fleet_test.h"
#include "ci/fleet/node_result.h"
#include "ci/fleet/report.h"
#include "doctor/base/exit_status.h"

namespace scankit::fleet {
namespace {

const NodeEvent& line_of_node(const FleetReport& report, const std::string& name) {
  static const NodeEvent none;
  const auto found = std::ranges::find(report.nodes, name, &NodeEvent::name);
  EXPECT_NE(found, report.nodes.end()) << name;
  return found == report.nodes.end() ? none : *found;
}

TEST(FleetMerge, AllThatPassedAreHealthy) {
  const Folder folder({"a", "b"});
  folder.put(healthy("a"));
  folder.put(healthy("b"));
  const auto report = folder.report();
  EXPECT_EQ(verdict_word(report), "healthy");
  EXPECT_EQ(exit_status_of(report, "error"), kExitClean);
  EXPECT_EQ(report.common.at("driver"), "580.65");
}

// Each way in which a node can be silent has its own name, and none of them is green.
TEST(FleetMerge, ASilentNodeIsNeverMissing) {
  Folder folder({"hung", "late", "lost", "nofile", "refused", "up"});
  folder.put(healthy("up"));
  folder.roster.nodes["hung"].gave_up = folder.roster.nodes["late"].gave_up = true;
  folder.roster.nodes["late"].started = 0;
  folder.roster.nodes["hung"].reported = folder.roster.nodes["late"].reported =
      folder.roster.nodes["lost"].reported = 0;
  folder.roster.nodes["refused"] = {};
  folder.roster.nodes["refused"].asked = kT;
  folder.roster.nodes["refused"].over = true;
  folder.roster.nodes["refused"].problem = "srun: error: Task launch failed";
  folder.roster.absent["down"] = "down*: Not responding";
  const auto report = folder.report({"forgotten"});
  EXPECT_EQ(line_of_node(report, "hung").state, "hung");
  EXPECT_EQ(line_of_node(report, "late").state, "never_answered");
  EXPECT_EQ(line_of_node(report, "lost").state, "lost");
  EXPECT_EQ(line_of_node(report, "nofile").state, "no_file");
  EXPECT_EQ(line_of_node(report, "refused").state, "not_started");
  EXPECT_NE(line_of_node(report, "refused").why.english().find("Task launch failed"), std::string::npos);
  EXPECT_EQ(line_of_node(report, "down").state, "not_allocated");
  EXPECT_EQ(line_of_node(report, "forgotten").state, "never_answered");
  EXPECT_EQ(report.count(Verdict::Unknown), 7U);
  EXPECT_EQ(exit_status_of(report, "error"), kExitInconclusive);
  EXPECT_EQ(exit_status_of(report, "never"), kExitInconclusive);
}

TEST(FleetMerge, WithoutAListOfNodesItIsNotKnownWhoIsMissing) {
  const Folder folder({});
  folder.put(healthy("a"));
  EXPECT_EQ(exit_status_of(folder.report({}, false), "error"), kExitInconclusive);
  EXPECT_EQ(exit_status_of(folder.report({"a"}, false), "error"), kExitClean);
  EXPECT_EQ(exit_status_of(folder.report({"a", "b"}, false), "error"), kExitInconclusive);
}

TEST(FleetMerge, StatusFollowsThePrecedence) {
  const Folder folder({"a", "b", "c"});
  folder.put(healthy("a"));
  folder.put(broken("b"));
  EXPECT_EQ(exit_status_of(folder.report(), "error"), kExitFindings);  // 1 before 4: c is silent
  EXPECT_EQ(verdict_word(folder.report()), "broken");
  EXPECT_EQ(verdict_line(folder.report()), "1 node failed, 1 node is unknown, 1 of 3 passed");
  NodeResult wrong = healthy("c");
  wrong.exit_status = kExitValidationFailed;
  wrong.summary.failures = {{"cpu q011", "dA is off"}};
  wrong.summary.failed = 1;
  folder.put(wrong);
  EXPECT_EQ(exit_status_of(folder.report(), "error"), kExitFindings);  // of the first that failed
  EXPECT_NE(line_of_node(folder.report(), "c").why.english().find("dA is off"), std::string::npos);
  wrong.exit_status = kExitInternal;
  folder.put(wrong);
  EXPECT_EQ(exit_status_of(folder.report(), "error"), kExitInternal);
}

TEST(FleetMerge, StatusZeroWithoutAResultIsNotGreen) {
  const Folder folder({"a"});
  NodeResult mute = healthy("a");
  mute.summary.verdict.clear();
  folder.put(mute);
  EXPECT_EQ(exit_status_of(folder.report(), "error"), kExitInconclusive);
}

TEST(FleetMerge, CommandsThatWereEndedAreUnknown) {
  const Folder folder({"a", "b"});
  NodeResult late = healthy("a"), killed = healthy("b");
  late.end = "timed out";
  killed.end = "killed";
  killed.signal = 9;
  folder.put(late);
  folder.put(killed);
  const auto report = folder.report();
  EXPECT_EQ(line_of_node(report, "a").state, "timed_out");
  EXPECT_EQ(line_of_node(report, "b").state, "killed");
  EXPECT_EQ(exit_status_of(report, "error"), kExitInconclusive);
}

TEST(FleetMerge, BadFilesAreNamedAndTheOthersMerged) {
  const Folder folder({"a", "b", "c"});
  folder.put(healthy("a"));
  const std::string text = node_text(healthy("b"), "{}");
  folder.put("b.json", text.substr(0, text.size() / 2));
  std::string newer = node_text(healthy("c"), "{}");
  newer.replace(newer.find("fleet-node:1"), 12, "fleet-node:2");
  folder.put("c.json", newer);
  folder.put("notes.txt", "remember the milk");
  folder.put("x.json.aBc123", text);
  NodeResult other = healthy("z");
  other.fleet = "f2";
  folder.put(other);
  std::filesystem::create_directory(folder.path() + "/sub");
  const auto report = folder.report();
  std::map<std::string, std::string> kinds;
  for (const Stray& stray : report.strays) kinds[stray.file] = stray.kind;
  const std::map<std::string, std::string> expected = {
      {"b.json", "truncated"},        {"c.json", "newer"},       {"notes.txt", "foreign"},
      {"x.json.aBc123", "truncated"}, {"z.json", "other_fleet"}, {"sub", "foreign"}};
  EXPECT_EQ(kinds, expected);
  EXPECT_EQ(line_of_node(report, "a").verdict, Verdict::Passed);
  EXPECT_EQ(line_of_node(report, "b").state, "truncated");
  EXPECT_EQ(line_of_node(report, "c").state, "newer");
  EXPECT_EQ(report.nodes.size(), 3U);
}

TEST(FleetMerge, TheSameNodeTwiceIsNamed) {
  const Folder folder({"a"});
  folder.put(healthy("a"));
  folder.put("copy.json", node_text(healthy("a"), "{}"));
  auto report = folder.report();
  ASSERT_EQ(report.strays.size(), 1U);
  EXPECT_EQ(report.strays[0].kind, "duplicate");
  EXPECT_EQ(line_of_node(report, "a").verdict, Verdict::Passed);
  NodeResult later = broken("a");
  later.ended += 5;
  folder.put("copy.json", node_text(later, "{}"));
  report = folder.report();
  EXPECT_EQ(line_of_node(report, "a").state, "conflicting");
  EXPECT_EQ(exit_status_of(report, "error"), kExitInconclusive);
}

TEST(FleetMerge, AnswersOfALogAreReadToo) {
  const Folder folder({"a", "b"});
  folder.put(healthy("a"));
  const std::string text = node_text(healthy("b"), R"({"verdict":"healthy"})");
  const std::string parts = as_parts("b", text), done = line_text({"done", "b", kT, "", ""});
  folder.put("fleet.log", "[pod/x] hello\n" + parts + "[pod/y] noise\n" + done);
  EXPECT_EQ(exit_status_of(folder.report(), "error"), kExitClean);
  folder.put("fleet.log", parts.substr(0, parts.size() / 2));
  EXPECT_EQ(exit_status_of(folder.report(), "error"), kExitInconclusive);
}

TEST(FleetDifferences, NameTheOddNodes) {
  const Folder folder({"a", "b", "c"});
  for (const char* name : {"a", "b"}) folder.put(healthy(name));
  NodeResult odd = healthy("c");
  odd.facts["driver"] = "570.10";
  odd.facts.erase("torch");
  folder.put(odd);
  const auto report = folder.report();
  ASSERT_EQ(report.differences.size(), 2U);
  EXPECT_EQ(report.differences[0].fact, "driver");
  EXPECT_EQ(report.differences[0].common, "580.65");
  EXPECT_EQ(report.differences[0].others.at(0).second, std::vector<std::string>{"c"});
  EXPECT_EQ(report.differences[1].others.at(0).first, "none");
  EXPECT_EQ(exit_status_of(report, "error"), kExitClean);  // a difference alone is no fault
  EXPECT_EQ(exit_status_of(report, "warning"), kExitFindings);
}

TEST(FleetDifferences, WithoutAMajorityNobodyIsOdd) {
  const Folder folder({"a", "b"});
  NodeResult other = healthy("b");
  other.facts["driver"] = "570.10";
  folder.put(healthy("a"));
  folder.put(other);
  const auto report = folder.report();
  ASSERT_EQ(report.differences.size(), 1U);
  EXPECT_EQ(report.differences[0].agreeing, 0U);
  EXPECT_EQ(report.differences[0].others.size(), 2U);
}

// One node with another torch differs in one thing, not in each library of it.
TEST(FleetDifferences, WhatFollowsFromATorchIsToldWithIt) {
  const Folder folder({"a", "b", "c"});
  for (const char* name : {"a", "b", "c"}) {
    NodeResult node = healthy(name);
    const std::string release = name[0] == 'c' ? "2.10.0" : "2.11.0";
    node.facts["torch"] = release;
    for (const char* fact : {"build:libc10.so", "build:libtorch.so", "wheel:nvidia-cublas", "cuda of torch"})
      node.facts[fact] = "of " + release;
    node.facts["build:libcudart.so.13"] = name;  // not decided by the release: a and b differ, too
    folder.put(node);
  }
  const auto report = folder.report();
  ASSERT_EQ(report.differences.size(), 2U);
  EXPECT_EQ(report.differences[0].fact, "build:libcudart.so.13");
  EXPECT_EQ(report.differences[1].fact, "torch");
  EXPECT_EQ(report.differences[1].with_it,
            (std::vector<std::string>{"build:libc10.so", "build:libtorch.so", "cuda of torch",
                                      "wheel:nvidia-cublas"}));
  EXPECT_EQ(difference_line(report.differences[1]),
            "2.10.0 on c; most have 2.11.0 (and 4 facts that follow from it)");
  EXPECT_EQ(report.warnings(), 2U);
}

TEST(FleetDifferences, CommandsThatDifferAreToldAsSuch) {
  Folder folder({});
  NodeResult other = healthy("b");
  other.command = {"doctor", "--python", "/opt/b/bin/python"};
  folder.put(healthy("a"));
  folder.put(other);
  const auto report = folder.report({}, false);
  EXPECT_TRUE(report.command.empty());
  ASSERT_EQ(report.differences.size(), 1U);
  EXPECT_EQ(report.differences[0].fact, "command");
  EXPECT_EQ(report.differences[0].others.at(1).first, "scankit doctor --python /opt/b/bin/python");
}

TEST(FleetOutliers, ASlowGpuIsFoundAmongItsLike) {
  Folder folder({});
  for (int i = 0; i < 9; ++i) {
    NodeResult node = healthy("n" + std::to_string(i));
    node.summary.measures = {{"cuda:0 fwd", "ms", 1.0 + 0.01 * i}};
    if (i == 4) node.summary.measures[0].value = 1.5;
    if (i == 7) {  // another kind of GPU: no outlier, however slow
      node.facts["gpus"] = "8 x A100";
      node.summary.measures[0].value = 9;
    }
    folder.roster.nodes[node.node] = {};
    folder.put(node);
  }
  const auto report = folder.report();
  ASSERT_EQ(report.outliers.size(), 1U);
  EXPECT_EQ(report.outliers[0].node, "n4");
  EXPECT_TRUE(report.outliers[0].worse);
}

TEST(FleetClock, IsKnownBetweenWhatWasSentAndWhatCame) {
  Folder folder({"ahead", "behind", "right", "slow"});
  const auto shifted = [&](const std::string& name, double by) {
    NodeResult node = healthy(name);
    node.started += by;
    node.ended += by;
    folder.roster.nodes[name].node_clock += by;
    folder.put(node);
  };
  shifted("ahead", 3600);
  shifted("behind", -90);
  shifted("right", 0);
  // What starts late has a clock that is right: its lines come as late.
  NodeResult slow = healthy("slow");
  slow.started += 500;
  slow.ended += 500;
  AskedNode& asked = folder.roster.nodes["slow"];
  asked.node_clock += 500;
  asked.started += 500;
  asked.reported += 500;
  folder.put(slow);
  const auto report = folder.report();
  EXPECT_TRUE(line_of_node(report, "ahead").clock_apart);
  EXPECT_TRUE(line_of_node(report, "behind").clock_apart);
  EXPECT_FALSE(line_of_node(report, "right").clock_apart);
  EXPECT_FALSE(line_of_node(report, "slow").clock_apart);
  EXPECT_NE(line_of_node(report, "ahead").notes.at(0).english().find("3600 s ahead"), std::string::npos);
}

TEST(FleetReport, JsonIsOfItsSchemaAndNoFormatIsEmpty) {
  const Folder folder({"a", "b", "c"});
  folder.put(healthy("a"));
  folder.put(broken("b"));
  const auto report = folder.report();
  for (const auto format : report::report_formats())
    EXPECT_FALSE(report::render(format, fleet_views(report, 1)).empty()) << format;
  const auto json = nlohmann::json::parse(json_report(report, 1));
  EXPECT_EQ(json["$schema"], kReportSchema);
  EXPECT_EQ(json["counts"]["unknown"], 1);
  EXPECT_EQ(json["nodes"].size(), 3U);
  const std::string junit = report::render("junit", fleet_views(report, 1));
  EXPECT_NE(junit.find("errors=\"1\""), std::string::npos);
  EXPECT_NE(junit.find("failures=\"1\""), std::string::npos);
}

TEST(FleetReport, EveryFileHasTheFieldsOfItsSchema) {
  const Folder folder({"a"});
  folder.put(broken("a"));
  const std::pair<const char*, std::string> files[] = {{"report", json_report(folder.report(), 1)},
                                                       {"roster", roster_text(folder.roster)},
                                                       {"node", node_text(broken("a"), "{}")}};
  for (const auto& [name, text] : files) {
    const auto read =
        read_whole_file(std::string(SCANKIT_SOURCE_DIR "/ci/fleet/schema/fleet-") + name + "-1.json");
    ASSERT_TRUE(read);
    const auto schema = nlohmann::json::parse(*read), json = nlohmann::json::parse(text);
    EXPECT_EQ(json["$schema"], schema["$id"]);
    std::vector<std::string> has, wants = schema["required"];
    for (const auto& [key, value] : json.items()) has.push_back(key);
    std::ranges::sort(wants);
    EXPECT_EQ(has, wants) << name;
  }
}

TEST(FleetLines, OfSeveralNodesAreKeptApart) {
  const std::string a = node_text(broken("a"), R"({"x":1})"), b = node_text(healthy("b"), R"({"y":2})");
  std::vector<std::string> of_a, of_b;
  LineCutter cutter;
  cutter.add(as_parts("a", a) + line_text({"done", "a", kT, "", ""}),
             [&](const std::string& l) { of_a.push_back(l); });
  cutter.add(as_parts("b", b) + line_text({"done", "b", kT, "", ""}),
             [&](const std::string& l) { of_b.push_back(l); });
  Assembler assembler;
  std::map<std::string, std::string> whole;
  for (std::size_t i = 0; i < std::max(of_a.size(), of_b.size()); ++i)
    for (const auto* lines : {&of_a, &of_b}) {
      if (i >= lines->size()) continue;
      EXPECT_LT((*lines)[i].size(), 1024U);
      const auto line = line_of((*lines)[i]);
      ASSERT_TRUE(line);
      if (auto text = assembler.add(*line)) whole[line->node] = *text;
    }
  EXPECT_EQ(whole["a"], a);
  EXPECT_EQ(whole["b"], b);
}

}  // namespace
}  // namespace scankit::fleet
