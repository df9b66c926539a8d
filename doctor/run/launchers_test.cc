// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/run/command.h"

namespace scankit::run {
namespace {

using Names = std::vector<std::string>;

TEST(Launched, SkipsTheWordsOfHelpers) {
  EXPECT_EQ(launched({"/usr/bin/docker", "run", "x"}), (Names{"docker"}));
  EXPECT_EQ(launched({"sudo", "-E", "-u", "ann", "timeout", "-k", "5", "60s", "docker", "run", "x"}),
            (Names{"sudo", "timeout", "docker"}));
  EXPECT_EQ(launched({"env", "-i", "A=b", "nohup", "./train.py", "-k"}), (Names{"env", "nohup", "train.py"}));
  EXPECT_EQ(launched({"nice", "-n", "5", "--", "srun", "-n2", "x"}), (Names{"nice", "srun"}));
  EXPECT_EQ(launched({"taskset", "0x3", "python"}), (Names{"taskset", "python"}));
  EXPECT_EQ(launched({"sudo", "-u"}), (Names{"sudo"}));
  EXPECT_EQ(launched({"timeout", "5"}), (Names{"timeout"}));
  EXPECT_EQ(launched({}), Names{});
}

TEST(RunsElsewhere, KnowsEnginesAndSchedulers) {
  for (const char* name : {"docker", "podman", "srun", "ssh", "apptainer", "kubectl"}) {
    EXPECT_TRUE(runs_elsewhere(name)) << name;
    EXPECT_NE(examined_there(name).find("scankit run -- COMMAND"), std::string::npos) << name;
  }
  for (const char* name : {"python", "sudo", "timeout", "bash", "make"}) {
    EXPECT_FALSE(runs_elsewhere(name)) << name;
    EXPECT_EQ(examined_there(name), "") << name;
  }
}

std::string meaning(const Names& words, int status, const std::string& output = "") {
  return meaning_of_exit(words, status, output).english();
}

TEST(MeaningOfExit, IsTheEnginesOwnOnlyWhereItStartsContainers) {
  EXPECT_EQ(meaning({"docker", "run", "x"}, 125),
            "docker itself failed before it started the command in a container");
  EXPECT_EQ(meaning({"sudo", "podman", "run", "x"}, 126),
            "the command could not be started in the container");
  EXPECT_EQ(meaning({"podman", "exec", "x", "y"}, 127), "the container has no such command");
  EXPECT_NE(meaning({"docker", "run", "x"}, 137).find("docker inspect"), std::string::npos);
  EXPECT_EQ(meaning({"docker", "run", "x"}, 1), "");
  EXPECT_EQ(meaning({"docker", "build", "."}, 125), "");
}

TEST(MeaningOfExit, IsThatOfHelpersAndShells) {
  EXPECT_EQ(meaning({"timeout", "5", "python"}, 124), "its time was up, so timeout ended it");
  EXPECT_EQ(meaning({"python", "5"}, 124), "");
  EXPECT_EQ(meaning({"nohup", "x"}, 125), "nohup itself failed");
  EXPECT_EQ(meaning({"timeout", "5", "docker", "run", "x"}, 125),
            "docker itself failed before it started the command in a container");
  EXPECT_EQ(meaning({"sh", "-c", "x"}, 127), "a program that it calls was not found");
  EXPECT_EQ(meaning({"env", "x"}, 126), "a program that it calls cannot be executed");
  EXPECT_EQ(meaning({"python"}, 127), "");
  EXPECT_EQ(meaning({"ssh", "h", "x"}, 255), "ssh did not reach the machine, or lost it");
}

TEST(MeaningOfExit, QuotesSlurm) {
  const std::string output = "slurmstepd-n1: error: execve(): trian: No such file or directory\nmore\n";
  EXPECT_EQ(meaning({"srun", "trian"}, 2, output), "the node cannot start trian: No such file or directory");
  EXPECT_EQ(meaning({"srun", "x"}, 2, "execve(): "), "");
  EXPECT_EQ(meaning({"srun", "x"}, 2), "");
}

}  // namespace
}  // namespace scankit::run
