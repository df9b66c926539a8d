// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/lock.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "envspec/export/export.h"

namespace scankit::envspec {
namespace {

EnvironmentLock example() {
  EnvironmentLock lock;
  lock.tool_version = "0.1.0";
  lock.machine = {"x86_64",     "glibc", "2.36",    "580.159.04", "13.0",
                  "580.159.04", "",      {"sm_90"}, "",           {"gcc 12.2.0"}};
  lock.python = {"3.11.7", "cpython", "cpython-311-x86_64-linux-gnu", false};
  lock.torch = LockedTorch{"2.11.0+cu130", "13.0", "", "70d9", "new", "17", false};
  lock.distributions = {
      {"einops", "0.8.2", "pip", "index",
       LockedArtifact{"einops-0.8.2-py3-none-any.whl", std::string(64, 'a'), 65638, ""}, ""},
      {"mine", "1", "pip", "editable", {}, "it is installed in place"}};
  lock.libraries = {
      {"a/b.so", "mine", std::string(64, 'b'), 10, "elf", "x86_64", "", "12ab", {"libc.so.6"}, "2.17"}};
  lock.modules = {{"b", "mine", "a/b.so", "{\"module\":\"b\",\"images\":[]}"}};
  return lock;
}

std::string edited(const std::string& from, const std::string& to) {
  std::string text = lock_to_json(example());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string resealed(nlohmann::json json) {
  json.erase("integrity");
  nlohmann::json hashes;
  for (const auto& [name, part] : json.items()) hashes[name] = sha256_hex(part.dump());
  json["integrity"] = hashes;
  return json.dump();
}

// Somebody who edits a part and knows how to make its hash anew.
std::string forged(const std::function<void(nlohmann::json&)>& change) {
  auto json = nlohmann::json::parse(lock_to_json(example()));
  change(json);
  return resealed(std::move(json));
}

std::string message(const std::string& text) {
  const auto lock = lock_from_json(text, "L");
  return lock ? "" : english(lock.error().message);
}

TEST(Lock, ComesBackAsItWas) {
  const std::string text = lock_to_json(example());
  const auto lock = lock_from_json(text, "L");
  ASSERT_TRUE(lock) << english(lock.error().message);
  EXPECT_EQ(lock_to_json(*lock), text);
  EXPECT_EQ(lock->distributions[0].artifact->size, 65638U);
  EXPECT_EQ(lock->libraries[0].needed[0], "libc.so.6");
  EXPECT_FALSE(lock->distributions[1].artifact);
}

TEST(Lock, KeepsHowAPackageWasBuilt) {
  EnvironmentLock lock = example();
  LockedBuild build{
      .sdist = LockedArtifact{"einops-0.8.2.tar.gz", std::string(64, 'c'), 9, "https://h/e.tar.gz"},
      .sdist_from = "pip_cache",
      .why_no_wheel = "nobody kept it"};
  build.toolchain.compilers = {"GCC: (Debian 12.2.0-14) 12.2.0"};
  build.toolchain.nvcc = {"13.0.88"};
  build.toolchain.code = {"sm_90"};
  build.files = {{"einops/__init__.py", std::string(64, 'd')}};
  lock.distributions[0].build = build;
  const std::string text = lock_to_json(lock);
  const auto again = lock_from_json(text, "L");
  ASSERT_TRUE(again) << english(again.error().message);
  EXPECT_EQ(lock_to_json(*again), text);
  ASSERT_TRUE(again->distributions[0].build);
  EXPECT_EQ(again->distributions[0].build->toolchain.nvcc, std::vector<std::string>{"13.0.88"});
  EXPECT_EQ(source_archive(again->distributions[0])->file, "einops-0.8.2.tar.gz");
  EXPECT_FALSE(again->distributions[1].build) << "nobody built it";
  EXPECT_EQ(source_archive(again->distributions[1]), nullptr);
}

TEST(Lock, RefusesABuildThatNamesWhatItMustNot) {
  const std::pair<const char*, const char*> bad[] = {{"/sdist/file", "../x.tar.gz"},
                                                     {"/sdist/url", "https://h/x'; id"},
                                                     {"/sdist/sha256", "12"},
                                                     {"/toolchain/code/0", "sm_90; id"},
                                                     {"/toolchain/nvcc/0", "13.0\n"},
                                                     {"/toolchain/generator", "a\nb"},
                                                     {"/recorded/switches/LD_PRELOAD", "x.so"},
                                                     {"/recorded/switches/FORCE_CUDA", "$(id)"}};
  EnvironmentLock lock = example();
  lock.distributions[0].build = LockedBuild{.sdist = LockedArtifact{"x.tar.gz", std::string(64, 'c'), 9, ""}};
  lock.distributions[0].build->toolchain.code = {"sm_90"};
  lock.distributions[0].build->recorded = RecordedBuild{"2.11.0", "pip", {{"FORCE_CUDA", "1"}}};
  lock.distributions[0].build->files = {{"a.py", std::string(64, 'd')}};
  const std::string good = lock_to_json(lock);
  const auto with = [&](const std::string& at, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(good);
    json["distributions"][0]["build"][nlohmann::json::json_pointer(at)] = value;
    return message(resealed(json));
  };
  for (const auto& [at, value] : bad) EXPECT_NE(with(at, value).find("build"), std::string::npos) << at;
  EXPECT_NE(with("/files", {{"../../etc/passwd", std::string(64, 'd')}}).find("build: files"),
            std::string::npos);
}

TEST(Export, CondaLeavesOutWhatTheOthersDo) {
  EnvironmentLock lock = example();
  lock.distributions.push_back({"lost", "2", "pip", "index", {}, "the index was not queried"});
  lock.distributions.push_back({"zlib", "1", "conda", "conda", {}, "conda installed it"});
  const Exported conda = export_conda(lock);
  EXPECT_EQ(conda.left_out, (std::vector<std::string>{"mine==1: it is installed in place",
                                                      "lost==2: the index was not queried"}));
  EXPECT_EQ(conda.text.find("- lost=="), std::string::npos) << conda.text;
  EXPECT_NE(conda.text.find("- 'einops==0.8.2 --hash=sha256:" + std::string(64, 'a') + "'"),
            std::string::npos)
      << conda.text;
  lock.distributions.pop_back();
  EXPECT_EQ(export_requirements(lock).left_out, conda.left_out);
}

// conda's packages by their hash, pip's by a requirements.txt that leaves them out.
TEST(Export, PixiTakesOnlyWhatHasAHash) {
  EnvironmentLock lock = example();
  lock.distributions = {lock.distributions[0], {"zlib", "1", "conda", "conda", {}, "conda installed it"}};
  const std::string sha256(64, 'c'), md5(32, 'd');
  lock.conda_packages = {{"lost", "3", "h0", "https://h.example/own", "linux-64", "", "", ""},
                         {"python", "3.11.7", "0_cpython", "conda-forge", "linux-64", "", "", md5},
                         {"ruamel.yaml", "1.0", "py_0", "conda-forge", "noarch", "", sha256, md5},
                         {"einops", "0.8.2", "pypi_0", "pypi", "", "", "", ""}};
  const auto pixi = export_pixi(lock);
  ASSERT_TRUE(pixi);
  EXPECT_EQ(pixi->left_out, std::vector<std::string>{"lost==3: conda-meta has no hash of it"});
  const std::string expected =
      "channels = [\"https://h.example/own\", \"conda-forge\"]\nplatforms = [\"linux-64\"]\n\n"
      "[dependencies]\n"
      "python = { version = \"==3.11.7\", build = \"0_cpython\", channel = \"conda-forge\", md5 = \"" +
      md5 +
      "\" }\n\"ruamel.yaml\" = { version = \"==1.0\", build = \"py_0\", channel = \"conda-forge\", sha256 "
      "= \"" +
      sha256 +
      "\" }\npip = \"*\"\n\n[system-requirements]\nlibc = { family = \"glibc\", version = \"2.36\" }\n";
  EXPECT_NE(pixi->text.find(expected), std::string::npos) << pixi->text;
  ASSERT_EQ(pixi->next_to.size(), 1U);
  EXPECT_NE(pixi->next_to[0].text.find("einops==0.8.2 \\\n    --hash=sha256:"), std::string::npos);
  EXPECT_EQ(pixi->next_to[0].text.find("zlib"), std::string::npos) << pixi->next_to[0].text;
  lock.machine.architecture = "sparc64";
  EXPECT_FALSE(export_pixi(lock));
}

TEST(Export, KnowsWhatItHasWritten) {
  for (const char* format :
       {"requirements", "pylock", "conda", "pixi", "dockerfile", "apptainer", "devcontainer"}) {
    const auto exported = export_lock(example(), format);
    ASSERT_TRUE(exported) << format;
    EXPECT_TRUE(is_an_export(exported->text)) << exported->text;
    EXPECT_EQ(exported->left_out.at(0), "mine==1: it is installed in place") << format;
    for (const FileNextTo& one : exported->next_to) EXPECT_TRUE(is_an_export(one.text)) << one.file_name;
  }
  EXPECT_FALSE(is_an_export(""));
  EXPECT_FALSE(is_an_export("einops==0.8.2\n# Written by `scankit env export`\n"));
  EXPECT_FALSE(is_an_export("# Not written by `scankit env export`\n"));
}

TEST(Export, ASourceArchiveIsNoWheelOfAPylock) {
  EnvironmentLock lock = example();
  lock.distributions = {{"einops", "0.8.2", "pip", "index",
                         LockedArtifact{"einops-0.8.2.tar.gz", std::string(64, 'a'), 0,
                                        "https://h.example/einops-0.8.2.tar.gz"},
                         ""}};
  const std::string text = export_pylock(lock).text;
  EXPECT_NE(text.find("\nsdist = {name = \"einops-0.8.2.tar.gz\""), std::string::npos) << text;
  EXPECT_EQ(text.find("wheels ="), std::string::npos) << text;
}

TEST(Lock, NamesThePartThatWasEdited) {
  EXPECT_EQ(message(edited("0.8.2\"", "0.8.3\"")), "L was edited after scankit wrote it: distributions");
  EXPECT_EQ(message(edited("\"3.11.7\"", "\"3.11.8\"")), "L was edited after scankit wrote it: python");
  EXPECT_EQ(message(edited("\"machine\": {", "\"extra\": 1, \"machine\": {")),
            "L was edited after scankit wrote it: extra");
  EXPECT_EQ(message(edited("\"torch\": {", "\"torch\": null, \"torch2\": {")),
            "L was edited after scankit wrote it: torch, torch2");
}

TEST(Lock, MayBeIndentedOtherwise) {
  const auto json = nlohmann::json::parse(lock_to_json(example()));
  EXPECT_TRUE(lock_from_json(json.dump(), "L"));
}

TEST(Lock, RefusesAnotherMajorSchema) {
  const auto newer = lock_from_json(edited("\"1.1\"", "\"2.0\""), "L");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Errc::Unsupported);
  EXPECT_EQ(english(newer.error().message), "L has schema 2.0, and this scankit reads 1.x");
  EXPECT_TRUE(lock_from_json(forged([](auto& json) {
                               json["schema"] = "1.7";
                               json["later"] = {1, 2};
                             }),
                             "L"));
  EXPECT_NE(message(edited("\"1.1\"", "\"\\u001b[31m\"")).find("\\x1b"), std::string::npos);
}

TEST(Lock, EveryTruncationIsAnError) {
  const std::string text = lock_to_json(example());
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    ASSERT_NE(message(text.substr(0, length)), "") << length;
}

TEST(Lock, EndsNestingWithoutEnd) {
  const std::string deep = std::string(1 << 20, '[');
  EXPECT_NE(message(deep).find("32 levels"), std::string::npos);
  EXPECT_NE(message("{\"schema\":\"1.0\",\"integrity\":{},\"a\":" + deep).find("32 levels"),
            std::string::npos);
}

TEST(Lock, NamesThePartOfAWrongType) {
  const std::string why = message(forged([](auto& json) { json["python"]["version"] = 3; }));
  EXPECT_NE(why.find("its part \"python\""), std::string::npos) << why;
  EXPECT_NE(message(forged([](auto& json) { json.erase("libraries"); })).find("its part \"libraries\""),
            std::string::npos);
}

TEST(Lock, TakesNoTextThatCouldLeaveItsPlace) {
  const std::vector<std::pair<std::string, std::string>> hostile = {
      {"/distributions/0/name", "einops\nevil"},
      {"/distributions/0/version", "1 --hash=sha256:00"},
      {"/distributions/0/version", "1\"\nRUN evil"},
      {"/distributions/0/artifact/file", "../../x.whl"},
      {"/distributions/0/artifact/file", "x\".whl"},
      {"/distributions/0/artifact/sha256", "A"},
      {"/distributions/0/artifact/url", "https://u:p@h/x"},
      {"/distributions/0/artifact/url", "https://h/x y"},
      {"/distributions/0/artifact/url", "ftp://h/x"},
      {"/distributions/1/why_no_artifact", "x\n-r /etc/passwd"},
      {"/libraries/0/path", "/etc/passwd"},
      {"/libraries/0/path", "a/../../b"},
      {"/python/version", "3.11\nRUN evil"},
      {"/modules/0/path", "../x"},
  };
  for (const auto& [place, value] : hostile) {
    const std::string why = message(
        forged([&at = place, &text = value](auto& json) { json[nlohmann::json::json_pointer(at)] = text; }));
    EXPECT_NE(why.find("which is not possible"), std::string::npos) << place << ": " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

// What each form of a lock's values takes, and what it refuses.
TEST(Lock, KnowsTheFormOfEachValue) {
  struct Form {
    bool (*takes)(std::string_view);
    std::vector<std::string> good, bad;
  };
  const std::vector<Form> forms = {
      {is_sha256,
       {std::string(64, 'f')},
       {"", std::string(63, 'f'), std::string(65, 'f'), std::string(64, 'F')}},
      {is_locked_name, {"a", "mamba-ssm", "a2"}, {"", "-a", "a-", "Einops", "a_b", "a.b"}},
      {is_locked_version,
       {"2.11.0+cu130", "1!2", std::string(4096, '1')},
       {"", "-1", "1 2", std::string(4097, '1')}},
      {is_file_name, {"x-1.whl", "X_y+z!"}, {"", ".x", "-x", "a/b", "x y"}},
      {is_inner_path,
       {"a", "a/b.so", "..a/b..", std::string(4096, 'a')},
       {"", "/a", "a/", "a//b", ".", "./a", "a/.", "..", "a/../b", "a\nb", "a\177b", std::string(4097, 'a')}},
      {is_plain_url,
       {"https://h/x?y=[z]", "http://h", "file:///x", "https://h/a@b"},
       {"", "h/x", "ftp://h/x", "https://u@h/x", "https://@h/x", "https://h/x y", "https://h/'x",
        "https://h/x#y", "https://h/(x", "https://h/x)", "https://h/*", "https://h/x;y", "https://h/x&y",
        "https://h/x!"}}};
  for (std::size_t i = 0; i < forms.size(); ++i) {
    for (const std::string& text : forms[i].good) EXPECT_TRUE(forms[i].takes(text)) << i << ": " << text;
    for (const std::string& text : forms[i].bad) EXPECT_FALSE(forms[i].takes(text)) << i << ": " << text;
  }
}

TEST(Lock, TakesAnEmptyTextWhereAFactIsUnknown) {
  EnvironmentLock lock = example();
  EXPECT_EQ(bad_value(lock), "");
  CondaPackage conda{"zlib", "1.2", "h1_0", "conda-forge", "linux-64", "https://h/zlib.conda", "", ""};
  lock.conda_packages = {conda};
  EXPECT_EQ(bad_value(lock), "");
  conda.sha256 = std::string(64, 'c'), conda.md5 = "d41d8cd9";
  conda.channel = conda.subdir = conda.url = "";
  lock.conda_packages = {conda};
  lock.torch.reset();
  lock.python.soabi = "";
  EXPECT_EQ(bad_value(lock), "");
  lock.spec_sha256 = std::string(64, 'e');
  lock.distributions[0].artifact->url = "https://h/x";
  EXPECT_EQ(bad_value(lock), "");
}

TEST(Lock, NamesTheFirstValueThatIsNotPossible) {
  const std::vector<std::pair<std::string, std::function<void(EnvironmentLock&)>>> cases = {
      {"spec_sha256", [](auto& lock) { lock.spec_sha256 = "a"; }},
      {"tool_version", [](auto& lock) { lock.tool_version = std::string(4097, 'a'); }},
      {"machine", [](auto& lock) { lock.machine.gpus[0] = "sm_90\x7f"; }},
      {"python", [](auto& lock) { lock.python.soabi = "a b"; }},
      {"torch", [](auto& lock) { lock.torch->git = "\n"; }},
      {"conda_packages: channel", [](auto& lock) { lock.conda_packages[0].channel = "a b"; }},
      {"conda_packages: url", [](auto& lock) { lock.conda_packages[0].url = "ftp://h"; }},
      {"conda_packages: sha256", [](auto& lock) { lock.conda_packages[0].sha256 = "a"; }},
      {"conda_packages: md5", [](auto& lock) { lock.conda_packages[0].md5 = "a-b"; }},
      {"libraries", [](auto& lock) { lock.libraries[0].needed[0] = "\n"; }},
      {"modules: module", [](auto& lock) { lock.modules[0].module = "a/b"; }}};
  for (const auto& [field, spoil] : cases) {
    EnvironmentLock lock = example();
    lock.conda_packages = {{"zlib", "1.2", "h1_0"}};
    spoil(lock);
    EXPECT_TRUE(bad_value(lock).starts_with(field + " is ")) << field << ": " << bad_value(lock);
  }
}

TEST(Lock, ShowsAForeignValueInOneLine) {
  EXPECT_EQ(shown_value(""), "\"\"");
  EXPECT_EQ(shown_value("a\nb\x1b[0m"), "a b\\x1b[0m");
  EXPECT_EQ(shown_value("\u00fc"), "\u00fc");
  EXPECT_EQ(shown_value(std::string(120, 'a')), std::string(120, 'a'));
  EXPECT_EQ(shown_value(std::string(121, 'a')), std::string(120, 'a') + "...");
}

TEST(Lock, TakesNoNameTwice) {
  EXPECT_NE(message(forged([](auto& json) {
              json["distributions"].push_back(json["distributions"][0]);
            })).find("exists twice"),
            std::string::npos);
}

}  // namespace
}  // namespace scankit::envspec
