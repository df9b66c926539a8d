// SPDX-License-Identifier: Apache-2.0
#include "envspec/create/create.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "envspec/create/conda.h"

namespace scankit::envspec {
namespace {

void put(const std::string& path, const std::string& text, unsigned mode = 0644) {
  ASSERT_TRUE(make_directories(path_dirname(path)));
  ASSERT_TRUE(write_file_atomically(path, text, mode));
}

std::string text_of(const std::string& path) { return read_whole_file(path).value_or("(missing)"); }

class CreateTest : public testing::Test {
 protected:
  CreateTest() : work_(TemporaryDirectory::create("scankit-create-test").value()) {}
  std::string at(const std::string& inner) const { return path_join(work_.path(), inner); }

  const TemporaryDirectory work_;
};

TEST_F(CreateTest, WhatInstallersWriteIsMoved) {
  const std::string made = at("aside.x7/it's"), moved = at("it's"),
                    site = made + "/lib/python3.11/site-packages/";
  put(made + "/bin/tool", "#!" + made + "/bin/python\nprint('x')\n", 0755);
  put(made + "/bin/activate", "VIRTUAL_ENV='" + at("aside.x7/it") + "'\"'\"'s'\n");  // as venv quotes it
  put(made + "/pyvenv.cfg", "command = python -m venv " + made + "\n");
  put(site + "tool.py", "print('x')\n");
  put(site + "__pycache__/tool.cpython-311.pyc", "byte code of " + site + "tool.py");
  put(site + "tool-1.0.dist-info/RECORD", "../../../bin/tool,sha256=old,1\ntool.py,sha256=kept,11\n");
  std::filesystem::create_symlink(made + "/lib", made + "/lib64");

  const auto rewritten = relocate(made);
  ASSERT_TRUE(rewritten) << rewritten.error().message;
  EXPECT_EQ(rewritten->size(), 3u);
  EXPECT_EQ(text_of(made + "/bin/tool"), "#!" + moved + "/bin/python\nprint('x')\n");
  EXPECT_EQ(make_real_host()->stat(made + "/bin/tool")->mode & 0111, 0111u);
  EXPECT_EQ(text_of(made + "/bin/activate"), "VIRTUAL_ENV='" + at("it") + "'\"'\"'s'\n");
  EXPECT_EQ(std::filesystem::read_symlink(made + "/lib64"), moved + "/lib");
  EXPECT_FALSE(std::filesystem::exists(site + "__pycache__"));
  const std::string record = text_of(site + "tool-1.0.dist-info/RECORD");
  EXPECT_NE(record.find("../../../bin/tool,sha256="), std::string::npos);
  EXPECT_NE(record.find("," + std::to_string(text_of(made + "/bin/tool").size()) + "\n"), std::string::npos)
      << record;
  EXPECT_NE(record.find("tool.py,sha256=kept,11\n"), std::string::npos) << record;
}

TEST_F(CreateTest, AnyOtherFileThatNamesThePathIsReported) {
  const std::string made = at("aside.x7/env"), file = "lib/python3.11/site-packages/built.so";
  put(path_join(made, file), std::string("\x7f"
                                         "ELF\0",
                                         5) +
                                 made + "/share");
  const auto rewritten = relocate(made);
  ASSERT_FALSE(rewritten);
  EXPECT_EQ(rewritten.error().message.english().find(file), 0u) << rewritten.error().message;
}

// A program that stores the path in pieces would point to a directory that is gone.
TEST_F(CreateTest, AProgramThatSpellsThePathInAnotherWayIsReported) {
  const std::string made = at("aside.x7/env");
  put(made + "/bin/tool", "#!" + made + "/bin/python\nos.path.join('aside.x7', 'env')\n", 0755);
  const auto rewritten = relocate(made);
  ASSERT_FALSE(rewritten);
  EXPECT_EQ(rewritten.error().message.english().find("bin/tool"), 0u) << rewritten.error().message;
}

// As conda writes its prefix: the list of a library's strings keeps its places.
TEST_F(CreateTest, WhatCondaPutItsPrefixIntoIsMoved) {
  const std::string made = at("aside.x7/env"), moved = at("env");
  const auto entry = [](const std::string& path, const std::string& mode) {
    return R"({"_path": ")" + path + R"(", "prefix_placeholder": "/p", "file_mode": ")" + mode +
           R"(", "sha256_in_prefix": "old"})";
  };
  put(made + "/conda-meta/python-3.11.7-0.json", R"({"name": "python", "version": "3.11.7"})");
  put(made + "/conda-meta/demo-1-0.json", R"({"name": "demo", "paths_data": {"paths": [)" +
                                              entry("lib/libdemo.so", "binary") + ", " +
                                              entry("site-packages/demo.py", "text") + "]}}");
  put(made + "/conda-meta/history", "# cmd: conda create --prefix " + made + "\n");
  using namespace std::string_literals;
  put(made + "/lib/libdemo.so", "\0a="s + made + "/x:" + made + "\0next\0"s);
  put(made + "/lib/python3.11/site-packages/demo.py", "where = '" + made + "'\n");
  const auto rewritten = relocate(made);
  ASSERT_TRUE(rewritten) << rewritten.error().message;
  const std::string cut(2 * std::string("aside.x7/").size(), '\0');
  EXPECT_EQ(text_of(made + "/lib/libdemo.so"), "\0a="s + moved + "/x:" + moved + cut + "\0next\0"s);
  EXPECT_EQ(text_of(made + "/lib/python3.11/site-packages/demo.py"), "where = '" + moved + "'\n");
  EXPECT_EQ(text_of(made + "/conda-meta/history"), "# cmd: conda create --prefix " + moved + "\n");
  const std::string record = text_of(made + "/conda-meta/demo-1-0.json");
  EXPECT_EQ(record.find("\"old\""), std::string::npos) << record;
}

// pip compiled it here: conda lists no such file, and nothing knows where its strings end.
TEST_F(CreateTest, ALibraryThatCondaDoesNotListIsReported) {
  using namespace std::string_literals;
  const std::string made = at("aside.x7/env"), file = "lib/python3.11/site-packages/local.so";
  put(made + "/conda-meta/python-3.11.7-0.json", R"({"name": "python", "version": "3.11.7"})");
  put(made + "/" + file, "\0"s + made + "\0"s);
  const auto rewritten = relocate(made);
  ASSERT_FALSE(rewritten);
  EXPECT_EQ(rewritten.error().message.english().find(file), 0u) << rewritten.error().message;
}

TEST_F(CreateTest, APackageWithoutAFileIsRefused) {
  EnvironmentLock lock;
  lock.distributions.push_back({"alpha", "1.0", "conda", "conda", {}, ""});
  EXPECT_EQ(obstacles(lock, {}), std::vector<std::string>{"alpha==1.0: the lock has no file for it"});
  lock.conda_packages.push_back({.name = "alpha", .channel = "main"});
  EXPECT_EQ(obstacles(lock, {}).size(), 1u);  // one line for all of conda's
  EXPECT_TRUE(obstacles(lock, {}, true).empty());
}

TEST_F(CreateTest, ALongListEndsWithItsRest) {
  EXPECT_EQ(first_lines({"a", "b"}), "a; b");
  const std::string all = first_lines(std::vector<std::string>(15, "x"));
  EXPECT_NE(all.find("; and 3 more"), std::string::npos) << all;
}

TEST_F(CreateTest, ARecordTellsWhatChangedAndWasNotEdited) {
  put(at("env/site/a.so"), "1234");
  EnvironmentRecord record;
  record.lock_sha256 = sha256_hex("lock");
  record.site = "site";
  record.content["a"] = sha256_hex("content");
  record.proof = {{"doctor", "not_verified", scankit::message("no GPU found"), 1}};
  const auto info = make_real_host()->stat(at("env/site/a.so"));
  record.libraries = {{"a.so", sha256_hex("1234"), info->size, info->mtime_ns}};
  put(path_join(at("env"), kRecordFile), record_to_json(record));

  const auto read = read_record(at("env"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->signature(), record.signature());
  EXPECT_EQ(read->proof.front().detail.english(), "no GPU found");
  EXPECT_TRUE(changes_since(at("env"), *read)->empty());
  put(at("env/site/a.so"), "12345");
  const auto changes = changes_since(at("env"), *read);
  ASSERT_EQ(changes->size(), 1u);
  EXPECT_EQ(changes->front().kind, RecordChange::Kind::FileChanged);
  EXPECT_EQ(changes->front().name, "a.so");

  std::string edited = record_to_json(record);
  edited.replace(edited.find(record.content["a"]), 4, "0000");
  put(path_join(at("env"), kRecordFile), edited);
  EXPECT_EQ(read_record(at("env")).error().code, Errc::Malformed);
  record.libraries[0].path = "../../../etc/passwd";
  put(path_join(at("env"), kRecordFile), record_to_json(record));
  EXPECT_EQ(read_record(at("env")).error().code, Errc::Malformed);
  for (const char* text : {"", "[]", "{}", "{\"schema\": 1, \"content\": 3, \"libraries\": [1, null]}"}) {
    put(path_join(at("env"), kRecordFile), text);
    EXPECT_EQ(read_record(at("env")).error().code, Errc::Malformed) << text;
  }
}

// Each way in which packages change, by the names and times of their metadata alone.
TEST_F(CreateTest, ARecordNamesThePackagesThatChanged) {
  EnvironmentRecord record;
  record.site = "site";
  for (const std::string name : {"kept", "again", "newer", "gone"}) {
    const std::string metadata = name + "-1.0.dist-info", file = at("env/site/" + metadata + "/RECORD");
    put(file, name);
    const auto info = make_real_host()->stat(file);
    record.packages.push_back({name, "1.0", metadata, info->size, info->mtime_ns});
  }
  put(path_join(at("env"), kRecordFile), record_to_json(record));
  const auto read = read_record(at("env"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(changes_since(at("env"), *read)->empty());

  namespace fs = std::filesystem;
  fs::last_write_time(at("env/site/again-1.0.dist-info/RECORD"), fs::file_time_type::clock::now());
  fs::rename(at("env/site/newer-1.0.dist-info"), at("env/site/newer-2.0.dist-info"));
  fs::remove_all(at("env/site/gone-1.0.dist-info"));
  put(at("env/site/Fresh_One-0.1-py3.11.egg-info/PKG-INFO"), "");
  using Kind = RecordChange::Kind;
  std::map<std::string, std::pair<Kind, std::string>> found;
  const auto changes = changes_since(at("env"), *read);
  ASSERT_TRUE(changes) << changes.error().message;
  for (const RecordChange& one : *changes) found[one.name] = {one.kind, one.found};
  const std::map<std::string, std::pair<Kind, std::string>> expected = {
      {"again", {Kind::PackageReinstalled, "1.0"}},
      {"newer", {Kind::PackageChanged, "2.0"}},
      {"gone", {Kind::PackageMissing, ""}},
      {"fresh-one", {Kind::PackageAdded, "0.1"}}};
  EXPECT_EQ(found, expected);
  record.packages[0].metadata = "../other";
  put(path_join(at("env"), kRecordFile), record_to_json(record));
  EXPECT_EQ(read_record(at("env")).error().code, Errc::Malformed);
  // site-packages is listed: it may not be a directory of somebody else, with libraries or without.
  record.packages[0].metadata = "kept-1.0.dist-info";
  for (const char* site : {"../../../home/x", "/home/x", ""}) {
    record.site = site;
    put(path_join(at("env"), kRecordFile), record_to_json(record));
    EXPECT_EQ(read_record(at("env")).error().code, Errc::Malformed) << site;
  }
}

// Nothing that was looked at is not "nothing changed".
TEST_F(CreateTest, ARecordThatCannotBeComparedIsAnError) {
  EnvironmentRecord record;
  record.content["a"] = sha256_hex("content");
  const auto nothing = changes_since(at("env"), record);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.english().find("lists no package and no compiled file"),
            std::string::npos);
  record.site = "site";
  record.packages = {{"a", "1.0", "a-1.0.dist-info", 0, 0}};
  ASSERT_TRUE(make_directories(at("env")));
  std::filesystem::create_symlink("site", at("env/site"));  // to itself, which root cannot list either
  EXPECT_FALSE(changes_since(at("env"), record));
  std::filesystem::remove(at("env/site"));
  const auto gone = changes_since(at("env"), record);
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_EQ(gone->front().kind, RecordChange::Kind::PackageMissing);
}

// What the resolver is asked for, and never for what scankit installs itself.
TEST(CreateOrigins, DecideWhatTheResolverIsAskedFor) {
  const auto wish = [](const std::string& yaml) {
    const auto spec = parse_spec("schema: 1\n" + yaml, "s.yaml");
    EXPECT_TRUE(spec) << english(spec.error().message);
    return spec ? resolver_wish(*spec) : ResolverWish();
  };
  using Names = std::vector<std::string>;
  const ResolverWish own = wish(
      "extensions:\n  selective_scan_cuda: {from: scankit, package: mamba-ssm}\n"
      "  causal_conv1d_cuda: {from: wheel, distribution: causal-conv1d, version: \">=1.5, <2\"}\n"
      "  other: {from: source, distribution: other-pkg}\n");
  EXPECT_EQ(own.requirements, (Names{"torch", "causal-conv1d>=1.5,<2", "other-pkg"}));
  EXPECT_EQ(own.only_wheels, Names{"causal-conv1d"});
  EXPECT_EQ(own.only_sources, Names{"other-pkg"});
  EXPECT_TRUE(wish("python: {version: \"3.*\"}\n").requirements.empty());
}

TEST(CreateOrigins, RefuseWhatNothingCanBeMadeOf) {
  const auto refused = [](const std::string& extension) {
    const auto spec = parse_spec("schema: 1\nextensions:\n  " + extension + "\n", "s.yaml");
    EXPECT_TRUE(spec) << english(spec.error().message);
    const auto checked = spec ? check_origins(*spec, "new") : Result<void>();
    return checked ? "" : english(checked.error().message) + " | " + english(checked.error().hint);
  };
  EXPECT_EQ(refused("selective_scan_cuda: {from: scankit, distribution: scankit-selective-scan-cuda}"), "");
  EXPECT_EQ(refused("selective_scan_cuda: {}"),
            "s.yaml:3 names no package that contains selective_scan_cuda, and nothing was made | write from: "
            "scankit for scankit's own module, or add its `distribution`");
  EXPECT_NE(refused("other: {}").find("add its `distribution`; or take it out"), std::string::npos);
  EXPECT_NE(refused("other: {from: scankit}").find("scankit has no module other"), std::string::npos);
  EXPECT_NE(
      refused("selective_scan_cuda: {from: scankit, distribution: mamba-ssm}").find("write mamba-ssm as"),
      std::string::npos);
  EXPECT_NE(refused("other: {distribution: x, package: y}").find("only for modules with from: scankit"),
            std::string::npos);
}

TEST_F(CreateTest, OnlyAnEmptyPlaceIsTaken) {
  put(at("taken/file"), "");
  EXPECT_EQ(check_new_folder(at("taken")).error().code, Errc::InvalidArgument);
  EXPECT_EQ(check_new_folder(at("taken/file")).error().code, Errc::InvalidArgument);
  EXPECT_EQ(check_new_folder(at("no/where")).error().code, Errc::InvalidArgument);
  std::filesystem::create_symlink("nowhere", at("link"));
  EXPECT_EQ(check_new_folder(at("link")).error().code, Errc::InvalidArgument);
  ASSERT_TRUE(make_directories(at("empty")));
  std::vector<std::string> removed;
  const auto aside = Aside::begin(at("empty"), removed);
  ASSERT_TRUE(aside) << aside.error().message;
  put(path_join(aside->environment(), "pyvenv.cfg"), "new\n");
  put(at("empty/theirs"), "");  // in the meantime
  EXPECT_EQ(aside->move().error().code, Errc::Conflict);
  std::filesystem::remove(at("empty/theirs"));
  ASSERT_TRUE(aside->move());
  EXPECT_EQ(text_of(at("empty/pyvenv.cfg")), "new\n");
}

TEST(CreateWheels, ThatNoIndexHasAreLookedForBesideTheLock) {
  EnvironmentLock lock;
  lock.distributions = {
      {.name = "mine", .version = "1", .source = "here", .artifact = LockedArtifact{"mine.whl", "00"}}};
  const auto nowhere = find_wheels(lock, {}, false);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(tr(nowhere.error().message)
                .find("mine.whl was not found: the lock has no directory scankit-wheels next to it"),
            std::string::npos)
      << nowhere.error().message;
  const auto elsewhere = find_wheels(lock, {"/nonexistent"}, false);
  ASSERT_FALSE(elsewhere);
  EXPECT_NE(tr(elsewhere.error().message).find("mine.whl was not found in /nonexistent"), std::string::npos)
      << elsewhere.error().message;
}

TEST_F(CreateTest, OfflineNamesADirectory) {
  put(at("file"), "");
  EXPECT_TRUE(check_offline(*make_real_host(), ""));
  EXPECT_TRUE(check_offline(*make_real_host(), work_.path()));
  for (const char* wrong : {"no-such", "file"}) {
    const auto refused = check_offline(*make_real_host(), at(wrong));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::InvalidArgument);
  }
}

TEST(CreateSizes, AreReadable) {
  EXPECT_EQ(size_in_words(1'340'000'000), "1.3 GB");
  EXPECT_EQ(size_in_words(12'400'000), "12 MB");
  EXPECT_EQ(size_in_words(900), "1 kB");
}

LockedDistribution built(const std::string& name, const std::string& url) {
  LockedDistribution one{
      name, "1.0", "pip", "here", LockedArtifact{name + "-1.0-py3-none-any.whl", std::string(64, 'a'), 3, ""},
      ""};
  one.build = LockedBuild{.sdist = LockedArtifact{name + "-1.0.tar.gz", std::string(64, 'b'), 3, url},
                          .sdist_from = "index"};
  return one;
}

TEST_F(CreateTest, OnlyWhatHasNoWheelHereIsBuilt) {
  EnvironmentLock lock;
  lock.distributions = {built("packed", "https://h/p.tar.gz"), built("far", "https://h/f.tar.gz"),
                        built("lost", ""), built("near", "")};
  put(at("wheels/packed-1.0-py3-none-any.whl"), "abc");
  put(at("wheels/near-1.0.tar.gz"), "abc");
  const std::string hash = sha256_hex("abc");
  lock.distributions[0].artifact->sha256 = lock.distributions[3].build->sdist->sha256 = hash;
  const auto builds = sources_to_build(lock, {at("wheels")}, false);
  ASSERT_EQ(builds.size(), 2U);
  EXPECT_EQ(builds[0].name, "far");
  EXPECT_EQ(builds[0].path, "");
  EXPECT_EQ(builds[1].name, "near");
  EXPECT_EQ(builds[1].path, at("wheels/near-1.0.tar.gz"));
  ASSERT_EQ(sources_to_build(lock, {at("wheels")}, true).size(), 1U) << "a URL is no file";
  const EnvironmentLock rest = without_packages(lock, builds);
  ASSERT_EQ(rest.distributions.size(), 2U);
  const auto refused = find_wheels(rest, {at("wheels")}, false);
  ASSERT_FALSE(refused);
  EXPECT_NE(english(refused.error().message).find("no URL of its source archive lost-1.0.tar.gz is known"),
            std::string::npos)
      << english(refused.error().message);
  // With another hash it is not that archive.
  lock.distributions[3].build->sdist->sha256 = std::string(64, 'c');
  EXPECT_EQ(sources_to_build(lock, {at("wheels")}, false).size(), 1U);
}

TEST(SourceBuilds, GetTheArchitecturesAndSwitchesOfTheLock) {
  EnvironmentLock lock;
  lock.distributions = {built("mamba-ssm", ""), built("other", "")};
  const SourceBuild mamba{"mamba-ssm", "1.0", {}, ""}, other{"other", "1.0", {}, ""};
  using Variables = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(locked_build_variables(lock, mamba), (Variables{{"MAMBA_FORCE_BUILD", "TRUE"},
                                                            {"MAMBA_KEEP_CUDA_BUILD", "FALSE"},
                                                            {"MAMBA_SKIP_CUDA_BUILD", "TRUE"}}));
  EXPECT_TRUE(locked_build_variables(lock, other).empty());
  lock.libraries = {{"selective_scan_cuda.so", "mamba-ssm"}};
  lock.distributions[0].build->toolchain.code = {"sm_80", "sm_90a", "compute_90a", "compute_120"};
  EXPECT_EQ(locked_build_variables(lock, mamba),
            (Variables{{"FORCE_CUDA", "1"},
                       {"MAMBA_FORCE_BUILD", "TRUE"},
                       {"MAMBA_KEEP_CUDA_BUILD", "TRUE"},
                       {"MAMBA_SKIP_CUDA_BUILD", "FALSE"},
                       {"TORCH_CUDA_ARCH_LIST", "12.0+PTX;8.0;9.0a+PTX"}}));
  lock.distributions[1].build->recorded = RecordedBuild{"2.11.0", "pip", {{"OTHER_WITH_OPS", "1"}}};
  EXPECT_EQ(locked_build_variables(lock, other), (Variables{{"OTHER_WITH_OPS", "1"}}));
}

TEST_F(CreateTest, NamesNoCommandThatWouldNotWork) {
  const auto refused = [&](const std::string& folder, const std::string& lock) {
    const auto answer = check_new_folder(folder, lock);
    return answer ? "" : english(answer.error().message) + " | " + english(answer.error().hint);
  };
  EXPECT_EQ(refused("", "scankit.lock"),
            "the name of the directory to make is empty | name one, such as .venv");
  EXPECT_EQ(refused("/", "scankit.lock"),
            "/ exists and is not an empty directory, and nothing was changed | choose another directory");
  put(at("some/file"), "");
  EXPECT_TRUE(refused(at("some"), "scankit.lock").ends_with("| choose another directory"))
      << "no environment";
  put(at("some/pyvenv.cfg"), "");
  EXPECT_TRUE(refused(at("some"), "scankit.lock").ends_with("to the lock: scankit env sync " + at("some")));
  EXPECT_TRUE(refused(at("some"), "a b.lock").ends_with(" --lock 'a b.lock'"));
  EXPECT_TRUE(refused(at("some"), "").ends_with("| choose another directory")) << "of a spec";
  EXPECT_EQ(english(read_lock("/no where/x.lock").error().hint),
            "write one: scankit env lock --out '/no where/x.lock'");
}

}  // namespace
}  // namespace scankit::envspec
