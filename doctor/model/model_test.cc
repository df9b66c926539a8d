// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"

namespace scankit {
namespace {

Snapshot sample() {
  Snapshot snapshot;
  snapshot.tool_version = "0";
  snapshot.torch = Probed<Torch>::of({.version = "2.11.0+cu130", .cuda = "13.0"});
  snapshot.gpus = Probed<std::vector<Gpu>>::absent("no NVIDIA device on the PCI bus");
  Extension extension;
  extension.module = "selective_scan_cuda";
  extension.path = "/site/a\xff.so";
  extension.missing_symbols.push_back({.name = "_ZN3c104cuda9SetDeviceEa"});
  snapshot.extensions = Probed<std::vector<Extension>>::of({extension});
  return snapshot;
}

TEST(SnapshotJson, ComesBackAsItWas) {
  const std::string text = snapshot_to_json(sample());
  auto again = snapshot_from_json(text);
  ASSERT_TRUE(again) << english(again.error().message);
  EXPECT_EQ(snapshot_to_json(*again), text);
  EXPECT_EQ(again->gpus.state, ProbeState::Absent);
  EXPECT_EQ(again->gpus.note, "no NVIDIA device on the PCI bus");
}

TEST(SnapshotJson, RefusesTextThatIsNoSnapshot) {
  EXPECT_EQ(snapshot_from_json("{").error().code, Errc::Malformed);
  EXPECT_EQ(snapshot_from_json("{}").error().code, Errc::Malformed);
  EXPECT_EQ(snapshot_from_json("[]").error().code, Errc::Malformed);
  EXPECT_EQ(snapshot_from_json(R"({"schema": 1, "modules": 3})").error().code, Errc::Malformed);
}

TEST(SnapshotJson, SaysThatASnapshotIsTooNew) {
  EXPECT_EQ(snapshot_from_json(R"({"schema": 999})").error().code, Errc::Unsupported);
}

TEST(SnapshotFact, FollowsAPointer) {
  EXPECT_EQ(snapshot_fact(sample(), "/torch/value/version").value_or("?"), "2.11.0+cu130");
  EXPECT_EQ(snapshot_fact(sample(), "/extensions/value/0/missing_symbols/0/name").value_or("?"),
            "_ZN3c104cuda9SetDeviceEa");
  EXPECT_FALSE(snapshot_fact(sample(), "/nothing/here"));
}

TEST(Causes, HaveUniqueSlugsThatLeadBack) {
  std::set<std::string_view> slugs;
  for (const CauseInfo& cause : all_causes()) {
    EXPECT_TRUE(slugs.insert(cause.slug).second) << cause.slug;
    EXPECT_EQ(cause_from_slug(cause.slug), cause.cause);
    EXPECT_EQ(info(cause.cause).slug, cause.slug);
  }
  EXPECT_FALSE(cause_from_slug("no_such_cause"));
}

TEST(Severity, IsThatOfTheCauseWithoutCircumstances) {
  EXPECT_EQ(Finding{.cause = Cause::ImportCrash}.severity(), Severity::Error);
  EXPECT_EQ(Finding{.cause = Cause::NinjaMissing}.severity(), Severity::Warning);
  EXPECT_EQ(Finding{.cause = Cause::TorchNotImportedFirst}.severity(), Severity::Note);
}

TEST(Severity, IsDecidedByTheWeightiestCircumstanceWhateverTheOrder) {
  const auto severity = [](Circumstances circumstances) {
    return Finding{.cause = Cause::NinjaMissing, .circumstances = std::move(circumstances)}.severity();
  };
  EXPECT_EQ(severity({Circumstance::UnusedCopy}), Severity::Note);
  EXPECT_EQ(severity({Circumstance::EndedImport}), Severity::Error);
  EXPECT_EQ(severity({Circumstance::EndedImport, Circumstance::ImportWorked}), Severity::Note);
  EXPECT_EQ(severity({Circumstance::ImportWorked, Circumstance::EndedImport}), Severity::Note);
  EXPECT_EQ(severity({Circumstance::ImportWorked, Circumstance::ConfirmedByLog}), Severity::Error);
  // One that only says what the finding follows from hides no other.
  EXPECT_EQ(severity({Circumstance::LacksDependency}), Severity::Warning);
  EXPECT_EQ(severity({Circumstance::LacksDependency, Circumstance::ImportWorked}), Severity::Note);
}

TEST(Severity, IsThatOfAPolicyWhereThereIsOne) {
  EXPECT_EQ((Finding{.cause = Cause::ImportCrash,
                     .circumstances = {Circumstance::ConfirmedByLog},
                     .policy_severity = Severity::Note}
                 .severity()),
            Severity::Note);
}

}  // namespace
}  // namespace scankit
