// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/node_result.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ci/fleet/fleet_test.h"
#include "ci/fleet/report.h"
#include "ci/fleet/slurm.h"
#include "doctor/base/exit_status.h"

namespace scankit::fleet {
namespace {

TEST(FleetNodeText, ComesBackAsItWasWritten) {
  NodeResult node = broken("gpu-01");
  node.inputs = {{"--policy", "aa"}};
  node.said = "\x1b[31mred\xff";
  node.summary.measures = {{"cuda:0 fwd", "ms", 0.123456789}};
  const auto read = read_node_text(node_text(node, "{\"verdict\":\"broken\"}"));
  ASSERT_EQ(read.state, TextState::Whole) << read.why;
  EXPECT_EQ(read.node.node, "gpu-01");
  EXPECT_EQ(read.node.summary.causes.at(0).summary, node.summary.causes[0].summary);
  EXPECT_EQ(read.node.summary.measures.at(0).value, 0.123456789);
  EXPECT_EQ(read.node.started, node.started);
  EXPECT_EQ(read.node.inputs, node.inputs);
}

TEST(FleetNodeText, IsJsonThatHoldsTheCommandsOwn) {
  const auto json = nlohmann::json::parse(node_text(healthy("a"), R"({"verdict": "healthy", "n": [1, 2]})"));
  EXPECT_EQ(json["result"]["n"], nlohmann::json({1, 2}));
  EXPECT_TRUE(nlohmann::json::parse(node_text(healthy("a"), "Traceback"))["result"].is_null());
}

// A file that was cut anywhere is never read as a whole one, nor taken for somebody else's.
TEST(FleetNodeText, CutAtEveryByteItIsNamed) {
  const std::string text = node_text(broken("a"), R"({"verdict":"broken"})");
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    const auto read = read_node_text(std::string_view(text).substr(0, length));
    ASSERT_NE(read.state, TextState::Whole) << length;
    ASSERT_FALSE(read.why.empty());
    ASSERT_EQ(read.state, length > 36 ? TextState::Truncated : TextState::Foreign) << length;
  }
  EXPECT_EQ(read_node_text(std::string_view(text).substr(0, text.size() - 1)).state, TextState::Whole);
}

TEST(FleetNodeText, FlippedAtEveryBitItIsNamed) {
  const std::string text = node_text(broken("a"), R"({"verdict":"broken"})");
  for (std::size_t at = 0; at + 1 < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      ASSERT_NE(read_node_text(flipped).state, TextState::Whole) << at << " " << bit;
    }
}

TEST(FleetNodeText, OneOfALaterSchemaNeedsALaterScankit) {
  std::string text = node_text(healthy("a"), "{}");
  text.replace(text.find("fleet-node:1"), 12, "fleet-node:7");
  const auto read = read_node_text(text);
  EXPECT_EQ(read.state, TextState::Newer);
  EXPECT_NE(read.why.english().find("schema 7"), std::string::npos) << read.why;
}

TEST(FleetNodeText, WithARightDigestAndAWrongFormItIsDamaged) {
  const std::string body = R"({"$schema":"urn:scankit:fleet-node:1","fleet":7,"result":null)";
  EXPECT_EQ(read_node_text(body + R"(,"sha256":")" + sha256_hex(body) + "\"}\n").state, TextState::Damaged);
}

TEST(FleetNodeFile, NoNameLeavesTheFolderOrMeetsAnother) {
  EXPECT_EQ(node_file_name("gpu-01.cluster"), "gpu-01.cluster.json");
  EXPECT_EQ(node_file_name("../x"), "%2E.%2Fx.json");
  EXPECT_NE(node_file_name("a/b"), node_file_name("a%2Fb"));
  EXPECT_LT(node_file_name(std::string(4000, 'a')).size(), 255U);
  EXPECT_NE(node_file_name(std::string(4000, 'a')), node_file_name(std::string(4001, 'a')));
}

TEST(FleetRoster, ComesBackAndRefusesWhatItDoesNotKnow) {
  Folder folder({"a"});
  folder.roster.inputs = {{"--policy", "aa"}};
  folder.roster.absent = {{"b", "down"}};
  const auto read = roster_of(roster_text(folder.roster));
  ASSERT_TRUE(read);
  EXPECT_EQ(roster_text(*read), roster_text(folder.roster));
  EXPECT_EQ(roster_of(R"({"$schema":"urn:scankit:fleet-roster:2"})").error().code, Errc::Unsupported);
  EXPECT_EQ(roster_of("[]").error().code, Errc::Malformed);
  const std::string text = roster_text(folder.roster);
  for (std::size_t length = 0; length + 2 < text.size(); length += 3)
    ASSERT_FALSE(roster_of(text.substr(0, length)));
}

TEST(FleetCommand, IsOneThatTellsSomething) {
  EXPECT_TRUE(checked_command({"doctor", "--python", "p"}));
  EXPECT_EQ(checked_command({"ci", "--policy", "p"})->at(1), "run");
  EXPECT_FALSE(checked_command({"fix", "--yes"}));
  EXPECT_FALSE(checked_command({"env", "init"}));
  EXPECT_FALSE(checked_command({}));
  EXPECT_NE(command_hash({"a b"}, {}), command_hash({"a", "b"}, {}));
  EXPECT_EQ(option_value({"doctor", "--python=/x"}, "--python"), "/x");
}

TEST(FleetSummary, HoldsWhatIsWrongInValidation) {
  const auto summary = summarised(R"({"schema":1,"verdict":"failed","cases":[
    {"id":"q1","device":"cpu","state":"failed","reasons":["dA is off"],"tensors":[{"dtype":"float32","worst":{"ratio":3.5}}]},
    {"id":"q2","device":"cpu","state":"passed","tensors":[{"dtype":"float32","worst":{"ratio":"nan"}}]}],
    "timing":[{"device":"cpu","pass":"fwd","dtype":"float32","cache":"cold","module_ms":1.5,"disturbed":null,
      "shape":{"batch":1,"dim":2,"length":3,"states":4}},
      {"device":"cpu","pass":"bwd","module_ms":9,"disturbed":"throttled","shape":{}}]})");
  EXPECT_EQ(summary.failed, 1U);
  EXPECT_EQ(summary.failures.at(0).why, "dA is off");
  ASSERT_EQ(summary.measures.size(), 3U);
  EXPECT_FALSE(summary.measures[1].disturbed);
  EXPECT_TRUE(summary.measures[2].disturbed);
  EXPECT_EQ(summary.measures[1].name, "cpu fwd float32 B1 D2 L3 N4 cold");
  EXPECT_EQ(summarised("Traceback (most recent call last)").verdict, "");
}

TEST(FleetSlurm, ItsErrorsSayWhatToDoNext) {
  EXPECT_EQ(explain_slurm("salloc: error: Job submit/allocate failed: Invalid partition name specified")
                ->exit_status,
            kExitUsage);
  EXPECT_EQ(explain_slurm(
                "srun: error: Unable to allocate resources: User's group not permitted to use this partition")
                ->exit_status,
            kExitUsage);
  EXPECT_EQ(
      explain_slurm(
          "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***")
          ->exit_status,
      kExitInconclusive);
  EXPECT_FALSE(explain_slurm("salloc: Granted job allocation 7"));
}

}  // namespace
}  // namespace scankit::fleet
