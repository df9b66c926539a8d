// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/python_names.h"

#include <gtest/gtest.h>

namespace scankit::knowledge {
namespace {

TEST(PythonNames, KnowsWhenANameCame) {
  const auto fake = releases_of_name("torch.library", "register_fake");
  ASSERT_TRUE(fake);
  EXPECT_EQ(fake->first, "2.4");
  EXPECT_EQ(fake->gone, "");
  const auto cache = releases_of_name("transformers", "EncoderDecoderCache");
  ASSERT_TRUE(cache);
  EXPECT_FALSE(cache->first.empty());
  EXPECT_EQ(cache->gone, "");
}

TEST(PythonNames, KnowsWhenANameWent) {
  const auto download = releases_of_name("huggingface_hub", "cached_download");
  ASSERT_TRUE(download);
  EXPECT_EQ(download->gone, "0.26");
  const auto six = releases_of_module("torch._six");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->first, "");
  EXPECT_EQ(six->gone, "2.0");
}

TEST(PythonNames, KnowsWhenANameCameAndWent) {
  const auto attention = releases_of_name("transformers.models.llama.modeling_llama", "LlamaFlashAttention2");
  ASSERT_TRUE(attention);
  EXPECT_EQ(attention->first, "4.34");
  EXPECT_EQ(attention->gone, "4.48");
}

TEST(PythonNames, KnowsANameByThePackageThatHandsItOnAndAModuleByItsName) {
  const auto norm = releases_of_name("torch.nn.modules.normalization", "RMSNorm");
  ASSERT_TRUE(norm);
  EXPECT_EQ(norm->first, "2.4");
  const auto attention = releases_of_name("torch.nn", "attention");
  ASSERT_TRUE(attention);
  EXPECT_EQ(attention->first, "2.3");
}

TEST(PythonNames, KnowsNothingOfWhatIsAlwaysThereOrNever) {
  EXPECT_FALSE(releases_of_name("torch", "Tensor"));
  EXPECT_FALSE(releases_of_name("torch", "no_such_name"));
  EXPECT_FALSE(releases_of_module("torch"));
  // numpy 2 still hands on what numpy.core is asked for.
  EXPECT_FALSE(releases_of_name("numpy.core.numeric", "array_function_dispatch"));
  EXPECT_FALSE(releases_of_module("a_package_of_the_user"));
  EXPECT_FALSE(releases_of_name("", ""));
  EXPECT_FALSE(releases_of_name("torch.library", ""));
}

// As the interpreters told: collections.Mapping was handed on by 3.9, imp was last in 3.11.
TEST(StandardLibrary, KnowsWhenPythonGainedAndLostNames) {
  const auto mapping = releases_of_name("collections", "Mapping");
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->first, "");
  EXPECT_EQ(mapping->gone, "3.10");
  const auto imp = releases_of_module("imp");
  ASSERT_TRUE(imp);
  EXPECT_EQ(imp->gone, "3.12");
  const auto self = releases_of_name("typing", "Self");
  ASSERT_TRUE(self);
  EXPECT_EQ(self->first, "3.11");
  EXPECT_EQ(releases_of_module("urllib2")->gone, "3");
  EXPECT_FALSE(releases_of_name("collections", "OrderedDict"));
  EXPECT_FALSE(releases_of_module("collections"));
}

TEST(StandardLibrary, KnowsTheModulesOfPythonFromThoseOfPackages) {
  EXPECT_TRUE(is_of_python("collections"));
  EXPECT_TRUE(is_of_python("imp"));
  EXPECT_FALSE(is_of_python("torch"));
  EXPECT_FALSE(is_of_python("coll"));
  EXPECT_FALSE(is_of_python(""));
  EXPECT_TRUE(is_package_with_names("torch"));
  EXPECT_FALSE(is_package_with_names("tor"));
  EXPECT_FALSE(is_package_with_names("collections"));
}

}  // namespace
}  // namespace scankit::knowledge
