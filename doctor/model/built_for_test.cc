// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/model/examined_files.h"

namespace scankit {
namespace {

BuiltFor dated(std::optional<std::string> first, std::optional<std::string> last) {
  BuiltFor built_for;
  built_for.file = "x.so";
  built_for.dated = true;
  built_for.torch_names = 12;
  built_for.torch_min = std::move(first);
  built_for.torch_max = std::move(last);
  return built_for;
}

TEST(BuiltForWords, NameTheRange) {
  EXPECT_EQ(english(torch_words(dated("2.3", "2.6"))), "torch 2.3 to 2.6");
  EXPECT_EQ(english(torch_words(dated("2.3", "2.3"))), "torch 2.3");
  EXPECT_EQ(english(torch_words(dated("2.9", {}))), "torch 2.9 or newer");
  EXPECT_EQ(english(torch_words(dated({}, "1.13"))), "torch 1.13 or older");
  EXPECT_EQ(english(torch_words(BuiltFor())), "");
  BuiltFor between = dated("2.4", "2.5");
  between.between_known_releases = true;
  EXPECT_EQ(english(torch_words(between)),
            "a torch between 2.4 and 2.5 that is neither (a nightly, vendor or modified build)");
  BuiltFor stable = dated("2.10", {});
  stable.stable_abi = true;
  EXPECT_EQ(english(torch_words(stable)), "torch's stable C interface of 2.10 or newer");
}

TEST(BuiltForWords, OneSentenceAFile) {
  BuiltFor old = dated("2.3", "2.6");
  old.string_abi = "old";
  EXPECT_EQ(built_for_sentence(old, "2.11.0+cu130"),
            "built for torch 2.3 to 2.6, pre-CXX11 ABI; 2.11 is installed");
  EXPECT_EQ(built_for_sentence(old, ""), "built for torch 2.3 to 2.6, pre-CXX11 ABI");
  EXPECT_EQ(built_for_sentence(dated("2.3", {}), "2.11.0"),
            "built for torch 2.3 or newer; 2.11 is installed");
  EXPECT_EQ(built_for_sentence(dated("2.3", {}), ""), "built for torch 2.3 or newer");
  EXPECT_EQ(built_for_sentence(BuiltFor(), "2.11.0"), "");
}

TEST(BuiltForWords, AFileThatIsNotDatedSaysWhy) {
  BuiltFor thin;
  thin.file = "x.so";
  EXPECT_EQ(built_for_sentence(thin, "2.11.0"), "it uses no torch symbol");
  thin.torch_names = 1;
  thin.releases = {"1.11", "2.0"};
  thin.why_not_narrower = "it needs only 1 symbol of torch";
  EXPECT_EQ(built_for_sentence(thin, ""),
            "built for any torch from 1.11 to 2.0: it needs only 1 symbol of torch");
  thin.releases.clear();
  EXPECT_EQ(built_for_sentence(thin, ""), "its torch release is unknown: it needs only 1 symbol of torch");
}

TEST(BuiltForWords, MinorOfAVersion) {
  EXPECT_EQ(torch_minor("2.11.0+cu130"), "2.11");
  EXPECT_EQ(torch_minor("2.11"), "2.11");
  EXPECT_EQ(torch_minor("2.12.0a0+git1"), "2.12");
  EXPECT_EQ(torch_minor("unknown"), "");
  EXPECT_EQ(torch_minor("2."), "");
}

}  // namespace
}  // namespace scankit
