// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "builder/compile/compile.h"
#include "builder/module/assemble.h"
#include "doctor/base/files.h"

namespace scankit::compile {
namespace {

Explanation explanation(const std::string& compiler = "nvrtc 13.0 " + std::string(64, 'a')) {
  Explanation made{"m", {{"scankit", "0.1"}}, {}};
  for (const char* unit : {"fwd", "bwd"})
    made.images.push_back({unit,
                           "sm_90",
                           {{"compiler", compiler}, {"unit", unit}, {"flags", "-DA -DB"}},
                           std::string("key of ") + unit,
                           ""});
  return made;
}

std::vector<std::string> compared(const Explanation& other, const Explanation& here) {
  return compare_explanations("other.json", other, here);
}

TEST(ChangedInputs, NamesWhatIsNewChangedAndGone) {
  const auto changes = changed_inputs({{"a", "1"}, {"b", "2"}}, {{"b", "3"}, {"c", "4"}});
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].label, "b");
  EXPECT_EQ(changes[0].before, "2");
  EXPECT_TRUE(changes[1].is_new);
  EXPECT_TRUE(changes[2].is_gone);
}

TEST(ChangesInWords, SpeaksOfFlagsFilesAndCompilers) {
  const std::string one(64, '1'), two(64, '2');
  EXPECT_EQ(changes_in_words({{"flags", "-DA -DB"}}, {{"flags", "-DA -DC"}}),
            (std::vector<std::string>{"flag -DC was added", "flag -DB was removed"}));
  EXPECT_EQ(changes_in_words({{"flags", "-DA -DB"}}, {{"flags", "-DB -DA"}}),
            std::vector<std::string>{"the order of the flags changed"});
  EXPECT_EQ(changes_in_words({{"source", one}, {"source kernels/a.h", one}},
                             {{"source", two}, {"source kernels/a.h", two}}),
            std::vector<std::string>{"kernels/a.h changed"});
  EXPECT_EQ(changes_in_words({{"source", one}}, {{"source", two}}),
            std::vector<std::string>{"source changed"});
  EXPECT_EQ(changes_in_words({{"compiler", "nvrtc 12.9 " + one}}, {{"compiler", "nvcc 13.0 " + two}}),
            std::vector<std::string>{"compiler is nvcc 13.0 and was nvrtc 12.9"});
}

TEST(Explanation, GoesThroughJsonAndBack) {
  auto folder = TemporaryDirectory::create("explain");
  Explanation before = explanation();
  before.images[0].sha256 = "ab";
  nlohmann::ordered_json json;
  add_explanation(json, before);
  EXPECT_EQ(json["image_inputs"].size(), 2u);  // compiler and flags are the same for both
  const std::string path = folder->path() + "/a.json";
  ASSERT_TRUE(write_file_atomically(path, json.dump()));
  const auto after = module::read_explanation(path);
  ASSERT_TRUE(after) << english(after.error().message);
  EXPECT_TRUE(compared(before, *after).empty());
  EXPECT_EQ(after->images[0].sha256, "ab");
  EXPECT_EQ(explanation_text(before), explanation_text(*after));
}

TEST(Explanation, IsComparedLabelByLabel) {
  EXPECT_EQ(compared(explanation(), explanation("nvrtc 12.9 " + std::string(64, 'b'))),
            std::vector<std::string>{"all images: compiler is nvrtc 12.9 and was nvrtc 13.0"});
  Explanation here = explanation();
  here.images[1].inputs[2].second = "-DA";
  here.inputs[0].second = "0.2";
  here.images.push_back({"fwd", "sm_80", {}, "", ""});
  Explanation other = explanation();
  other.images.push_back({"old", "sm_70", {}, "", ""});
  EXPECT_EQ(
      compared(other, here),
      (std::vector<std::string>{"the module: scankit is 0.2 and was 0.1", "bwd sm_90: flag -DB was removed",
                                "only here: fwd sm_80", "only in other.json: old sm_70"}));
}

TEST(Explanation, TellsTheSameInputsWithOtherBytes) {
  Explanation here = explanation(), other = explanation();
  here.images[0].sha256 = "1";
  other.images[0].sha256 = "2";
  EXPECT_EQ(compared(other, here), std::vector<std::string>{"fwd sm_90: the same inputs gave different "
                                                            "output"});
}

TEST(Explanation, RefusesWhatIsNone) {
  auto folder = TemporaryDirectory::create("explain");
  const std::string path = folder->path() + "/a.json";
  for (const char* text : {"", "[]", "{}", "{\"module\": \"m\"}", "{\"module\": 1, \"images\": []}",
                           "{\"module\": \"m\", \"images\": {}}", "{\"module\": \"m\", \"images\": []}",
                           "{\"module\": \"m\", \"image_inputs\": {}, \"images\": [1]}", "\177ELF"}) {
    ASSERT_TRUE(write_file_atomically(path, text));
    const auto read = module::read_explanation(path);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(english(read.error().message).find(path), std::string::npos) << english(read.error().message);
  }
  EXPECT_FALSE(module::read_explanation(folder->path() + "/none"));
}

}  // namespace
}  // namespace scankit::compile
