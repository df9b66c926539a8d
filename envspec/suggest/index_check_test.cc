// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "envspec/suggest/suggest_test.h"

namespace scankit::envspec {
namespace {

// The answer about the best set of an installer that runs `script`; what it is asked for are $1 and following.
IndexAnswer answer_of_installer(
    installer::Installer::Kind kind, const std::string& script,
    const std::string& machine = "{gpu: sm_90, driver: 580.95.05, glibc: '2.35', python: '3.11'}") {
  SuggestAnswer answer;
  answer.target.request = request_of(YAML::Load(machine));
  SuggestedSet set = best_of(machine);
  answer.suggestion.sets = {set, set};
  IndexCheck check;
  check.installer = {.kind = kind, .program = {"/bin/sh", "-c", script, "installer"}, .why = ""};
  check_index(check, 1, answer);
  if (answer.refused_by_index.empty()) return answer.index.front();
  return {IndexAnswer::State::Refused, answer.refused_by_index.front(), {}};
}

TEST(SuggestIndex, RefusesOnlyByTheResolversOwnSentence) {
  using State = IndexAnswer::State;
  using Kind = installer::Installer::Kind;
  const std::string none = "error: No solution found when resolving dependencies\n  cause: Because ";
  const std::string pip_none = "ERROR: No matching distribution found for torch";
  const struct {
    Kind kind;
    std::string out, err;
    State state;
    const char* why;
  } cases[] = {
      {Kind::Uv, "", none + "there is no version of torch==2.10.0 and you require it", State::Refused,
       "no version of"},
      {Kind::Uv, "", none + "torch was not found in the package registry", State::Refused, "not found"},
      {Kind::Uv, "",
       none + "torch was not found in the package registry\nhint: An index returned a 403 Forbidden error.",
       State::NoAnswer, "credentials"},
      {Kind::Uv, "",
       none + "a has no usable wheels\nhint: Wheels are required for `a` because building from source is "
              "disabled",
       State::NoAnswer, "only a source archive"},
      {Kind::Uv, "", "error: failed to write: No space left on device", State::NoAnswer,
       "No space left on device"},
      {Kind::Uv, "", "error: unexpected argument --only-binary", State::NoAnswer, "unexpected argument"},
      {Kind::Uv, "", "error: Request failed after 3 retries", State::NoAnswer, "could not be reached"},
      {Kind::Pip, "", pip_none, State::Refused, "lists no release"},
      {Kind::Pip, "Could not fetch URL x: 404 Client Error: Not Found - skipping", pip_none, State::Refused,
       "lists no"},
      {Kind::Pip, "Could not fetch URL x: 403 Client Error: Forbidden - skipping", pip_none, State::NoAnswer,
       "credentials"},
      {Kind::Pip, "Could not fetch URL x: 502 Server Error: Bad Gateway - skipping", pip_none,
       State::NoAnswer, "could not be reached"},
      {Kind::Pip, "", "ERROR: Exception: Traceback", State::NoAnswer, "Traceback"}};
  for (const auto& one : cases) {
    const IndexAnswer said = answer_of_installer(
        one.kind, "printf '%s' '" + one.out + "'; printf '%s' '" + one.err + "' >&2; exit 1");
    EXPECT_EQ(said.state, one.state) << one.out << one.err;
    EXPECT_NE(english(said.why).find(one.why), std::string::npos) << english(said.why);
  }
}

// uv has names for some releases of glibc only, and pip takes each tag by itself.
TEST(SuggestIndex, AsksForThePlatformOfTheTarget) {
  const auto asked = [](installer::Installer::Kind kind, const char* machine, const char* glibc) {
    const std::string target = std::string("{machine: ") + machine +
                               ", gpu: sm_90, driver: 580.95.05, glibc: '" + glibc + "', python: '3.12'}";
    return english(
        answer_of_installer(kind, "echo $* | sed 's/.*--python-version//' >&2; exit 1", target).why);
  };
  using Kind = installer::Installer::Kind;
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(asked(Kind::Uv, "aarch64", "2.39"), "--python-platform aarch64-manylinux_2_39 ");
  has(asked(Kind::Uv, "aarch64", "2.28"), "--python-platform aarch64-manylinux_2_28 ");
  has(asked(Kind::Uv, "x86_64", "2.30"), "--python-platform x86_64-manylinux_2_28 ");
  has(asked(Kind::Uv, "x86_64", "2.41"), "--python-platform x86_64-manylinux_2_40 ");
  // Also for this processor: its own tags are those of this machine's glibc.
  for (const std::string machine : {"x86_64", "aarch64"}) {
    const std::string pip = asked(Kind::Pip, machine.c_str(), "2.29");
    has(pip, " --platform manylinux_2_29_" + machine + " --platform manylinux_2_28_" + machine);
    EXPECT_EQ(pip.find("manylinux_2_30"), std::string::npos) << pip;
    has(english(answer_of_installer(Kind::Pip,
                                    "echo $* | sed 's/.*manylinux_2_17_/manylinux_2_17_/' >&2; exit 1",
                                    "{machine: " + machine +
                                        ", gpu: sm_90, driver: 580.95.05, glibc: '2.29', python: '3.12'}")
                    .why),
        "manylinux_2_17_" + machine + " --platform manylinux2014_" + machine);
  }
}

// Where the glibc is not known, it is that of the set: what pip lists for one is no answer for another.
TEST(SuggestIndex, AsksOnceForEachGlibcThatASetNeeds) {
  const TemporaryDirectory folder = TemporaryDirectory::create("scankit-index-test").value();
  SuggestAnswer answer;
  const std::string machine = "{gpu: sm_90, driver: 580.95.05, python: '3.11'}";
  answer.target.request = request_of(YAML::Load(machine));
  SuggestedSet set = best_of(machine), later = set;
  later.needs_glibc = "2.34";
  set.needs_glibc = "2.28";
  answer.suggestion.sets = {set, later, set};
  IndexCheck check;
  check.installer = {
      .kind = installer::Installer::Kind::Pip,
      .program = {"/bin/sh", "-c",
                  "echo \" $* \" >> " + folder.path() + "/asked; echo Available versions: 0.1", "installer"},
      .why = ""};
  check_index(check, 3, answer);
  const std::string asked = read_whole_file(folder.path() + "/asked", 1u << 20).value();
  std::size_t lines = 0, of_later = 0;
  for (const std::string_view line : lines_of(asked)) {
    if (line.find(" torch ") == std::string_view::npos) continue;
    ++lines;
    of_later += line.find("manylinux_2_34_") != std::string_view::npos ? 1 : 0;
  }
  EXPECT_EQ(lines, 2u) << asked;
  EXPECT_EQ(of_later, 1u) << asked;
}

// A version that nobody has must not become a million words.
TEST(SuggestIndex, BoundsTheGlibc) {
  for (const std::string machine : {"x86_64", "aarch64"})
    for (const char* glibc : {"2.100000", "2.0", "3.1", "1.9"}) {
      const std::string target = "{machine: " + machine + ", gpu: sm_90, driver: 580.95.05, python: '3.11'}";
      SuggestAnswer answer;
      answer.target.request = request_of(YAML::Load(target));
      answer.suggestion.sets = {best_of(target)};
      answer.target.request.glibc = glibc;
      IndexCheck check;
      check.installer = {
          .kind = installer::Installer::Kind::Pip,
          .program = {"/bin/sh", "-c", "[ $# -lt 300 ] && echo ERROR: few >&2; exit 1", "installer"},
          .why = ""};
      check_index(check, 1, answer);
      ASSERT_EQ(answer.index.size(), 1u) << glibc;
      EXPECT_NE(english(answer.index.front().why).find("few"), std::string::npos)
          << machine << " " << glibc << ": " << english(answer.index.front().why);
    }
}

// That it could not be asked for does not mean that the index has none.
TEST(SuggestIndex, KnowsAFailureFromAMissingSourceArchive) {
  const auto answer = [](const std::string& said) {
    return answer_of_installer(installer::Installer::Kind::Uv,
                               "[ $2 = compile ] && exit 0; printf '%s' '" + said + "' >&2; exit 1");
  };
  EXPECT_EQ(answer("error: No solution found\n  cause: Because there is no version of it").state,
            IndexAnswer::State::Refused);
  const IndexAnswer failed = answer("error: No space left on device");
  EXPECT_EQ(failed.state, IndexAnswer::State::NoAnswer);
  EXPECT_NE(english(failed.why).find("No space left"), std::string::npos) << english(failed.why);
  EXPECT_EQ(answer("Computed: sha256:" + std::string(64, 'a')).state, IndexAnswer::State::Confirmed);
}

// A pin takes a release that was withdrawn; the installer warns of it, and so does the answer.
TEST(SuggestIndex, TellsOfAYankedRelease) {
  const IndexAnswer answer = answer_of_installer(
      installer::Installer::Kind::Uv,
      "[ $2 = compile ] && echo 'warning: `tilelang==0.1.8` is yanked (reason: broken)' >&2 && exit 0; "
      "echo Computed: sha256:" +
          std::string(64, 'a') + " >&2; exit 1");
  EXPECT_EQ(answer.state, IndexAnswer::State::Confirmed);
  ASSERT_EQ(answer.notes.size(), 1u);
  EXPECT_NE(english(answer.notes.front()).find("`tilelang==0.1.8` is yanked (reason: broken)"),
            std::string::npos);
}

}  // namespace
}  // namespace scankit::envspec
