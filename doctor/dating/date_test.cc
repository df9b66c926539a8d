// SPDX-License-Identifier: Apache-2.0
#include "doctor/dating/date.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace scankit {
namespace {

constexpr const char* kModern = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";

// Releases 2.4 2.5 2.6 (old strings) 2.7 2.8 (new): bits 0 to 4.
Atlas five() {
  const std::string modern = std::string("_ZN2at5namedE") + kModern;
  std::vector<AtlasName> names = {{"THPVariableClass", {31, 0}}, {"_ZN2at10always_newEv", {31, 0}},
                                  {"_ZN2at4goneEv", {7, 0}},     {"_ZN2at4lastEv", {16, 0}},
                                  {"_ZN2at5firstEv", {1, 0}},    {modern, {24, 7}},
                                  {"_ZN2at5namedESs", {7, 24}},  {"_ZN2at6newishEv", {28, 0}},
                                  {"_ZN2at7oldnameESs", {3, 0}}, {"aoti_torch_call", {30, 0}}};
  std::ranges::sort(names, {}, &AtlasName::name);
  return Atlas::parse(write_atlas({{"2.4", false, 4, " cp39 cp310 "},
                                   {"2.5", false, 4, " cp39 cp310 cp313 "},
                                   {"2.6", false, 4, " cp310 cp313 "},
                                   {"2.7", true, 4, " cp310 cp313 "},
                                   {"2.8", true, 11, " cp310 cp313 "}},
                                  names))
      .value();
}

Dating date(const std::vector<std::string>& names, const std::string& abi = "neutral",
            const std::string& tag = "", const std::string& pybind = "", const std::string& weak = "") {
  DatingInput input;
  input.file = "x.so";
  for (const std::string& name : names) input.undefined.push_back({.name = name, .weak = name == weak});
  input.string_abi = abi;
  input.tag = tag;
  input.pybind_internals = pybind;
  return date_file(five(), input);
}

TEST(Date, IntersectsWhatTheNamesAllow) {
  const Dating dating = date({"_ZN2at4goneEv", "_ZN2at6newishEv", "printf"});
  EXPECT_EQ(dating_words(dating), "2.6");
  EXPECT_EQ(dating.releases, std::vector<std::string>{"2.6"});
  EXPECT_EQ(dating.why_not_narrower, "");
  EXPECT_EQ(dating.torch_names, 2u);
  ASSERT_EQ(dating.evidence.size(), 2u);
  EXPECT_EQ(dating.evidence[0], "at::newish(): exported by torch 2.6 or newer");
  EXPECT_EQ(dating.evidence[1], "at::gone(): exported by torch 2.6 or older");
}

TEST(Date, EndsThatTouchTheTableAreOpen) {
  const Dating newer = date({"_ZN2at6newishEv"});
  EXPECT_EQ(dating_words(newer), "2.6 or newer");
  EXPECT_FALSE(newer.torch_max);
  EXPECT_NE(newer.why_not_narrower, "");
  const Dating older = date({"_ZN2at4goneEv"});
  EXPECT_EQ(dating_words(older), "2.6 or older");
  EXPECT_FALSE(older.torch_min);
  // The only newest release is no upper end either: what comes next may export it too.
  EXPECT_EQ(dating_words(date({"_ZN2at4lastEv"})), "2.8 or newer");
}

TEST(Date, WithoutTorchNamesItIsNotDated) {
  const Dating dating = date({"printf", "_ZNSt6vectorIiE4pushEv"});
  EXPECT_FALSE(dating.dated);
  EXPECT_EQ(dating_words(dating), "");
  EXPECT_EQ(dating.why_not_narrower, "the file uses no torch symbol");
}

TEST(Date, AThinModuleSaysWhy) {
  const Dating dating = date({"_ZN2at10always_newEv"});
  EXPECT_FALSE(dating.dated);
  EXPECT_EQ(dating.releases.size(), 5u);
  EXPECT_EQ(dating.why_not_narrower,
            "it needs only 1 name of torch, and each of these releases exports them");
}

TEST(Date, WeakNamesBindNobody) {
  EXPECT_EQ(dating_words(date({"_ZN2at4goneEv", "_ZN2at6newishEv"}, "neutral", "", "", "_ZN2at6newishEv")),
            "2.6 or older");
}

TEST(Date, UnknownNamesAreToldAndDoNotNarrow) {
  const Dating dating = date({"_ZN2at4goneEv", "_ZN2at8sidewaysEv"});
  EXPECT_EQ(dating_words(dating), "2.6 or older");
  EXPECT_EQ(dating.unknown_names, 1u);
  EXPECT_NE(dating.evidence.back().find("at::sideways()"), std::string::npos);
  const Dating strange = date({"_ZN2at8sidewaysEv"});
  EXPECT_FALSE(strange.dated);
  EXPECT_NE(strange.why_not_narrower.find("no known release exports any"), std::string::npos);
}

TEST(Date, AnEmptyIntersectionIsABracket) {
  const Dating dating = date({"_ZN2at5firstEv", "_ZN2at4lastEv"});
  EXPECT_TRUE(dating.between_known_releases);
  EXPECT_TRUE(dating.releases.empty());
  EXPECT_EQ(dating_words(dating), "between 2.4 and 2.8");
  EXPECT_NE(dating.why_not_narrower.find("nightly"), std::string::npos);
}

TEST(Date, TheStringAbiCutsTheApiAndTheBorderHasBoth) {
  const std::string modern = std::string("_ZN2at5namedE") + kModern;
  EXPECT_EQ(dating_words(date({"_ZN2at5namedESs"}, "old")), "2.6 or older");
  EXPECT_EQ(dating_words(date({modern}, "new")), "2.6 or newer");
  // An old API with new strings: the API is what is told, and that no wheel of the index is like that.
  const Dating conda = date({std::string("_ZN2at7oldnameE") + kModern}, "new");
  EXPECT_EQ(dating_words(conda), "2.5 or older");
  EXPECT_NE(conda.evidence.back().find("another channel"), std::string::npos);
}

TEST(Date, PythonAndPybindNarrow) {
  EXPECT_EQ(dating_words(date({"_ZN2at10always_newEv"}, "neutral", "cpython-39-x86_64-linux-gnu")),
            "2.5 or older");
  EXPECT_EQ(dating_words(date({"_ZN2at10always_newEv"}, "neutral", "abi3")), "");
  EXPECT_EQ(dating_words(date({"_ZN2at10always_newEv"}, "neutral", "cpython-377-x86_64-linux-gnu")), "");
  const std::string v11 = "__pybind11_internals_v11_system__", v5 = "__pybind11_internals_v5_gcc__";
  EXPECT_EQ(dating_words(date({"THPVariableClass"}, "neutral", "", v11)), "2.8 or newer");
  EXPECT_EQ(dating_words(date({"THPVariableClass"}, "neutral", "", v5)), "2.7 or older");
  // Whoever uses none of torch's Python names may have a pybind11 of its own.
  EXPECT_EQ(dating_words(date({"_ZN2at10always_newEv"}, "neutral", "", v11)), "");
}

TEST(Date, StableNamesAloneAreTheStableInterface) {
  const Dating stable = date({"aoti_torch_call"});
  EXPECT_TRUE(stable.stable_abi);
  EXPECT_EQ(dating_words(stable), "2.5 or newer");
  EXPECT_NE(stable.why_not_narrower.find("stable C interface"), std::string::npos);
  EXPECT_FALSE(date({"aoti_torch_call", "_ZN2at4goneEv"}).stable_abi);
}

TEST(Date, FilesBuiltTogetherShareOneAnswer) {
  const Atlas atlas = five();
  const std::vector<Dating> files = {date({"_ZN2at4goneEv"}), date({"_ZN2at6newishEv"}), date({"printf"})};
  EXPECT_EQ(dating_words(date_together(atlas, "x.whl", files)), "2.6");
  const Dating apart = date_together(atlas, "x.whl", {date({"_ZN2at5firstEv"}), date({"_ZN2at4lastEv"})});
  EXPECT_FALSE(apart.dated);
  EXPECT_NE(apart.why_not_narrower.find("different releases"), std::string::npos);
  EXPECT_FALSE(date_together(atlas, "x.whl", {date({"printf"})}).dated);
}

TEST(Date, OneNameAlone) {
  const Atlas atlas = five();
  EXPECT_EQ(exported_by(atlas, "_ZN2at4goneEv"), "2.6 or older");
  EXPECT_EQ(exported_by(atlas, "_ZN2at10always_newEv"), "every known release");
  EXPECT_EQ(exported_by(atlas, "_ZN2at7nothingEv"), "");
}

TEST(Date, WithoutAnAtlasItSaysSo) {
  DatingInput input;
  input.undefined.push_back({.name = "_ZN2at4goneEv"});
  EXPECT_FALSE(date_file(Atlas(), input).dated);
}

}  // namespace
}  // namespace scankit
