// SPDX-License-Identifier: Apache-2.0
#include "doctor/torch_abi/infer_release.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace scankit::torch_abi {
namespace {

constexpr const char* kModern = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";

// Releases 2.4 2.5 2.6 (old strings) 2.7 2.8 (new): bits 0 to 4.
SymbolIndex five() {
  const std::string modern = std::string("_ZN2at5namedE") + kModern;
  std::vector<IndexedName> names = {{"THPVariableClass", {31, 0}},
                                    {"_ZN2at10always_newEv", {31, 0}},
                                    {"_ZN2at4goneEv", {7, 0}},
                                    {"_ZN2at4lastEv", {16, 0}},
                                    {"_ZN2at5firstEv", {1, 0}},
                                    {modern, {24, 7}},
                                    {"_ZN2at5namedESs", {7, 24}},
                                    {"_ZN2at6newishEv", {28, 0}},
                                    {"_ZN2at7oldnameESs", {3, 0}},
                                    {"aoti_torch_call", {30, 0}},
                                    {"_ZN2at5twiceEv", {13, 0}},
                                    {std::string("_ZN2at4lateE") + kModern, {24, 0}},
                                    {"_ZN2at6taggedB5cxx11Ev", {24, 0}},
                                    {"_ZN2at5listyENSt7__cxx114listIiSaIiEEE", {24, 0}},
                                    {"_ZN2at7oldlistESt4listIiSaIiEE", {7, 0}}};
  std::ranges::sort(names, {}, &IndexedName::name);
  return SymbolIndex::parse(write_symbol_index({{"2.4", false, 4, " cp39 cp310 "},
                                                {"2.5", false, 4, " cp39 cp310 cp313 "},
                                                {"2.6", false, 4, " cp310 cp313 "},
                                                {"2.7", true, 4, " cp310 cp313 cp314 "},
                                                {"2.8", true, 11, " cp310 cp313 cp314 "}},
                                               names))
      .value();
}

BuiltFor date(const std::vector<std::string>& names, const std::string& abi = "neutral",
              const std::string& tag = "", const std::string& pybind = "", const std::string& weak = "",
              const std::string& compilers = "") {
  BuiltForInput input;
  input.file = "x.so";
  for (const std::string& name : names) input.undefined.push_back({.name = name, .weak = name == weak});
  input.string_abi = abi;
  input.tag = tag;
  input.pybind_internals = pybind;
  input.compilers = compilers;
  return date_file(five(), input);
}

TEST(Date, IntersectsWhatTheNamesAllow) {
  const BuiltFor built_for = date({"_ZN2at4goneEv", "_ZN2at6newishEv", "printf"});
  EXPECT_EQ(built_for_words(built_for), "2.6");
  EXPECT_EQ(built_for.releases, std::vector<std::string>{"2.6"});
  EXPECT_EQ(built_for.why_not_narrower.english(), "");
  EXPECT_EQ(built_for.torch_names, 2u);
  ASSERT_EQ(built_for.evidence.size(), 2u);
  EXPECT_EQ(english(built_for.evidence[0]), "at::newish(): exported by torch 2.6 or newer");
  EXPECT_EQ(english(built_for.evidence[1]), "at::gone(): exported by torch 2.6 or older");
}

TEST(Date, EndsThatTouchTheTableAreOpen) {
  const BuiltFor newer = date({"_ZN2at6newishEv"});
  EXPECT_EQ(built_for_words(newer), "2.6 or newer");
  EXPECT_FALSE(newer.torch_max);
  EXPECT_NE(newer.why_not_narrower.english(), "");
  const BuiltFor older = date({"_ZN2at4goneEv"});
  EXPECT_EQ(built_for_words(older), "2.6 or older");
  EXPECT_FALSE(older.torch_min);
  // The only newest release is no upper end either: what comes next may export it too.
  EXPECT_EQ(built_for_words(date({"_ZN2at4lastEv"})), "2.8 or newer");
}

TEST(Date, WithoutTorchNamesItIsNotDated) {
  const BuiltFor built_for = date({"printf", "_ZNSt6vectorIiE4pushEv"});
  EXPECT_FALSE(built_for.dated);
  EXPECT_EQ(built_for_words(built_for), "");
  EXPECT_EQ(built_for.why_not_narrower.english(), "the file uses no torch symbol");
}

TEST(Date, AThinModuleSaysWhy) {
  const BuiltFor built_for = date({"_ZN2at10always_newEv"});
  EXPECT_FALSE(built_for.dated);
  EXPECT_EQ(built_for.releases.size(), 5u);
  EXPECT_EQ(built_for.why_not_narrower.english(),
            "it needs only 1 symbol of torch, which each of these releases exports");
}

TEST(Date, WeakNamesBindNobody) {
  EXPECT_EQ(built_for_words(date({"_ZN2at4goneEv", "_ZN2at6newishEv"}, "neutral", "", "", "_ZN2at6newishEv")),
            "2.6 or older");
}

TEST(Date, UnknownNamesAreToldAndDoNotNarrow) {
  const BuiltFor built_for = date({"_ZN2at4goneEv", "_ZN2at8sidewaysEv"});
  EXPECT_EQ(built_for_words(built_for), "2.6 or older");
  EXPECT_EQ(built_for.unknown_names, 1u);
  EXPECT_NE(english(built_for.evidence.back()).find("at::sideways()"), std::string::npos);
  const BuiltFor strange = date({"_ZN2at8sidewaysEv"});
  EXPECT_FALSE(strange.dated);
  EXPECT_NE(strange.why_not_narrower.english().find("no known release exports any"), std::string::npos);
}

TEST(Date, AnEmptyIntersectionIsABracket) {
  const BuiltFor built_for = date({"_ZN2at5firstEv", "_ZN2at4lastEv"});
  EXPECT_TRUE(built_for.between_known_releases);
  EXPECT_TRUE(built_for.releases.empty());
  EXPECT_EQ(built_for_words(built_for), "between 2.4 and 2.8");
  EXPECT_NE(built_for.why_not_narrower.english().find("nightly"), std::string::npos);
}

// As torch-xla 2.8.0, made for a nightly: one name left with 2.5, one was away until 2.6.
TEST(Date, ABracketIsSeenFromTheReleaseThatExportsMost) {
  const BuiltFor built_for = date({"_ZN2at7oldnameESs", "_ZN2at5twiceEv", "_ZN2at6newishEv"});
  EXPECT_TRUE(built_for.between_known_releases);
  EXPECT_EQ(built_for_words(built_for), "between 2.5 and 2.6");
  ASSERT_EQ(built_for.evidence.size(), 2u);
  EXPECT_TRUE(english(built_for.evidence[0]).starts_with("at::oldname(")) << built_for.evidence[0];
}

// As a set-up script with -D_GLIBCXX_USE_CXX11_ABI=0 makes them of any torch's headers.
TEST(Date, OldStringsAloneRuleNothingOut) {
  EXPECT_EQ(built_for_words(date({"_ZN2at5namedESs"}, "old")), "");
  const BuiltFor later = date({"_ZN2at6newishEv", "_ZN2at5namedESs"}, "old");
  EXPECT_EQ(built_for_words(later), "2.6 or newer");
  EXPECT_NE(english(later.evidence.back()).find("in the package index that is torch 2.6 or older"),
            std::string::npos);
  EXPECT_EQ(built_for_words(date({"_ZN2at4lastEv", "_ZN2at5namedESs"}, "old")), "2.8 or newer");
}

TEST(Date, OldStringsWithTheMarkOfAnOldTorchEndWithTheIndexsLastRelease) {
  const std::string mark = "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__",
                    own = "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1017__";
  EXPECT_EQ(built_for_words(date({"_ZN2at5namedESs"}, "old", "", mark)), "2.6 or older");
  EXPECT_EQ(built_for_words(date({"_ZN2at6newishEv", "_ZN2at5namedESs"}, "old", "", mark)), "2.6");
  EXPECT_EQ(built_for_words(date({"_ZN2at6newishEv", "_ZN2at5namedESs"}, "old", "", own)), "2.6 or newer");
  EXPECT_EQ(built_for_words(date(
                {"_ZN2at6newishEv", "_ZN2at5namedESs"}, "old", "", "", "",
                "GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-44)\nGCC: (GNU) 9.3.1 20200408 (Red Hat 9.3.1-2)")),
            "2.6");
  EXPECT_EQ(
      built_for_words(date(
          {"_ZN2at6newishEv", "_ZN2at5namedESs"}, "old", "", "", "",
          "GCC: (GNU) 11.2.1 20220127 (Red Hat 11.2.1-9)\nGCC: (GNU) 8.5.0 20210514 (Red Hat 8.5.0-22)")),
      "2.6 or newer");
  // Whether it names a string or not; but a static library alone brings nobody there.
  const std::string el7 = "GCC: (GNU) 9.3.1 20200408 (Red Hat 9.3.1-2)";
  EXPECT_EQ(built_for_words(date({"_ZN2at6newishEv"}, "neutral", "", "", "", el7)), "2.6");
  EXPECT_EQ(built_for_words(
                date({"_ZN2at6newishEv"}, "neutral", "", "", "", el7 + "\nGCC: (Ubuntu 13.3.0) 13.3.0")),
            "2.6 or newer");
  // A torch that somebody made with the old strings of a release that has none: the names stand.
  const BuiltFor strange = date({"_ZN2at4lastEv", "_ZN2at5namedESs"}, "old", "", mark);
  EXPECT_EQ(built_for_words(strange), "2.8 or newer");
  EXPECT_TRUE(std::ranges::any_of(strange.evidence, [](const Message& line) {
    return line.english().find("another channel") != std::string::npos;
  }));
}

// What came after the index changed its strings has no old form in any wheel: the life of the new one counts.
TEST(Date, ANameIsDatedByItsFormInTheOtherStringAbi) {
  EXPECT_EQ(built_for_words(date({"_ZN2at4lateESs"}, "old")), "2.7 or newer");
  EXPECT_EQ(built_for_words(date({"_ZN2at6taggedEv"}, "old")), "2.7 or newer");
  EXPECT_EQ(built_for_words(date({"_ZN2at5listyESt4listIiSaIiEE"}, "old")), "2.7 or newer");
  EXPECT_EQ(built_for_words(date({"_ZN2at7oldlistENSt7__cxx114listIiSaIiEEE"}, "new")), "2.6 or older");
  EXPECT_EQ(date({"_ZN2at6taggedEi"}, "old").unknown_names, 1u);  // another function
}

TEST(Date, NewStringsRuleNothingOut) {
  const std::string modern = std::string("_ZN2at5namedE") + kModern;
  EXPECT_EQ(built_for_words(date({modern}, "new")), "");
  EXPECT_EQ(built_for_words(date({modern, "_ZN2at6newishEv"}, "new")), "2.6 or newer");
  // An old API with new strings, as conda had it: known by the name's twin, and by its demangled form.
  const BuiltFor conda = date({std::string("_ZN2at7oldnameE") + kModern}, "new");
  EXPECT_EQ(built_for_words(conda), "2.5 or older");
  EXPECT_NE(english(conda.evidence.back()).find("conda"), std::string::npos);
  EXPECT_EQ(built_for_words(date({"_ZN2at4goneEv", modern}, "new")), "2.6 or older");
}

TEST(Date, TheFilesPythonNarrows) {
  // One before the index's first, for other channels; and no upper end.
  const BuiltFor built_for = date({"_ZN2at10always_newEv"}, "neutral", "cpython-314-x86_64-linux-gnu");
  EXPECT_EQ(built_for_words(built_for), "2.6 or newer");
  EXPECT_EQ(english(built_for.evidence.back()),
            "torch 2.7 is the first in the package index with wheels for cp314");
  EXPECT_EQ(built_for_words(date({"_ZN2at10always_newEv"}, "neutral", "cpython-39-x86_64-linux-gnu")), "");
  EXPECT_EQ(built_for_words(date({"_ZN2at10always_newEv"}, "neutral", "abi3")), "");
  EXPECT_EQ(built_for_words(date({"_ZN2at10always_newEv"}, "neutral", "cpython-377-x86_64-linux-gnu")), "");
}

// fairseq2n has its own: 2.x long after torch went to 3.
TEST(Date, PybindIsToldAndRulesNothingOut) {
  const std::string v11 = "__pybind11_internals_v11_system__", v5 = "__pybind11_internals_v5_gcc__";
  const BuiltFor later = date({"THPVariableClass"}, "neutral", "", v11);
  EXPECT_EQ(built_for_words(later), "");
  ASSERT_FALSE(later.evidence.empty());
  EXPECT_NE(english(later.evidence.back()).find("torch 2.8 or newer contains a pybind11 with that number,"),
            std::string::npos);
  // Number 5 is what 2.4 to 2.7 have on a later Python.
  EXPECT_NE(english(date({"THPVariableClass"}, "neutral", "", v5).evidence.back()).find("torch 2.7 or older"),
            std::string::npos);
  EXPECT_EQ(built_for_words(date({"_ZN2at6newishEv", "_ZN2at5namedESs"}, "old", "", v11)), "2.6 or newer");
}

TEST(Date, StableNamesAloneAreTheStableInterface) {
  const BuiltFor stable = date({"aoti_torch_call"});
  EXPECT_TRUE(stable.stable_abi);
  EXPECT_EQ(built_for_words(stable), "2.5 or newer");
  EXPECT_NE(stable.why_not_narrower.english().find("stable C interface"), std::string::npos);
  EXPECT_FALSE(date({"aoti_torch_call", "_ZN2at4goneEv"}).stable_abi);
}

TEST(Date, FilesBuiltTogetherShareOneAnswer) {
  const SymbolIndex symbol_index = five();
  const std::vector<BuiltFor> files = {date({"_ZN2at4goneEv"}), date({"_ZN2at6newishEv"}), date({"printf"})};
  EXPECT_EQ(built_for_words(date_together(symbol_index, "x.whl", files)), "2.6");
  const BuiltFor apart =
      date_together(symbol_index, "x.whl", {date({"_ZN2at5firstEv"}), date({"_ZN2at4lastEv"})});
  EXPECT_FALSE(apart.dated);
  EXPECT_NE(apart.why_not_narrower.english().find("different releases"), std::string::npos);
  EXPECT_FALSE(date_together(symbol_index, "x.whl", {date({"printf"})}).dated);
}

TEST(Date, AFileBetweenReleasesPutsItsWheelThere) {
  const SymbolIndex symbol_index = five();
  const BuiltFor strange = date({"_ZN2at5firstEv", "_ZN2at4lastEv"});
  const BuiltFor together = date_together(symbol_index, "x.whl", {date({"_ZN2at4goneEv"}), strange});
  EXPECT_TRUE(together.between_known_releases);
  EXPECT_EQ(built_for_words(together), "between 2.4 and 2.8");
  EXPECT_EQ(together.together, 2u);
  EXPECT_FALSE(together.evidence.empty());
}

TEST(Date, TheBoundsOfAWheelNameTheirFile) {
  const SymbolIndex symbol_index = five();
  BuiltFor lower = date({"_ZN2at6newishEv"}), upper = date({"_ZN2at4goneEv"});
  lower.file = "lower.so";
  lower.glibc_min = "2.17";
  upper.file = "upper.so";
  upper.glibc_min = "2.28";
  const BuiltFor together = date_together(symbol_index, "x.whl", {lower, upper, date({"printf"})});
  ASSERT_EQ(together.evidence.size(), 2u);
  EXPECT_EQ(english(together.evidence[0]), "lower.so: at::newish(): exported by torch 2.6 or newer");
  EXPECT_EQ(english(together.evidence[1]), "upper.so: at::gone(): exported by torch 2.6 or older");
  EXPECT_EQ(together.glibc_min, "2.28");
  EXPECT_EQ(together.together, 2u);
}

TEST(Date, OneNameAlone) {
  const SymbolIndex symbol_index = five();
  EXPECT_EQ(exporters(symbol_index, "_ZN2at4goneEv").as_named, "2.6 or older");
  EXPECT_EQ(exporters(symbol_index, "_ZN2at10always_newEv").as_named, "every known release");
  EXPECT_EQ(exporters(symbol_index, "_ZN2at7nothingEv").as_named, "");
  EXPECT_EQ(exporters(symbol_index, "_ZN2at5namedESs").as_named, "2.6 or older");
  EXPECT_EQ(exporters(symbol_index, "_ZN2at5namedESs").other_strings, "2.7 or newer");
  // No wheel of the index has this one, and yet its old form is known.
  const Exporters conda = exporters(symbol_index, std::string("_ZN2at7oldnameE") + kModern);
  EXPECT_EQ(conda.as_named, "");
  EXPECT_EQ(conda.other_strings, "2.5 or older");
  EXPECT_EQ(exporters(symbol_index, "_ZN2at5twiceEv").as_named, "2.4 or older, 2.6-2.7");
}

TEST(Date, WithoutAnAtlasItSaysSo) {
  BuiltForInput input;
  input.undefined.push_back({.name = "_ZN2at4goneEv"});
  EXPECT_FALSE(date_file(SymbolIndex(), input).dated);
}

}  // namespace
}  // namespace scankit::torch_abi
