// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/wheel.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>

#include "doctor/base/files.h"
#include "doctor/probes/target/zip_test.h"

namespace scankit::probes {
namespace {

using test::Entry;
using test::zip_of;

const Entry kWheel{"m-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp310-cp310-linux_x86_64\n"};

class WheelFile : public ::testing::Test {
 protected:
  std::string write(const std::string& bytes, const std::string& name = "m-1-cp311-cp311-linux_x86_64.whl") {
    const std::string path = scratch_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // What is said of an archive of the WHEEL file and one more member.
  std::string refusal(const Entry& entry) {
    const std::string path = write(zip_of({kWheel, entry}));
    const auto unpacked = unpack_wheel(path, scratch_.path() + "/out");
    if (unpacked) return "";
    EXPECT_NE(english(unpacked.error().message).find(path), std::string::npos);
    EXPECT_EQ(english(unpacked.error().message).find('\n'), std::string::npos);
    EXPECT_EQ(english(unpacked.error().message).find('\x1b'), std::string::npos);
    return english(unpacked.error().message);
  }
  TemporaryDirectory scratch_ = std::move(TemporaryDirectory::create("scankit-wheel")).value();
};

TEST_F(WheelFile, UnpacksTheLibrariesAndNothingElse) {
  const std::string path = write(zip_of({kWheel,
                                         {"pkg/", "", 040755},
                                         {"pkg/_C.so", "library"},
                                         {"pkg/__init__.py", "import evil"},
                                         {"pkg.libs/libx-1.so.2.1", "x"},
                                         {"m-1.data/platlib/top.abi3.so", "y"}}));
  const auto unpacked = unpack_wheel(path, scratch_.path() + "/out");
  ASSERT_TRUE(unpacked) << english(unpacked.error().message);
  EXPECT_EQ(unpacked->libraries,
            (std::vector<std::string>{"pkg.libs/libx-1.so.2.1", "pkg/_C.so", "top.abi3.so"}));
  EXPECT_EQ(read_whole_file(scratch_.path() + "/out/pkg/_C.so").value(), "library");
  EXPECT_FALSE(read_whole_file(scratch_.path() + "/out/pkg/__init__.py"));
  EXPECT_EQ(unpacked->wheel.python_tags, std::vector<std::string>{"cp311"});
  EXPECT_EQ(unpacked->wheel.tags_from, "file name");
  EXPECT_EQ(unpacked->wheel.members, 6u);
}

TEST_F(WheelFile, TakesTheTagsFromWithinWhereTheNameHasNone) {
  const auto unpacked = unpack_wheel(write(zip_of({kWheel}), "x.whl"), scratch_.path() + "/out");
  ASSERT_TRUE(unpacked);
  EXPECT_EQ(unpacked->wheel.tags_from, "WHEEL");
  EXPECT_EQ(unpacked->wheel.abi_tags, std::vector<std::string>{"cp310"});
}

TEST_F(WheelFile, RefusesWhatLeadsOutOfIt) {
  for (const char* name :
       {"/etc/x.so", "../x.so", "a/../../x.so", "a//x.so", "./x.so", "a\\..\\x.so", "C:x.so", "..", "a/.."})
    EXPECT_FALSE(refusal({name, "x"}).empty()) << name;
  EXPECT_NE(refusal({"a.so", "/etc/passwd", 0120777}).find("symbolic link"), std::string::npos);
  EXPECT_FALSE(refusal({"a.so", "", 0020666}).empty());
  EXPECT_FALSE(refusal({std::string("a.so\0b", 6), "x"}).empty());
  EXPECT_FALSE(refusal({"\x1b[31m/../a.so", "x"}).empty());
}

TEST_F(WheelFile, RefusesWhatLies) {
  EXPECT_NE(refusal({"a.so", "xxxx", 0100644, 3}).find("a.so"), std::string::npos);
  EXPECT_FALSE(refusal({"a.so", "xxxx", 0100644, 5}).empty());
  EXPECT_FALSE(refusal({"a.so", "xxxx", 0100644, 0, 1}).empty());
  EXPECT_NE(refusal({"a.so", "xxxx", 0100644, 0, 0, 1}).find("encrypted"), std::string::npos);
  // Also of a member that is not read here: pip would unpack it.
  for (const char* name : {"a.so", "pkg/weights.bin"})
    EXPECT_NE(refusal({name, "xxxx", 0100644, 0xfffffffe}).find("far more"), std::string::npos) << name;
  EXPECT_NE(refusal({"m-1.dist-info/WHEEL", "again"}).find("twice"), std::string::npos);
  const std::string record = "a.so,sha256=AAAA,4\n";
  const auto path = write(zip_of({kWheel, {"m-1.dist-info/RECORD", record}, {"a.so", "xxxx"}}));
  EXPECT_NE(english(unpack_wheel(path, scratch_.path() + "/out").error().message).find("RECORD"),
            std::string::npos);
}

TEST_F(WheelFile, TakesAHashThatIsRight) {
  // sha256 of "xxxx", as RECORD writes it.
  const std::string record =
      "a.so,sha256=" + std::string("JIGmPIWmLPiJ0rFJ8aUumFqTQXUBc_4B7_UMwntZQbU") + ",4\n";
  const auto path = write(zip_of({kWheel, {"m-1.dist-info/RECORD", record}, {"a.so", "xxxx"}}));
  const auto unpacked = unpack_wheel(path, scratch_.path() + "/out");
  EXPECT_TRUE(unpacked) << english(unpacked.error().message) << sha256_hex("xxxx");
}

TEST_F(WheelFile, RefusesWhatIsNoWheelAtAll) {
  const std::string whole = zip_of({kWheel, {"a.so", "xxxx"}});
  for (const std::string& bytes : {std::string(), std::string("<html>"), whole.substr(0, whole.size() - 30),
                                   whole.substr(40), zip_of({{"a.so", "x"}}), zip_of({})})
    EXPECT_FALSE(unpack_wheel(write(bytes), scratch_.path() + "/out")) << bytes.size();
  EXPECT_FALSE(unpack_wheel("/dev/zero", scratch_.path() + "/out"));
  // Every byte of an archive turned over once: refused or read, and never anything worse.
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0xff);
    static_cast<void>(unpack_wheel(write(bytes), scratch_.path() + "/out"));
  }
}

TEST(WheelName, IsReadAsInstallersReadIt) {
  Wheel wheel;
  ASSERT_TRUE(read_wheel_name(
      "torch_x-1.0+cu12-1-cp38.cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", wheel));
  EXPECT_EQ(wheel.name, "torch_x");
  EXPECT_EQ(wheel.version, "1.0+cu12");
  EXPECT_EQ(wheel.python_tags, (std::vector<std::string>{"cp38", "cp39"}));
  EXPECT_EQ(wheel.platform_tags.size(), 2u);
  for (const char* name : {"x.whl", "a-1-py3-none.whl", "a-1--py3-none-any.whl", "a-1-py3-none-any.zip"})
    EXPECT_FALSE(read_wheel_name(name, wheel)) << name;
}

}  // namespace

// Archives of which two programs see different members are refused, and the refusal says why.

namespace {

using test::Entry;
using test::zip_of;

const Entry kAbout{"m-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp310-cp310-linux_x86_64\n"};
const Entry kOther{"m-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n"};

class WheelLayout : public ::testing::Test {
 protected:
  std::string refusal(const std::string& bytes) const {
    const std::string path = scratch_.path() + "/m-1-cp311-cp311-linux_x86_64.whl";
    std::ofstream(path, std::ios::binary) << bytes;
    const auto unpacked = unpack_wheel(path, scratch_.path() + "/out");
    return unpacked ? "" : english(unpacked.error().message);
  }
  void expect_refused(const std::string& bytes, const std::string& why) const {
    const std::string message = refusal(bytes);
    EXPECT_NE(message.find(why), std::string::npos) << why << ", not: " << message;
  }
  TemporaryDirectory scratch_ = std::move(TemporaryDirectory::create("scankit-layout")).value();
};

// The archive with one of its two-byte or longer fields overwritten.
std::string with_bytes(std::string bytes, std::size_t at, const std::string& by) {
  return bytes.replace(at, by.size(), by);
}

TEST_F(WheelLayout, TakesAnHonestArchive) { EXPECT_EQ(refusal(zip_of({kAbout, {"a.so", "x"}})), ""); }

TEST_F(WheelLayout, RefusesBytesThatBelongToNoMember) {
  const std::string zip = zip_of({kAbout, {"a.so", "x"}});
  expect_refused("#!/bin/sh\n" + zip, "precede");
  expect_refused("#!/bin/sh\n" + zip_of({kAbout, {"a.so", "x"}}, 10), "10 bytes precede its first member");
  expect_refused(zip + "x", "follow the archive");
  const std::string first = zip_of({{"a.so", "y"}});
  expect_refused(first + zip, "precede");
  expect_refused(first + zip_of({kAbout, {"a.so", "x"}}, static_cast<std::uint32_t>(first.size())),
                 "precede its first member");
}

TEST_F(WheelLayout, RefusesTwoEndRecords) {
  std::string outer = zip_of({kAbout, {"a.so", "x"}});
  const std::string inner = zip_of({kOther, {"a.so", "evil"}}, static_cast<std::uint32_t>(outer.size()));
  std::string length;
  test::put(length, static_cast<std::uint32_t>(inner.size()), 2);
  expect_refused(with_bytes(outer, outer.size() - 2, length) + inner, "two end records");
}

TEST_F(WheelLayout, RefusesMembersThatOverlap) {
  // "a.so" holds all of "b.so", header and data; the directory names both.
  const std::string inner = zip_of({{"b.so", "evil"}}).substr(0, 30 + 4 + 4);
  const std::string zip = zip_of({kAbout, {"a.so", inner}, {"b.so", "evil"}});
  const std::size_t a = zip.find("PK\x03\x04", 4), inside = a + 30 + 4, b = inside + inner.size();
  std::string bytes = zip.substr(0, b) + zip.substr(b + inner.size());
  const auto removed = static_cast<std::uint32_t>(inner.size());
  const std::size_t directory = bytes.find("PK\x01\x02"), third = bytes.rfind("PK\x01\x02");
  std::string start, offset;
  test::put(start, static_cast<std::uint32_t>(directory), 4);
  test::put(offset, static_cast<std::uint32_t>(inside), 4);
  bytes = with_bytes(with_bytes(bytes, bytes.size() - 6, start), third + 42, offset);
  ASSERT_EQ(zip.size() - removed, bytes.size());
  expect_refused(bytes, "overlap");
}

TEST_F(WheelLayout, RefusesHeadersThatDisagree) {
  const std::string zip = zip_of({kAbout, {"a.so", "xxxx"}});
  const std::size_t member = zip.find("PK\x03\x04", 4);
  expect_refused(with_bytes(zip, member + 30, "b"), "is called \"b.so\"");
  expect_refused(with_bytes(zip, member + 18, std::string("\x03", 1)), "other sizes or flags");
  expect_refused(with_bytes(zip, member + 14, "x"), "other sizes or flags");
  // A second directory, of the same length, that no end record leads to.
  const std::size_t directory = zip.find("PK\x01\x02");
  const std::string records = zip.substr(directory, zip.size() - 22 - directory);
  expect_refused(zip.substr(0, directory) + records + zip.substr(directory), "precede");
  std::string fewer;
  test::put(fewer, 1, 2);
  test::put(fewer, 1, 2);
  expect_refused(with_bytes(zip, zip.size() - 14, fewer), "directories");
}

TEST_F(WheelLayout, RefusesACommentThatLeavesTheDirectory) {
  const std::string zip = zip_of({kAbout, {"a.so", "xxxx"}});
  const std::size_t last = zip.rfind("PK\x01\x02");
  expect_refused(with_bytes(zip, last + 32, "\x01"), "directory is damaged");
}

TEST_F(WheelLayout, SaysWhatItCannotReadByItsName) {
  Entry packed{"a.so", "xxxx"};
  packed.method = 12;
  expect_refused(zip_of({kAbout, packed}), "BZIP2");
  expect_refused(zip_of({kAbout, {std::string(4000, 'a') + ".so", "x"}}), "unusable length");
  expect_refused(zip_of({kAbout, {"pkg/" + std::string(300, 'a') + ".so", "x"}}), "unusable length");
}

TEST_F(WheelLayout, RefusesMoreTagsThanAWheelHas) {
  std::string tags = "Wheel-Version: 1.0\n";
  for (int i = 0; i < 1200; ++i) tags += "Tag: cp" + std::to_string(i) + "-none-any\n";
  const std::string path = scratch_.path() + "/any.whl";
  std::ofstream(path, std::ios::binary) << zip_of({{"m-1.dist-info/WHEEL", tags}});
  const auto unpacked = unpack_wheel(path, scratch_.path() + "/out");
  ASSERT_FALSE(unpacked);
  EXPECT_NE(english(unpacked.error().message).find("more than 1000 tags"), std::string::npos)
      << english(unpacked.error().message);
}

}  // namespace

}  // namespace scankit::probes
