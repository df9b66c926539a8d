// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ci/fleet/fleet_test.h"
#include "envspec/create/create.h"

namespace scankit::fleet {
namespace {

// An environment with two packages and one compiled file, and its record.
class Environment {
 public:
  explicit Environment(const std::string& numpy) : folder_(*TemporaryDirectory::create("fleet-record")) {
    envspec::EnvironmentRecord record;
    record.site = "site";
    record.lock_sha256 = sha256_hex("lock " + numpy);
    for (const auto& [name, version] :
         {std::pair<std::string, std::string>("numpy", numpy), {"six", "1.0"}}) {
      const std::string metadata = name + "-" + version + ".dist-info";
      record.content[name] = sha256_hex(name + version);
      record.packages.push_back({name, version, metadata, 0, 0});
      EXPECT_TRUE(make_directories(path("site/" + metadata)));
    }
    record.libraries = {{"numpy/_c.so", sha256_hex(numpy), 1, 1}};
    write(record);
  }
  void write(const envspec::EnvironmentRecord& record) const {
    put(envspec::kRecordFile, record_to_json(record));
  }
  void put(const std::string& inner, const std::string& text) const {
    EXPECT_TRUE(make_directories(path_dirname(path(inner))));
    EXPECT_TRUE(write_file_atomically(path(inner), text));
  }
  std::string path(const std::string& inner = "") const { return path_join(folder_.path(), inner); }

 private:
  TemporaryDirectory folder_;
};

NodeResult with_record(const std::string& name, const Environment& environment) {
  NodeResult node = healthy(name);
  node.facts.merge(record_facts({"doctor"}, environment.path()));
  return node;
}

TEST(FleetRecords, TheNodeWithAnotherEnvironmentIsNamed) {
  const Environment same("2.1.0"), other("2.2.0");
  const Folder folder({"a", "b", "c"});
  folder.put(with_record("a", same));
  folder.put(with_record("b", other));
  folder.put(with_record("c", same));
  const FleetReport report = folder.report();
  // numpy's file, whose time is not the recorded one, has changed on all nodes alike: that is no difference.
  ASSERT_EQ(report.differences.size(), 1U) << report.differences[1].fact;
  const Difference& record = report.differences[0];
  EXPECT_EQ(record.fact, "record");
  ASSERT_EQ(record.others.size(), 1U);
  EXPECT_EQ(record.others[0].second, std::vector<std::string>{"b"});
  EXPECT_EQ(record.with_it, (std::vector<std::string>{"record lock", "record package numpy"}));
  EXPECT_NE(difference_line(record).find("(package: numpy)"), std::string::npos) << difference_line(record);
  EXPECT_EQ(report.common.count("record package six"), 0U);
  EXPECT_EQ(report.common.count("record"), 1U);
  EXPECT_EQ(exit_status_of(report, "error"), kExitClean);
  EXPECT_EQ(exit_status_of(report, "warning"), kExitFindings);
}

TEST(FleetRecords, WhatChangedSinceItWasRecordedIsAFact) {
  const Environment environment("2.1.0");
  EXPECT_EQ(record_facts({}, environment.path()).at("record changes"), "numpy/_c.so");
  environment.put("site/extra-1.0.dist-info/RECORD", "");
  EXPECT_EQ(record_facts({}, environment.path()).at("record changes"), "extra, numpy/_c.so");
  environment.write({});
  EXPECT_NE(record_facts({}, environment.path()).at("record changes").find("unknown: "), std::string::npos);
  environment.put(envspec::kRecordFile, "{}");
  EXPECT_NE(record_facts({}, environment.path()).at("record").find("is not a record"), std::string::npos);
  EXPECT_TRUE(record_facts({}, environment.path("site")).empty());
}

TEST(FleetRecords, ThoseOfTheCommandAndOfThePolicyCount) {
  const Environment environment("2.1.0");
  const std::string fact = "record:" + environment.path();
  EXPECT_EQ(record_facts({"env", "check", "--record=" + environment.path()}, "").count(fact), 1U);
  EXPECT_EQ(record_facts({"env", "check", "--record=" + environment.path()}, environment.path()).count(fact),
            0U);
  environment.put("p.yaml", "schema: 1\nrecord: [" + environment.path() + ", /no/such]\n");
  const Facts facts = record_facts({"ci", "run", "--policy", environment.path("p.yaml")}, "");
  EXPECT_EQ(facts.count(fact), 1U);
  EXPECT_EQ(facts.count("record:/no/such"), 0U);
}

}  // namespace
}  // namespace scankit::fleet
