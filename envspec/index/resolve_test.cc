// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "builder/fix/distribution.h"
#include "doctor/base/files.h"
#include "doctor/probes/python/python_host_test.h"
#include "envspec/index/index.h"
#include "envspec/lock/lock.h"

namespace scankit::envspec {
namespace {

// A disk on which the files of one package take longer than an index may.
class SlowDisk : public probes::TestHost {
 public:
  explicit SlowDisk(std::string slow) : slow_(std::move(slow)) {}
  Result<std::string> read_file(const std::string& path, std::size_t limit) const override {
    if (path.ends_with(slow_)) std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    return probes::TestHost::read_file(path, limit);
  }

 private:
  std::string slow_;
};

// Two installers that have nothing and write down that they were asked.
class TimeOfTheIndex : public testing::Test {
 protected:
  TimeOfTheIndex() : work_(TemporaryDirectory::create("scankit-resolve-test").value()) {
    add("packed");
    add("asked");
  }
  std::string at(const std::string& path) const { return path_join(work_.path(), path); }
  void add(const std::string& name) {
    const std::string info = at("site/" + name + "-1.0.dist-info");
    EXPECT_TRUE(make_directories(info));
    std::string record = name + "-1.0.dist-info/RECORD,,\n";
    for (const auto& [file, text] : std::map<std::string, std::string>{
             {"METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"},
             {"WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}}) {
      EXPECT_TRUE(write_file_atomically(path_join(info, file), text));
      record += fix::record_line({name + "-1.0.dist-info/" + file, text});
    }
    EXPECT_TRUE(write_file_atomically(path_join(info, "RECORD"), record));
    snapshot_.distributions.value.push_back({.name = name, .version = "1.0", .path = info});
  }
  installer::Installer installer(const std::string& name) const {
    EXPECT_TRUE(
        write_file_atomically(at(name),
                              "#!/bin/sh\n: > \"$0.asked\"\n"
                              "echo 'ERROR: No matching distribution found for asked==1.0' >&2\nexit 1\n",
                              0755));
    return {.kind = installer::Installer::Kind::Pip, .program = {at(name)}};
  }

  const TemporaryDirectory work_;
  Snapshot snapshot_;
};

TEST_F(TimeOfTheIndex, DoesNotCountWhatIsPackedBefore) {
  EnvironmentLock lock;
  lock.distributions = {{.name = "packed", .version = "1.0", .source = "here"},
                        {.name = "asked", .version = "1.0", .source = "index"}};
  ResolveRequest request{.installer = installer("first"), .second = installer("second")};
  request.node_deadline = std::chrono::seconds(2);
  const SlowDisk host("packed-1.0.dist-info/WHEEL");
  resolve_artifacts(host, snapshot_, request, lock);
  EXPECT_TRUE(lock.distributions[0].artifact) << lock.distributions[0].why_no_artifact;
  EXPECT_TRUE(host.exists(at("first.asked")));
  EXPECT_TRUE(host.exists(at("second.asked"))) << "the time was over before anything was asked";
}

// A lock without hashes is no accident that nobody explains.
TEST_F(TimeOfTheIndex, SaysWhyNobodyWasAsked) {
  const auto notes_of = [&](const installer::Installer& nobody) {
    EnvironmentLock lock;
    lock.distributions = {{.name = "asked", .version = "1.0", .source = "index"}};
    return resolve_artifacts(SlowDisk("none"), snapshot_, {.installer = nobody}, lock);
  };
  EXPECT_EQ(notes_of({.why = "no pip was found", .instead = "put uv on PATH"}),
            std::vector<std::string>{"no index was queried: no pip was found (put uv on PATH)"});
  EXPECT_EQ(notes_of({}), std::vector<std::string>{});
}

}  // namespace
}  // namespace scankit::envspec
