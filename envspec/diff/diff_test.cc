// SPDX-License-Identifier: Apache-2.0
#include "envspec/diff/diff.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace scankit::envspec {
namespace {

Side spec(const std::string& yaml) {
  const auto parsed = parse_spec("schema: 1\n" + yaml, "s.yaml");
  EXPECT_TRUE(parsed) << english(parsed.error().message);
  return parsed ? operand_of_spec(*parsed) : Side();
}

EnvironmentFacts some_facts() {
  EnvironmentFacts facts;
  facts.driver = Probed<std::string>::absent("no driver");
  facts.gpus = Probed<std::vector<std::string>>::absent("no GPU");
  facts.python = Probed<std::string>::of("3.11.7");
  facts.implementation = Probed<std::string>::of("cpython");
  facts.torch = Probed<std::string>::of("2.11.0+cu130");
  facts.cuda = Probed<std::string>::of("13.0");
  facts.string_abi = Probed<std::string>::of("new");
  facts.modules = {"m", "other"};
  ExtensionFacts file;
  file.module = "m";
  file.file_state = "elf";
  file.torch_abi = "full";
  file.code = {"sm_90", "compute_90"};
  facts.extensions = Probed<std::vector<ExtensionFacts>>::of({file});
  Distribution package;
  package.name = "Einops_X";
  package.version = "0.8";
  facts.distributions = Probed<std::vector<Distribution>>::of({package});
  return facts;
}

Side side(const EnvironmentFacts& facts) {
  Side made = operand_of_facts(facts);
  made.kind = "environment";
  return made;
}

// "field left|right; ..."
std::string said(const Side& left, const Side& right) {
  std::string text;
  for (const Difference& one : differences(left, right))
    text += (text.empty() ? "" : "; ") + one.field + " " +
            (one.why_unknown.empty() ? one.left + "|" + one.right : "unknown");
  return text;
}

TEST(EnvironmentDiff, TakesWhatTheRangesOfASpecTake) {
  const Side here = side(some_facts());
  EXPECT_EQ(said(spec("torch: {version: \"2.11.*\"}\ndriver: \">=580\"\ngpus: [sm_90]\n"), here), "");
  EXPECT_EQ(said(here, spec("torch: {version: \">=2.12\"}\n")), "torch.version 2.11.0+cu130|>=2.12");
  EXPECT_EQ(said(spec("extensions: {m: {code: [sm_90], torch_abi: full}}\n"), here), "");
  EXPECT_EQ(said(spec("extensions: {m: {code: [sm_80], torch_abi: none}}\n"), here),
            "extensions.m.code sm_80|compute_90, sm_90; extensions.m.torch_abi none|full");
  EXPECT_EQ(said(spec("extensions: {other: {torch_abi: none}}\n"), here), "extensions.other here|");
  EXPECT_EQ(said(spec("extensions: {elsewhere: {torch_abi: none}}\n"), here), "");  // nobody looked for it
}

TEST(EnvironmentDiff, NamesPackagesThatOnlyOneSideHas) {
  EnvironmentFacts other = some_facts();
  other.distributions.value[0].version = "0.9";
  EXPECT_EQ(said(side(some_facts()), side(other)), "packages.einops-x 0.8|0.9");
  other.distributions.value.clear();
  EXPECT_EQ(said(side(some_facts()), side(other)), "packages.einops-x 0.8|");
  EXPECT_EQ(said(side(some_facts()), side(some_facts())), "");
}

TEST(EnvironmentDiff, ComparesALockWithWhatItIsOf) {
  EnvironmentLock lock;
  lock.python = {"3.11.7", "cpython", "", false};
  lock.torch = LockedTorch{"2.10.0", "13.0", "", "", "new", "", false};
  lock.distributions = {{"einops-x", "0.8", "pip", "index", {}, ""}};
  EXPECT_EQ(said(operand_of_lock(lock), side(some_facts())), "torch.version 2.10.0|2.11.0+cu130");
  EXPECT_EQ(said(operand_of_lock(lock), spec("torch: {version: \"2.11.*\"}\n")),
            "torch.version 2.10.0|2.11.*");
}

TEST(EnvironmentDiff, ComparesFilesWhereBothSidesTellOfAllOfTheirs) {
  EnvironmentLock lock;
  lock.libraries = {{"a.so", "", std::string(64, 'a'), 1, "elf"},
                    {"b.so", "", std::string(64, 'b'), 1, "elf"}};
  const Side left = operand_of_lock(lock);
  EXPECT_EQ(said(left, Side{}), "");  // a snapshot holds no files
  lock.libraries[1] = {"c.so", "", std::string(64, 'c'), 1, "elf"};
  EXPECT_EQ(said(left, operand_of_lock(lock)),
            "files.b.so " + std::string(64, 'b') + "|; files.c.so |" + std::string(64, 'c'));
}

TEST(EnvironmentDiff, TellsNobodysNameWhereItMustNot) {
  Side left, right;
  left.name = "/home/grace/env";
  right.name = "scankit.lock";
  std::vector<Difference> all = {{"files.a.so", "", "", "/home/grace/env/a.so changed while it was read"}};
  redact({}, left, right, all);
  EXPECT_EQ((left.name + english(all[0].why_unknown)).find("grace"), std::string::npos)
      << left.name << all[0].why_unknown;
  EXPECT_NE(english(all[0].why_unknown).find("/env/a.so changed"), std::string::npos) << all[0].why_unknown;
}

// 12.4.5.8 is cuBLAS, and no machine.
TEST(EnvironmentDiff, KeepsVersionsThatLookLikeAddresses) {
  Side left, right;
  std::vector<Difference> all = {{"packages.nvidia-cublas-cu12", "12.4.5.8", "10.3.5.147", ""}};
  redact({}, left, right, all);
  EXPECT_EQ(all[0].left + " " + all[0].right, "12.4.5.8 10.3.5.147");
}

TEST(EnvironmentDiff, NeverCallsTheUnknownEqual) {
  EnvironmentFacts unread = some_facts();
  unread.torch = Probed<std::string>::failed("unreadable");
  EXPECT_EQ(said(spec("torch: {version: \"2.11.*\"}\n"), side(unread)), "torch.version unknown");
  EXPECT_EQ(said(side(unread), side(unread)), "torch.version unknown");
  unread.torch = Probed<std::string>::of("main");
  EXPECT_EQ(said(spec("torch: {version: \"2.11.*\"}\n"), side(unread)), "torch.version unknown");
  const auto json =
      nlohmann::json::parse(diff_json(side(unread), side(unread), differences(side(unread), side(unread))));
  EXPECT_TRUE(json["differences"].empty());
}

}  // namespace
}  // namespace scankit::envspec
