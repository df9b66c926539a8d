// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/redact.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

TEST(Redacted, HidesWhoseFoldersTheyAreAndKeepsThemApart) {
  Snapshot snapshot;
  snapshot.environment["LD_LIBRARY_PATH"] = "/home/alice/lib:/opt/x:/home/bob/lib:/root";
  snapshot.environment["PYTHONPATH"] = "/data/rooted/home/carol:/home/alice";
  const Snapshot clean = redacted(snapshot);
  EXPECT_EQ(clean.environment.at("LD_LIBRARY_PATH"), "/home/user/lib:/opt/x:/home/user2/lib:/home/user3");
  EXPECT_EQ(clean.environment.at("PYTHONPATH"), "/data/rooted/home/carol:/home/user");
}

TEST(Redacted, DropsTheSerialsOfGpus) {
  Snapshot snapshot;
  snapshot.gpus = Probed<std::vector<Gpu>>::of({{.name = "NVIDIA H200", .uuid = "GPU-1234"}});
  const Snapshot clean = redacted(snapshot);
  EXPECT_EQ(clean.gpus.value[0].name, "NVIDIA H200");
  EXPECT_EQ(clean.gpus.value[0].uuid, "");
}

}  // namespace
}  // namespace scankit
