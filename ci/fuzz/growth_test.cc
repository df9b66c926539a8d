// SPDX-License-Identifier: Apache-2.0
// How the readers of our own documents grow with what a stranger wrote into them; doctor/tests/growth holds
// the other readers. Each document is whole, so that what comes behind the parser is measured too.
#include <gtest/gtest.h>

#include "ci/fuzz/targets.h"
#include "doctor/tests/growth/measure.h"

namespace scankit::fuzz {
namespace {

constexpr std::size_t kLargest = 300'000;  // bytes

void expect_linear(const char* target, const std::vector<std::string>& pieces, const std::string& head = "",
                   const std::string& tail = "") {
  const Target* found = find_target(target);
  ASSERT_NE(found, nullptr) << target;
  const auto read = [found](const std::string& text) { found->read(text); };
  for (const auto& family : growth::texts(target, pieces, kLargest, read, head, tail))
    EXPECT_EQ(growth::growth_problem(family), "");
}

TEST(GrowthOfDocuments, Spec) {
  expect_linear("spec", {"  m#:\n    code: [sm_90]\n", "  ? [a#]\n", "  &a# x#: *a#\n"},
                "schema: 1\nextensions:\n");
  expect_linear("spec", {">=#,", "!=1.#,", "<", "1."}, "schema: 1\ntorch: {version: \"", "\"}\n");
  expect_linear("spec", {"sm_90, ", "{a: ", "[", "# a\n"}, "schema: 1\ngpus: [", "]\n");
}

TEST(GrowthOfDocuments, Policy) {
  expect_linear("policy", {"  cause_#: {severity: warning}\n", "  several_copies: {severity: note}\n"},
                "schema: 1\ncauses:\n");
  expect_linear("policy", {"m#, ", "[", "\"", "&a# "}, "schema: 1\nrequire: [", "]\n");
}

TEST(GrowthOfDocuments, Lock) {
  expect_linear("lock",
                {R"({"name":"a#","version":"1","installer":"pip","source":"index","artifact":null,)"
                 R"("why_no_artifact":"x"},)",
                 "{},", "[", "\"\","},
                R"({"schema":1,"distributions":[)",
                R"({"name":"b","version":"1","installer":"pip","source":"index","artifact":null,)"
                R"("why_no_artifact":"x"}]})");
  expect_linear("lock", {R"("a#":1,)"}, R"({"schema":1,)", R"("torch":null})");
}

TEST(GrowthOfDocuments, Journal) {
  const std::string head =
      R"({"schema":1,"id":"0001","run":"0001","state":"applying","module":"m","version":"1","note":"",)"
      R"("steps":[],"operations":[)";
  expect_linear("journal",
                {R"({"kind":"replace","target":"/e/site/m#.so","staged":"/e/.scankit/staging/0001/m.so",)"
                 R"("backup":"/e/.scankit/backup/0001/#-m.so","sha256":""},)",
                 "[", "{},"},
                head, R"({"kind":"create","target":"/e/n.so","staged":"","backup":"","sha256":""}]})");
  expect_linear("tree", {"0 # 100 1700000000000000000 1 site/#.py\n", "1 # 0 17 0 a#/b\n", "0 ", "%"});
}

TEST(GrowthOfDocuments, IndexPage) {
  expect_linear("index_page",
                {"<a href=\"demo-1.#-py3-none-any.whl#sha256=aa\">demo-1.#-py3-none-any.whl</a>", "<a ", "<",
                 "&", "<a href=\"", "<!--", "a=b ", "</a"},
                "<!DOCTYPE html><html><body>");
  expect_linear("index_page",
                {R"({"filename":"demo-1.#-py3-none-any.whl","url":"x","hashes":{}},)", "{},", "[", "\"\","},
                R"({"meta":{"api-version":"1.1"},"name":"demo","files":[)",
                R"({"filename":"demo-1.0-py3-none-any.whl","url":"x","hashes":{}}]})");
  expect_linear("pylock",
                {"[[packages]]\nname = \"a#\"\nversion = \"1\"\n", "a# = [\n",
                 "wheels = [{ url = \"u#\" }]\n", "'''", "[a.#]\n"},
                "lock-version = \"1.0\"\n");
}

TEST(GrowthOfDocuments, FleetNode) {
  const std::string head =
      R"({"$schema":"urn:scankit:fleet-node:1","fleet":"f","node":"n","tool_version":"1","command":["doctor"],)"
      R"("command_sha256":"","inputs":{},"launched":0,"started":0,"ended":1,"end":"exited","exit_status":0,)"
      R"("signal":0,"said":"","facts":{},"facts_problem":"","summary":{"verdict":"broken","causes":[)";
  expect_linear("fleet_node",
                {R"({"cause":"c#","severity":"error","subject":"s","summary":"m"},)", "{},", "["}, head,
                R"({"cause":"c","severity":"error","subject":"s","summary":"m"}],"failures":[],"failed":0,)"
                R"("unknown":[],"measures":[]},"result":null)");
  expect_linear("fleet_node", {"\\u0041", "x", "\\n"},
                R"({"$schema":"urn:scankit:fleet-node:1","fleet":"f","node":")", R"(","result":null)");
}

}  // namespace
}  // namespace scankit::fuzz
