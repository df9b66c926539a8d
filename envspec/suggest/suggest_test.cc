// SPDX-License-Identifier: Apache-2.0
#include "envspec/suggest/suggest_test.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "doctor/base/machine.h"
#include "doctor/base/text.h"
#include "doctor/checks/gpu_queries.h"
#include "doctor/knowledge/cuda_support.h"
#include "doctor/matrix/places.h"
#include "envspec/suggest/solve.h"

namespace scankit::envspec {
namespace {

std::string plan_text(const SuggestedSet& set, const std::string& name) {
  for (const PackagePlan& plan : set.packages)
    if (plan.name == name) return plan.version + " " + std::string(how_word(plan.how));
  return "";
}

Texts wishes_of_conflict(const Suggestion& suggestion) {
  Texts texts;
  for (const Wish& wish : suggestion.conflict) texts.push_back(wish.text);
  return texts;
}

void expect_set(const YAML::Node& machine, const Suggestion& suggestion) {
  ASSERT_FALSE(suggestion.sets.empty()) << join(wishes_of_conflict(suggestion));
  const SuggestedSet& best = suggestion.sets.front();
  EXPECT_EQ(best.torch_version + "/" + best.build->cuda_text, text_of(machine["torch"]));
  EXPECT_EQ(plan_text(best, "mamba-ssm"), text_of(machine["mamba"]));
  EXPECT_EQ(plan_text(best, "causal-conv1d"), text_of(machine["conv"]));
  EXPECT_EQ(best.python, text_of(machine["python"]));
  if (machine["beside"]) {
    EXPECT_EQ(needed_beside(best), texts_of(machine["beside"]));
  }
}

// The whole text of a conflict is checked: a wish more would not be minimal, one less no conflict.
void expect_conflict(const YAML::Node& machine, const Suggestion& suggestion) {
  EXPECT_TRUE(suggestion.sets.empty());
  EXPECT_EQ(wishes_of_conflict(suggestion), texts_of(machine["conflict"]));
  if (!machine["changes"]) return;
  ASSERT_FALSE(suggestion.changes.empty());
  EXPECT_EQ(english(suggestion.changes.front().text), text_of(machine["changes"]));
}

TEST(Suggest, GivesTheExpectedSetForEachMachine) {
  const YAML::Node machines = YAML::LoadFile(SCANKIT_SOURCE_DIR "/envspec/suggest/machines_test.yaml");
  ASSERT_GE(machines.size(), 30u);
  for (const auto& machine : machines) {
    SCOPED_TRACE(testing::Message() << "line " << machine.Mark().line + 1 << ": " << text_of(machine["why"]));
    const Suggestion suggestion = suggest(request_of(machine));
    if (machine["conflict"])
      expect_conflict(machine, suggestion);
    else if (machine["unknown"])
      EXPECT_EQ(suggestion.unknown_gpus, texts_of(machine["unknown"]));
    else
      expect_set(machine, suggestion);
  }
}

// Whatever is suggested, every fact of the tables holds for it: a second, direct reading of them.
TEST(Suggest, OffersOnlyWhatTheTablesAllow) {
  const YAML::Node machines = YAML::LoadFile(SCANKIT_SOURCE_DIR "/envspec/suggest/machines_test.yaml");
  for (const auto& machine : machines) {
    const SuggestRequest request = request_of(machine);
    for (const SuggestedSet& set : suggest(request).sets) {
      EXPECT_EQ(set.build->machine, request.machine);
      EXPECT_TRUE(matrix::torch_has_wheels_for(set.torch->minor, set.python));
      for (const unsigned gpu : request.gpus)
        EXPECT_TRUE(has_code_for(set.build->archs, gpu) || has_ptx_for(set.build->ptx, gpu)) << gpu;
      if (!request.glibc.empty()) {
        EXPECT_LE(*Version::parse(set.build->glibc), *Version::parse(request.glibc));
        EXPECT_LE(*Version::parse(set.needs_glibc), *Version::parse(request.glibc));
      }
      // Where the driver is known to its last number.
      if (request.driver && request.driver->release.size() > 2 &&
          std::ranges::none_of(request.gpus, checks::is_tegra)) {
        EXPECT_GE(*request.driver, *knowledge::minimum_driver(set.build->cuda));
      }
    }
  }
}

TEST(Suggest, TablesAreWhole) {
  ASSERT_GE(torch_releases().size(), 16u);
  for (const TorchRelease& torch : torch_releases()) {
    for (const std::string machine : {"x86_64", "aarch64"}) {
      const auto builds = std::ranges::count(torch.builds, machine, &TorchBuild::machine);
      const auto on_index = std::ranges::count_if(
          torch.builds, [&](const TorchBuild& build) { return build.machine == machine && build.on_index; });
      EXPECT_EQ(on_index, builds > 0 ? 1 : 0) << torch.minor << " " << machine;
    }
    for (const TorchBuild& build : torch.builds) {
      EXPECT_TRUE(std::ranges::is_sorted(build.archs)) << torch.minor << build.cuda_text;
      EXPECT_FALSE(build.archs.empty() || build.source.empty() || build.glibc.empty());
      EXPECT_TRUE(knowledge::minimum_driver(build.cuda)) << build.cuda_text;
      const Texts packings = {"lz4", "zstd", "unknown"};
      EXPECT_NE(std::ranges::find(packings, build.packing), packings.end());
      // A compiler makes code only for GPUs that it knows.
      for (const unsigned arch : build.archs)
        EXPECT_TRUE(knowledge::nvcc_knows_arch(build.cuda_text, std::to_string(arch)).value_or(false))
            << torch.minor << " " << build.cuda_text << " sm_" << arch;
    }
  }
  for (const char* name : {"mamba-ssm", "causal-conv1d"}) {
    const PackageRow* row = package_row(name);
    ASSERT_NE(row, nullptr);
    for (const PackageRelease& release : row->releases) {
      EXPECT_FALSE(release.python.empty() || (release.built_for.empty() && release.built_before_13.empty()))
          << release.version;
      for (const PublishedWheels& wheels : release.wheels)
        for (const std::string& torch : wheels.torch)
          EXPECT_NE(std::ranges::find(torch_releases(), torch, &TorchRelease::minor), torch_releases().end());
    }
  }
  EXPECT_EQ(package_row("torchvision"), nullptr);
}

// mamba-ssm calls what causal-conv1d had at the time: with other releases its blocks fail when they are called.
TEST(Suggest, NoSetHasReleasesThatDoNotWorkTogether) {
  std::size_t compared = 0;
  for (const PackageRelease& release : package_row("mamba-ssm")->releases) {
    if (release.after_the_table) continue;
    ASSERT_EQ(release.partners.size(), 1u) << release.version;
    const YAML::Node machine =
        YAML::Load("{gpu: sm_80, driver: 580.95.05, glibc: '2.35', python: '3.10', packages: [mamba-ssm==" +
                   release.version + "]}");
    for (const SuggestedSet& set : suggest(request_of(machine)).sets) {
      const auto conv = std::ranges::find(set.packages, "causal-conv1d", &PackagePlan::name);
      ASSERT_NE(conv, set.packages.end());
      EXPECT_TRUE(release.partners.front().range.contains(conv->version).value())
          << release.version << " " << conv->version;
      ++compared;
    }
  }
  EXPECT_GE(compared, 60u);
}

TEST(Suggest, AnOldReleaseBringsThePackageThatItRequires) {
  SuggestRequest request =
      request_of(YAML::Load("{gpu: sm_80, driver: 580.95.05, glibc: '2.35', python: '3.10'}"));
  request.packages = {parse_package_wish("mamba-ssm==1.1.1").value()};
  EXPECT_EQ(plan_text(suggest(request).sets.front(), "causal-conv1d"), "1.1.3.post1 wheel");
  request.packages = {parse_package_wish("mamba-ssm==2.2.2").value()};
  EXPECT_EQ(plan_text(suggest(request).sets.front(), "causal-conv1d"), "");
}

TEST(Suggest, NamesWhatIsRuledOutInChains) {
  SuggestRequest request =
      request_of(YAML::Load("{gpu: sm_90, driver: 535.54.03, glibc: '2.35', python: '3.11'}"));
  const Suggestion suggestion = suggest(request);
  ASSERT_FALSE(suggestion.ruled_out.empty());
  const RuledOut& first = suggestion.ruled_out.front();
  EXPECT_EQ(first.what, "torch 2.10 to 2.14 with CUDA 13.0, torch 2.12 to 2.15 with CUDA 13.2");
  ASSERT_EQ(first.chain.size(), 3u);
  EXPECT_EQ(english(first.chain[0]), "driver 535.54.03 supports CUDA up to 12.2");
  EXPECT_EQ(english(first.chain[2]), "CUDA 13 needs a driver of 580.65.06 or newer");
}

// A Python that torch has wheels for is no reason, and a build that does not exist is not ruled out.
TEST(Suggest, RulesOutForWhatIsWrongWithTheNearestCandidate) {
  const Suggestion suggestion =
      suggest(request_of(YAML::Load("{gpu: sm_90, driver: 580.95.05, glibc: '2.35', python: '3.11', "
                                    "packages: [torch==2.9.0, triton<3.5]}")));
  ASSERT_FALSE(suggestion.ruled_out.empty());
  for (const RuledOut& entry : suggestion.ruled_out)
    for (const Message& fact : entry.chain)
      EXPECT_EQ(english(fact).find("Python"), std::string::npos) << entry.what << ": " << english(fact);
  const Suggestion old =
      suggest(request_of(YAML::Load("{gpu: sm_90, driver: 580.95.05, glibc: '2.35', python: '3.9'}")));
  const auto reason = std::ranges::find_if(old.ruled_out, [](const RuledOut& entry) {
    return english(entry.chain.back()) == "Python 3.9 is required";
  });
  EXPECT_NE(reason, old.ruled_out.end()) << "no Python of torch 2.9 and newer is 3.9";
}

TEST(Suggest, RefusesWhatIsNotAPackage) {
  for (const char* text : {"", "==1", "a b", "mamba-ssm[dev]", "mamba-ssm @ https://x", "mamba-ssm>=", "../x",
                           "mamba-ssm==2.3;python_version<'3'", "-r"})
    EXPECT_FALSE(parse_package_wish(text)) << text;
  const auto wish = parse_package_wish("Mamba_SSM >= 2.3, <3");
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->name, "mamba-ssm");
  EXPECT_TRUE(wish->range.contains("2.3.1").value());
}

// 2.9.0 requires triton 3.5.0; the table has that of 2.9.1 only.
TEST(Suggest, ClaimsNoTritonForAnotherPatchOfTorch) {
  const Suggestion suggestion =
      suggest(request_of(YAML::Load("{gpu: sm_90, driver: 580.95.05, glibc: '2.35', python: '3.11', "
                                    "packages: [torch==2.9.0, triton<3.5]}")));
  std::string all;
  for (const RuledOut& entry : suggestion.ruled_out)
    for (const Message& fact : entry.chain) all += english(fact) + "\n";
  EXPECT_NE(all.find("torch 2.9.0 requires triton 3.5.*"), std::string::npos) << all;
}

// The bound that people read and that --spec writes where nothing is known of the driver.
TEST(Suggest, CountsTheGpusInTheDriverThatASetNeeds) {
  const auto needs = [](const std::string& gpu) {
    return best_of("{gpu: '" + gpu + "', glibc: '2.35', python: '3.12'}").needs_driver;
  };
  EXPECT_EQ(needs("sm_90"), "525.60.13");
  EXPECT_EQ(needs("sm_120"), "570.26");
  EXPECT_EQ(needs("sm_90,sm_100"), "570.26");
  EXPECT_EQ(needs("sm_103"), "575.51.03") << "a chip that CUDA 12.9 introduced";
  EXPECT_EQ(needs("sm_121"), "575.51.03");
  const SuggestedSet set = best_of("{gpu: sm_120, glibc: '2.35', python: '3.12'}");
  EXPECT_EQ(spec_of(SuggestAnswer{}, set).spec.driver.text(), ">=570.26");
}

// By the tags of its wheels and by what the module in a wheel of a release page was linked with.
TEST(Suggest, CountsItsWheelsInTheGlibcThatASetNeeds) {
  const SuggestedSet set = best_of("{gpu: sm_90, driver: 580.95.05, python: '3.11'}");
  ASSERT_NE(std::ranges::find(set.packages, PackagePlan::How::Wheel, &PackagePlan::how), set.packages.end());
  EXPECT_EQ(set.build->glibc, "2.28");
  EXPECT_EQ(set.needs_glibc, "2.32");
  const SuggestedSet older = best_of("{gpu: sm_90, driver: 580.95.05, glibc: '2.28', python: '3.11'}");
  EXPECT_EQ(older.needs_glibc, "2.28");
}

TEST(SuggestCommands, AreForTheInstallerThatIsThere) {
  const SuggestedSet set = best_of("{gpu: sm_60, driver: 580.95.05, glibc: '2.28', python: '3.14'}");
  EXPECT_FALSE(set.build->on_index) << "no build on the index has sm_60 and cp314";
  CommandRequest request{{SuggestInstaller::Kind::Uv, "uv"}, ".venv", "scankit", "sm_60", {}};
  const Texts uv = commands_of(set, request);
  EXPECT_EQ(uv[0], "uv venv --python 3.14 .venv");
  EXPECT_EQ(uv[1], "uv pip install --python .venv --torch-backend=cu126 torch==" + set.torch_version);
  EXPECT_TRUE(uv[2].starts_with("scankit fix --yes --python .venv/bin/python --package mamba-ssm=="))
      << uv[2];
  EXPECT_TRUE(uv[2].ends_with(" --arch sm_60"));
  EXPECT_EQ(uv[3], "scankit doctor --python .venv/bin/python --gpu sm_60");
  request.installer = {SuggestInstaller::Kind::Pip, ""};
  const Texts pip = commands_of(set, request);
  EXPECT_EQ(pip[0], "python3.14 -m venv .venv");
  EXPECT_EQ(pip[1], ".venv/bin/python -m pip install uv") << "pip has no name for PyTorch's archive";
  EXPECT_TRUE(pip[2].starts_with(".venv/bin/uv pip install --python .venv --torch-backend=cu126"));
  request.installer = {SuggestInstaller::Kind::Conda, "mamba"};
  EXPECT_EQ(commands_of(set, request)[0], "mamba create --prefix ./.venv python=3.14 pip")
      << "--yes would remove an environment that is there";
}

TEST(SuggestCommands, NameTheDirectoryAsAPath) {
  using Kind = SuggestInstaller::Kind;
  const SuggestedSet set = best_of("{gpu: sm_90, driver: 580.95.05, glibc: '2.28', python: '3.12'}");
  const auto has = [&](Kind kind, const std::string& directory, const char* part) {
    return join(commands_of(set, {{kind, "x"}, directory, "scankit", "", {}}), "\n").find(part) !=
           std::string::npos;
  };
  EXPECT_TRUE(has(Kind::Conda, "/srv/env", "--prefix /srv/env python"));
  EXPECT_TRUE(has(Kind::Conda, "../env", "--prefix ../env python"));
  for (const Kind kind : {Kind::Uv, Kind::Pip, Kind::Conda}) {
    EXPECT_FALSE(has(kind, "/srv/env", "./"));
    EXPECT_TRUE(has(kind, "-x", "./-x"));
    EXPECT_FALSE(has(kind, "-x", " -x"));
  }
  EXPECT_TRUE(has(Kind::Uv, "3.11", "--python ./3.11 ")) << "uv reads 3.11 as a Python";
}

// flash-attn is a source archive on the index, whose setup.py imports torch.
TEST(SuggestCommands, BuildWhatNothingIsKnownOfBesideTorch) {
  SuggestRequest request =
      request_of(YAML::Load("{gpu: sm_90, driver: 580.95.05, glibc: '2.35', python: '3.11'}"));
  request.packages = {parse_package_wish("flash-attn").value()};
  const SuggestedSet set = suggest(request).sets.front();
  const Texts lines = commands_of(set, {{SuggestInstaller::Kind::Pip, ""}, ".venv", "scankit", "", {}});
  EXPECT_EQ(lines[1], ".venv/bin/python -m pip install torch==" + set.torch_version);
  EXPECT_EQ(lines[3],
            ".venv/bin/python -m pip install --no-build-isolation flash-attn torch==" + set.torch_version);
}

// "2.4" would be a release that nobody has seen.
TEST(SuggestCommands, GiveTheRangeOfAReleaseThatTheTablesDoNotHave) {
  const SuggestedSet set =
      best_of("{gpu: sm_90, driver: 580.95.05, glibc: '2.35', python: '3.11', packages: [mamba-ssm>=2.4]}");
  const std::string all =
      join(commands_of(set, {{SuggestInstaller::Kind::Uv, "uv"}, ".venv", "scankit", "", {}}), "\n");
  EXPECT_NE(all.find(" --package 'mamba-ssm>=2.4'"), std::string::npos) << all;
  EXPECT_EQ(all.find("mamba-ssm=="), std::string::npos) << all;
}

// What is installed by the commands must pass `env check`: scankit's module is of no package of the index.
TEST(SuggestSpec, DemandsThePackageOfAWheelOnly) {
  const SuggestedSet set = best_of("{gpu: sm_70, driver: 580.95.05, glibc: '2.35', python: '3.12'}");
  const DerivedSpec derived = spec_of(SuggestAnswer{}, set);
  const auto read = parse_spec(spec_to_yaml(derived.spec, derived.notes, ""), "scankit.yaml");
  ASSERT_TRUE(read) << english(read.error().message);
  ASSERT_EQ(read->extensions.size(), 2u);
  EXPECT_EQ(read->extensions[0].distribution, "mamba-ssm");
  EXPECT_EQ(read->extensions[0].version.text(), "2.3.1");
  EXPECT_EQ(read->extensions[1].distribution, "");
  EXPECT_EQ(read->extensions[1].torch_abi, "none");
  EXPECT_EQ(read->extensions[1].from, "scankit");
  EXPECT_EQ(read->extensions[1].package, "causal-conv1d");
  EXPECT_FALSE(read->extensions[1].package_version.empty());
  EXPECT_TRUE(read->torch.contains("2.10.0").value());
}

// A processor that could not be read is not taken for one that was.
TEST(Suggest, SaysThatTheProcessorIsNotKnown) {
  const SuggestTarget target = target_of({}, Snapshot(), "a test").value();
  EXPECT_TRUE(target.unknown);
  EXPECT_NE(english(target.notes.front()).find("processor could not be read"), std::string::npos);
  Snapshot other;
  other.os.value.machine = "ppc64le";
  const auto refused = target_of({}, other, "a test");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::Unsupported);
}

TEST(SuggestCommands, NameNoHost) {
  for (const char* python : {"3.9", "3.11", "3.14"})
    for (const auto kind :
         {SuggestInstaller::Kind::Uv, SuggestInstaller::Kind::Pip, SuggestInstaller::Kind::Conda}) {
      const SuggestedSet set =
          best_of(std::string("{gpu: sm_60, driver: 580.95.05, glibc: '2.35', python: '") + python + "'}");
      for (const std::string& command : commands_of(set, {{kind, "x"}, ".venv", "scankit", "", {}}))
        EXPECT_EQ(command.find("://"), std::string::npos) << command;
    }
}

}  // namespace
}  // namespace scankit::envspec
