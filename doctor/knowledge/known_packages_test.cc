// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/known_packages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "doctor/base/text.h"

namespace scankit::knowledge {
namespace {

TEST(KnownImporters, NamesMambaAndItsConvolution) {
  const auto& packages = known_importers().packages;
  EXPECT_NE(std::ranges::find(packages, "mamba_ssm"), packages.end());
  EXPECT_NE(std::ranges::find(packages, "causal_conv1d"), packages.end());
}

TEST(KnownImporters, FoldersStayBelowTheCheckout) {
  EXPECT_FALSE(known_importers().source_folders.empty());
  for (const std::string& folder : known_importers().source_folders) {
    EXPECT_FALSE(folder.starts_with('/')) << folder;
    EXPECT_EQ(folder.find(".."), std::string::npos) << folder;
  }
}

TEST(ImportNamesTable, LeadsBothWays) {
  EXPECT_EQ(import_name_of_distribution("pyyaml"), "yaml");
  EXPECT_EQ(distribution_of_import_name("yaml"), "pyyaml");
  EXPECT_EQ(distribution_of_import_name("cv2"), "opencv-python");  // the first of several
  EXPECT_EQ(import_name_of_distribution("opencv-python-headless"), "cv2");
  EXPECT_EQ(distribution_of_import_name("einops"), "einops");
}

TEST(ImportNamesTable, GuessesNothing) {
  EXPECT_EQ(import_name_of_distribution("no-such-distribution"), std::nullopt);
  EXPECT_EQ(distribution_of_import_name("no_such_package"), std::nullopt);
}

TEST(Signatures, ChangeWithTheRelease) {
  const std::string fwd = "causal_conv1d_cuda.causal_conv1d_fwd";
  EXPECT_EQ(signature_distribution(fwd), "causal-conv1d");
  EXPECT_EQ(known_signature(fwd, "1.1.3.post1")->arguments, 5u);
  EXPECT_EQ(known_signature(fwd, "1.5.0.post8")->arguments, 7u);
  EXPECT_EQ(known_signature(fwd, "1.5.1")->arguments, 8u);
}

TEST(Signatures, SayNothingOfWhatTheyDoNotKnow) {
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.causal_conv1d_fwd", "2.0"));
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.causal_conv1d_fwd", "main"));
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.other", "1.5.0"));
  EXPECT_EQ(signature_distribution("somebody.else"), "");
}

TEST(BuiltModules, KnowTheVariantsOfVMamba) {
  const auto row = std::ranges::find(built_modules(), "selective_scan_cuda_oflex", &CompiledModule::module);
  ASSERT_NE(row, built_modules().end());
  EXPECT_EQ(row->project, "MzeroMiko/VMamba");
  EXPECT_EQ(std::ranges::find(built_modules(), "torch", &CompiledModule::module), built_modules().end());
}

// `import NAME` is searched for in sources: each is one name, in one row.
TEST(BuiltModules, AreTopLevelNamesOnce) {
  std::set<std::string> seen;
  for (const CompiledModule& row : built_modules()) {
    EXPECT_TRUE(std::ranges::all_of(row.module, is_identifier_char)) << row.module;
    EXPECT_TRUE(seen.insert(row.module).second) << row.module;
    EXPECT_NE(row.project.find('/'), std::string::npos) << row.project;
  }
}

TEST(NeighbourPairs, AreRangesOfDistributions) {
  EXPECT_FALSE(neighbour_pairs().empty());
  for (const NeighbourPair& pair : neighbour_pairs())
    for (const std::string& range : {pair.releases, pair.takes}) {
      EXPECT_EQ(range.find_first_not_of("<>=!~.,0123456789"), std::string::npos) << range;
      EXPECT_NE(range.find_first_of("<>=!~"), std::string::npos) << range;
    }
}

TEST(NeighbourPairs, KnowTheOneThatMambaPins) {
  const auto row = std::ranges::find(neighbour_pairs(), "tilelang", &NeighbourPair::package);
  ASSERT_NE(row, neighbour_pairs().end());
  EXPECT_EQ(row->with, "apache-tvm-ffi");
  EXPECT_EQ(row->takes, "<0.1.10");
}

TEST(NeighbourPairs, SayWhatToAskForBeside) {
  EXPECT_EQ(limits_beside("mamba-ssm", "2.2.2"), std::vector<std::string>{"transformers<5"});
  EXPECT_EQ(limits_beside("mamba-ssm", "2.3.1"), std::vector<std::string>{});
  EXPECT_EQ(limit_for_torch("transformers", "2.0.1+cu117"), "transformers<4.52");
  EXPECT_EQ(limit_for_torch("transformers", "2.1.2"), "transformers<4.56");
  EXPECT_EQ(limit_for_torch("transformers", "2.2.2"), "transformers<5.1");
  EXPECT_EQ(limit_for_torch("transformers", "2.3.1"), "transformers<5.1");
  EXPECT_EQ(limit_for_torch("transformers", "2.4.0"), "transformers<5.15");
  EXPECT_EQ(limit_for_torch("transformers", "2.5.1"), "transformers<5.20");
  EXPECT_EQ(limit_for_torch("transformers", "2.6.0"), "");
  EXPECT_EQ(limit_for_torch("einops", "2.0.1"), "");
}

TEST(ModelPackages, AreKnownByBothNames) {
  EXPECT_TRUE(is_model_package("mamba_ssm") && is_model_package("causal-conv1d"));
  EXPECT_FALSE(is_model_package("detectron2") || is_model_package(""));
}

TEST(SystemLibraries, AreInAPackageOfDebian) {
  EXPECT_EQ(debian_package_of("libGL.so.1"), "libgl1");
  EXPECT_EQ(debian_package_of("libgthread-2.0.so.0"), "libglib2.0-0");
  EXPECT_EQ(debian_package_of("libGL.so.2"), std::nullopt) << "another number is another library";
  EXPECT_EQ(debian_package_of("libcudart.so.12"), std::nullopt);
}

TEST(PartsOfPython, AreThoseThatAPythonMayLack) {
  EXPECT_EQ(optional_part_of_python("tkinter")->debian, "python3-tk");
  EXPECT_EQ(optional_part_of_python("_ctypes")->needs, "libffi-dev");
  EXPECT_EQ(optional_part_of_python("_ctypes")->debian, "");
  EXPECT_FALSE(optional_part_of_python("collections"));
  EXPECT_FALSE(optional_part_of_python("torch"));
}

}  // namespace

}  // namespace scankit::knowledge
