// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/say.h"
#include "doctor/base/sha256.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"

namespace scankit {
namespace {

Version version(std::string_view text) { return *Version::parse(text); }

TEST(Say, PutsValuesInAndLeavesTheirBracesAlone) {
  EXPECT_EQ(say("{} needs {}", "{}.so", 12), "{}.so needs 12");
}

TEST(Machine, IsTheOneThatRunsThisProgram) {
  utsname name{};
  ASSERT_EQ(::uname(&name), 0);
  EXPECT_STREQ(kMachine, name.machine);
  EXPECT_EQ(kMultiarch, std::string(kMachine) + "-linux-gnu");
}

TEST(NearestWord, FindsWhatASlipWasMeantToBe) {
  const std::vector<std::string> known = {"driver", "gpus", "python", "torch", "host_compiler", "extensions"};
  EXPECT_EQ(nearest_word("tocrh", known), "torch");
  EXPECT_EQ(nearest_word("Torch", known), "torch");
  EXPECT_EQ(nearest_word("gpu", known), "gpus");
  EXPECT_EQ(nearest_word("host-compiler", known), "host_compiler");
  EXPECT_EQ(nearest_word("extension", known), "extensions");
  EXPECT_EQ(nearest_word("numpy_version", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word(std::string(1 << 20, 'x'), known), "");
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

TEST(Version, OrdersTheStagesOfAReleaseAsPep440Does) {
  const std::vector<std::string> ordered = {"2.0.dev3",        "2.0a1.dev1", "2.0a1",     "2.0b2",
                                            "2.0rc1",          "2.0",        "2.0.post1", "2.0.post2",
                                            "2.0.post10.dev1", "2.0.post10", "2.0.1"};
  for (std::size_t i = 0; i + 1 < ordered.size(); ++i)
    EXPECT_TRUE(std::is_lt(pep440_order(*Version::parse(ordered[i]), *Version::parse(ordered[i + 1]))))
        << ordered[i] << " and " << ordered[i + 1];
  for (const auto& [one, same] : {std::pair{"2.0-alpha.1", "2.0a1"},
                                  {"2.0-1", "2.0.post1"},
                                  {"2.0c1", "2.0RC1"},
                                  {"2.0", "2.0.0+cu130"}})
    EXPECT_TRUE(std::is_eq(pep440_order(*Version::parse(one), *Version::parse(same)))) << one;
}

TEST(Version, RefusesWhatIsNoVersion) {
  EXPECT_FALSE(Version::parse(""));
  EXPECT_FALSE(Version::parse("abc"));
  EXPECT_FALSE(Version::parse("99999999999999999999"));
}

// Every way of filling a block, by the processor's own
// instructions where it has them, against the portable code.
TEST(Sha256, IsTheSameInPiecesAndByTheProcessor) {
  std::string text;
  for (unsigned length = 0; length < 300; ++length) {
    Sha256 portable;
    portable.update(text.data(), text.size());
    unsigned char digest[32];
    portable.finish(digest);
    for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, text.size() / 2, text.size()}) {
      Sha256Stream stream;
      stream.update(text.data(), std::min(cut, text.size()));
      stream.update(text.data() + std::min(cut, text.size()), text.size() - std::min(cut, text.size()));
      const std::string hex = stream.hex();
      for (std::size_t i = 0; i < 32; ++i)
        ASSERT_EQ(std::stoul(hex.substr(2 * i, 2), nullptr, 16), digest[i]) << length << " cut at " << cut;
    }
    text += static_cast<char>(length * 7 + 3);
  }
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
}

TEST(Files, SayWhyTheyCannotBeWrittenWithoutTemporaryNames) {
  const Error no_folder = write_file_atomically("/nonexistent/x.html", "").error();
  EXPECT_EQ(no_folder.code, Errc::NotFound);
  EXPECT_EQ(english(no_folder.message),
            "cannot write /nonexistent/x.html: the directory /nonexistent does not exist");
  EXPECT_EQ(english(write_file_atomically("/etc/passwd/x", "").error().message),
            "cannot write /etc/passwd/x: /etc/passwd is not a directory");
  const auto folder = TemporaryDirectory::create("files");
  const std::string taken = folder->path() + "/taken";
  ASSERT_TRUE(make_directories(taken));
  EXPECT_EQ(english(write_file_atomically(taken, "").error().message),
            "cannot write " + taken + ": Is a directory");
}

TEST(Duration, HasAUnitOrIsSeconds) {
  using std::chrono::milliseconds;
  EXPECT_EQ(parse_duration("20s"), milliseconds(20'000));
  EXPECT_EQ(parse_duration("20"), milliseconds(20'000));
  EXPECT_EQ(parse_duration("1.5m"), milliseconds(90'000));
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("24h"), milliseconds(86'400'000));
  for (const char* bad :
       {"", "s", "0", "-1s", "20 s", "20S", "1e9", "nan", "inf", "25h", "0.1ms", "1d", "20s "})
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace scankit
