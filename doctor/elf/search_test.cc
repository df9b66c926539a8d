// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/search.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>

#include "doctor/elf/library_test.h"
#include "doctor/elf/process_image.h"

namespace scankit::elf {
namespace {

// A cache of our own by the real ldconfig, so that the test does not depend on this machine's.
std::string make_cache(const test::Workshop& shop) {
  shop.shared("libs/libone.so.1", "int one(void) { return 1; }\n", {"-Wl,-soname,libone.so.1"});
  shop.shared("libs/glibc-hwcaps/x86-64-v3/libone.so.1", "int one(void) { return 3; }\n",
              {"-Wl,-soname,libone.so.1"});
  shop.write("ld.so.conf", shop.path("libs") + "\n");
  const auto run =
      run_process({.argv = {"/sbin/ldconfig", "-X", "-C", shop.path("cache"), "-f", shop.path("ld.so.conf")},
                   .environment = {},
                   .working_directory = {},
                   .standard_input = {}});
  EXPECT_TRUE(run && run->ok()) << (run ? run->err : english(run.error().message));
  return shop.read("cache");
}

#ifdef __x86_64__
TEST(LdCache, ChoosesByHwcapsAsTheLoaderDoes) {
  const test::Workshop shop;
  const LdCache cache = LdCache::parse(make_cache(shop), EM_X86_64);
  EXPECT_TRUE(cache.note().empty());
  const std::string plain = shop.path("libs/libone.so.1"),
                    v3 = shop.path("libs/glibc-hwcaps/x86-64-v3/libone.so.1");
  EXPECT_EQ(cache.lookup("libone.so.1", {}), std::vector<std::string>{plain});
  EXPECT_EQ(cache.lookup("libone.so.1", {"x86-64-v2"}), std::vector<std::string>{plain});
  EXPECT_EQ(cache.lookup("libone.so.1", {"x86-64-v4", "x86-64-v3", "x86-64-v2"}),
            std::vector<std::string>{v3});
  EXPECT_TRUE(cache.lookup("libtwo.so", {}).empty());
}

TEST(LdCache, HoldsNothingForOtherMachines) {
  const test::Workshop shop;
  EXPECT_TRUE(LdCache::parse(make_cache(shop), EM_AARCH64).lookup("libone.so.1", {}).empty());
}
#endif

TEST(LdCache, SurvivesEveryTruncation) {
  const test::Workshop shop;
  const std::string whole = make_cache(shop);
  const std::size_t step =
      std::max<std::size_t>(1, whole.size() / 4000);  // the default folders are in it too
  for (std::size_t length = 0; length < whole.size(); length += step)
    (void)LdCache::parse(whole.substr(0, length), EM_X86_64).lookup("libone.so.1", {"x86-64-v3"});
}

TEST(LdCache, SurvivesHostileNumbers) {
  const test::Workshop shop;
  const std::string whole = make_cache(shop);
  for (std::size_t at = 20; at < std::min<std::size_t>(whole.size(), 400); at += 4) {
    std::string bad = whole;
    bad.replace(at, 4, "\xff\xff\xff\x7f");
    (void)LdCache::parse(bad, EM_X86_64).lookup("libone.so.1", {"x86-64-v3"});
  }
  EXPECT_FALSE(LdCache::parse("something else", EM_X86_64).note().empty());
}

}  // namespace

// The real loader lists what it would map (LD_TRACE_LOADED_OBJECTS); ours must name the same files.

namespace {

using test::Variable;
using test::Workshop;

// soname -> file, "" where it is not found. Our own program of the test: tracing it runs nothing of it.
std::map<std::string, std::string> by_loader(const std::string& program) {
  std::vector<std::string> environment = {"LD_TRACE_LOADED_OBJECTS=1"};
  if (const char* path = std::getenv("LD_LIBRARY_PATH"))
    environment.push_back(std::string("LD_LIBRARY_PATH=") + path);
  const auto run = run_process(
      {.argv = {program}, .environment = environment, .working_directory = {}, .standard_input = {}});
  EXPECT_TRUE(run) << english(run.error().message);
  std::map<std::string, std::string> found;
  static const std::regex line(R"(\t(\S+) => (not found|\S+))");
  for (std::sregex_iterator it(run->out.begin(), run->out.end(), line), end; it != end; ++it)
    found[(*it)[1]] = (*it)[2] == "not found" ? "" : path_normalize((*it)[2].str());
  return found;
}

std::map<std::string, std::string> by_us(const std::string& program) {
  const auto host = make_real_host();
  LibraryCache libraries(*host);
  const auto process = ProcessImage::start(libraries, program);
  std::map<std::string, std::string> found;
  EXPECT_TRUE(process) << (process ? "" : english(process.error().message));
  if (!process) return found;
  for (int i = 2; i < process->object_count(); ++i) {  // 0 is the program, 1 the loader
    const LoadedObject& object = process->object(i);
    found[object.names.front()] = path_normalize(object.path);
  }
  for (const UnfoundLibrary& missing : process->missing_at_start()) found[missing.name] = "";
  return found;
}

class Search : public testing::Test {
 protected:
  // libend.so in several folders; libmid.so in one, linked with `mid_flags`; a program with `main_flags`.
  std::string program(const std::vector<std::string>& end_folders, std::vector<std::string> mid_flags,
                      std::vector<std::string> main_flags) {
    for (const std::string& folder : end_folders)
      shop_.shared(folder + "/libend.so", "int end(void) { return 1; }\n", {"-Wl,-soname,libend.so"});
    mid_flags.insert(mid_flags.end(),
                     {"-Wl,-soname,libmid.so", shop_.path(end_folders.front() + "/libend.so")});
    shop_.shared("mid/libmid.so", "int end(void); int mid(void) { return end(); }\n", std::move(mid_flags));
    main_flags.insert(main_flags.end(), {shop_.path("mid/libmid.so"), "-Wl,--allow-shlib-undefined"});
    return shop_.build("main", "int mid(void); int main(void) { return mid(); }\n", std::move(main_flags));
  }
  void expect_same(const std::string& path) { EXPECT_EQ(by_us(path), by_loader(path)); }
  std::string rpath(const std::string& folder) const { return "-Wl,--disable-new-dtags,-rpath," + folder; }
  std::string runpath(const std::string& folder) const { return "-Wl,--enable-new-dtags,-rpath," + folder; }
  Workshop shop_;
};

TEST(Tokens, EndWhereTheIdentifierEnds) {
  SearchContext context;
  context.lib_token = "lib64";
  EXPECT_EQ(expand_tokens("$ORIGIN/x:${ORIGIN}AL", "/o", context), "/o/x:/oAL");
  EXPECT_EQ(expand_tokens("$ORIGINAL/$LIB_2/$LIB", "/o", context), "$ORIGINAL/$LIB_2/lib64");
}

TEST_F(Search, RpathOfTheProgramServesItsLibrariesToo) {
  expect_same(program({"a"}, {}, {rpath("$ORIGIN/mid:" + shop_.path("a"))}));
}

TEST_F(Search, RunpathServesOnlyItsOwner) {
  const std::string path = program({"a"}, {}, {runpath("$ORIGIN/mid:" + shop_.path("a"))});
  expect_same(path);
  EXPECT_EQ(by_us(path).at("libend.so"), "");
}

TEST_F(Search, ARunpathHidesTheRpathsAbove) {
  const std::string path = program({"a"}, {runpath("/nowhere")}, {rpath("$ORIGIN/mid:" + shop_.path("a"))});
  expect_same(path);
  EXPECT_EQ(by_us(path).at("libend.so"), "");
}

TEST_F(Search, LibraryPathComesBehindRpathAndBeforeRunpath) {
  const std::string old_style = program({"a", "b"}, {rpath("${ORIGIN}/../a")}, {rpath("$ORIGIN/mid")});
  const Variable variable("LD_LIBRARY_PATH", "/nowhere:" + shop_.path("b") + "/");
  expect_same(old_style);
  EXPECT_EQ(by_us(old_style).at("libend.so"), shop_.path("a/libend.so"));
  const std::string new_style = program({"a", "b"}, {runpath("$ORIGIN/../a")}, {rpath("$ORIGIN/mid")});
  expect_same(new_style);
  EXPECT_EQ(by_us(new_style).at("libend.so"), shop_.path("b/libend.so"));
}

TEST_F(Search, PassesOverFilesForOtherMachines) {
  const std::string path =
      program({"a", "b"}, {rpath(shop_.path("a") + ":" + shop_.path("b"))}, {rpath("$ORIGIN/mid")});
  std::string bytes = shop_.read("a/libend.so");
  bytes[18] = static_cast<char>(183);  // e_machine: aarch64
  shop_.write("a/libend.so", bytes);
  expect_same(path);
  EXPECT_EQ(by_us(path).at("libend.so"), shop_.path("b/libend.so"));
}

TEST_F(Search, GivesUpAtADamagedFileAsTheLoaderDoes) {
  const std::string path =
      program({"a", "b"}, {rpath(shop_.path("a") + ":" + shop_.path("b"))}, {rpath("$ORIGIN/mid")});
  shop_.write("a/libend.so", "");
  const auto host = make_real_host();
  LibraryCache libraries(*host);
  const auto process = ProcessImage::start(libraries, path).value();
  ASSERT_EQ(process.missing_at_start().size(), 1u);
  const UnfoundLibrary& missing = process.missing_at_start().front();
  EXPECT_EQ(missing.name, "libend.so");
  EXPECT_NE(english(missing.fatal).find("file too short"), std::string::npos) << missing.fatal;
  ASSERT_FALSE(missing.searched.empty());
  EXPECT_EQ(english(missing.searched.front()),
            "RPATH of " + shop_.path("mid/libmid.so") + " " + shop_.path("a"));
}

TEST_F(Search, TheSameFileUnderAnotherNameIsLoadedOnce) {
  const std::string path = program({"a"}, {rpath(shop_.path("a"))}, {rpath("$ORIGIN/mid")});
  const auto host = make_real_host();
  LibraryCache libraries(*host);
  auto process = ProcessImage::start(libraries, path).value();
  const int before = process.object_count();
  ASSERT_EQ(::symlink("libend.so", shop_.path("a/other.so").c_str()), 0);
  const LoadResult result = process.load(shop_.path("a/other.so"), 0, false);
  EXPECT_EQ(process.object_count(), before);
  EXPECT_EQ(path_basename(process.object(result.object).path), "libend.so");
}

TEST(ProcessImage, ScopesFollowDlopensFlags) {
  const Workshop shop;
  const auto host = make_real_host();
  const std::string program = shop.build("main", "int main(void) { return 0; }\n", {});
  const std::string provider = shop.shared("provider.so", "int provided(void) { return 1; }\n");
  const std::string user = shop.shared(
      "user.so", "int provided(void); int never(void);\nint use(void) { return provided() + never(); }\n");
  LibraryCache libraries(*host);
  for (const bool global : {false, true}) {
    auto process = ProcessImage::start(libraries, program).value();
    process.load(provider, 0, global);
    const LoadResult loaded = process.load(user, 0, false);
    const auto resolved = process.resolve(loaded.object, loaded.list);
    ASSERT_TRUE(resolved);
    std::vector<std::string> missing;
    for (const ResolvedSymbol& r : *resolved)
      if (!r.symbol.weak && r.provider < 0) missing.push_back(r.symbol.name);
    std::ranges::sort(missing);
    EXPECT_EQ(missing,
              global ? std::vector<std::string>{"never"} : (std::vector<std::string>{"never", "provided"}));
  }
}

TEST(ProcessImage, NamesVersionsThatTheLibraryFoundLacks) {
  const Workshop shop;
  const auto host = make_real_host();
  const std::string both = shop.write("both.map", "V_1 { global: one; }; V_9 { global: nine; };");
  const std::string only = shop.write("only.map", "V_1 { global: one; };");
  shop.shared("new/libv.so", "int one(void){return 1;} int nine(void){return 9;}\n",
              {"-Wl,-soname,libv.so", "-Wl,--version-script=" + both});
  shop.shared("old/libv.so", "int one(void){return 1;}\n",
              {"-Wl,-soname,libv.so", "-Wl,--version-script=" + only});
  const std::string user =
      shop.shared("user.so", "int one(void); int nine(void); int use(void) { return one() + nine(); }\n",
                  {shop.path("new/libv.so"), "-Wl,-rpath," + shop.path("old")});
  LibraryCache libraries(*host);
  auto process =
      ProcessImage::start(libraries, shop.build("main", "int main(void) { return 0; }\n", {})).value();
  const LoadResult loaded = process.load(user, 0, false);
  const auto unmet = process.unmet_versions(loaded.added);
  ASSERT_EQ(unmet.size(), 1u);
  EXPECT_EQ(unmet[0].version, "V_9");
  EXPECT_EQ(unmet[0].object, loaded.object);
  EXPECT_EQ(process.object(unmet[0].provider).path, shop.path("old/libv.so"));
}

TEST(ProcessImage, RefusesAStaticProgram) {
  const Workshop shop;
  const auto host = make_real_host();
  LibraryCache libraries(*host);
  EXPECT_FALSE(
      ProcessImage::start(libraries, shop.build("main", "int main(void) { return 0; }\n", {"-static"})));
  EXPECT_FALSE(ProcessImage::start(libraries, shop.path("absent")));
}

// A file may be replaced between two looks at it: what is kept answers for both.
TEST(LibraryCache, KeepsWhatWasOpenedBefore) {
  const test::Workshop shop;
  const std::string path = shop.shared("kept.so", "int kept;\n");
  const auto host = make_real_host();
  const auto opened = open_library(*host, path);
  ASSERT_TRUE(opened) << english(opened.error().message);
  shop.write("other", "not a library");
  ASSERT_EQ(::rename(shop.path("other").c_str(), path.c_str()), 0);
  LibraryCache libraries(*host);
  EXPECT_FALSE(libraries.open(path));
  libraries.keep(*opened);
  const auto again = libraries.open(path);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *opened);
}

}  // namespace

}  // namespace scankit::elf
