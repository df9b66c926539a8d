// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"

namespace scankit {
namespace {

Version version(std::string_view text) { return *Version::parse(text); }

TEST(Say, PutsValuesInAndLeavesTheirBracesAlone) {
  EXPECT_EQ(say("{} needs {}", "{}.so", 12), "{}.so needs 12");
}

TEST(Version, ComparesReleaseNumbersAsNumbers) {
  EXPECT_LT(version("2.9.1"), version("2.11"));
  EXPECT_EQ(version("2.11"), version("2.11.0+cu130"));
  EXPECT_GT(version("570.86.10"), version("570.86"));
}

TEST(Version, KeepsWhatFollowsTheDigits) {
  EXPECT_EQ(version("2.5.0a0+nv24.10").suffix, "a0+nv24.10");
  EXPECT_TRUE(version("2.5.0a0+nv24.10").is_prerelease());
  EXPECT_FALSE(version("2.11.0+cu130").is_prerelease());
  EXPECT_EQ(version("2.11.0+cu130").major_minor(), "2.11");
}

TEST(Version, RefusesWhatIsNoVersion) {
  EXPECT_FALSE(Version::parse(""));
  EXPECT_FALSE(Version::parse("abc"));
  EXPECT_FALSE(Version::parse("99999999999999999999"));
}

TEST(Sha256, MatchesTheStandardsVectors) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Paths, AreTakenApartAndPutTogether) {
  EXPECT_EQ(path_join("/a", "b"), "/a/b");
  EXPECT_EQ(path_join("/a/", "/b"), "/b");
  EXPECT_EQ(path_dirname("/a"), "/");
  EXPECT_EQ(path_dirname("a"), ".");
  EXPECT_EQ(path_basename("/a/b.so"), "b.so");
  EXPECT_EQ(path_normalize("/a//b/./c/../d/"), "/a/b/d");
}

TEST(Files, AreReplacedWholeAndLeaveNothingAside) {
  auto folder = TemporaryDirectory::create("scankit-test");
  ASSERT_TRUE(folder);
  const std::string file = path_join(folder->path(), "x");
  ASSERT_TRUE(write_file_atomically(file, "one"));
  ASSERT_TRUE(write_file_atomically(file, "two", 0600));
  EXPECT_EQ(read_whole_file(file).value_or("?"), "two");
  struct ::stat st {};
  ASSERT_EQ(::stat(file.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_EQ(sha256_file(file).value_or("?"), sha256_hex("two"));
}

TEST(Files, SayWhyTheyCannotBeRead) {
  EXPECT_EQ(read_whole_file("/nonexistent/x").error().code, Errc::NotFound);
  EXPECT_EQ(read_whole_file("/proc/self/maps", 1).error().code, Errc::Unsupported);
  EXPECT_EQ(write_file_atomically("/nonexistent/x", "").error().code, Errc::NotFound);
}

TEST(TemporaryDirectory, IsGoneAfterwards) {
  std::string path;
  {
    auto folder = TemporaryDirectory::create("scankit-test");
    ASSERT_TRUE(folder);
    path = folder->path();
    ASSERT_TRUE(make_directories(path_join(path, "a/b")));
  }
  struct ::stat st {};
  EXPECT_NE(::stat(path.c_str(), &st), 0);
}

}  // namespace
}  // namespace scankit
