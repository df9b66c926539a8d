// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/wheel.h"

#include <gtest/gtest.h>

#include <fstream>

#include "doctor/base/files.h"
#include "doctor/probes/target/test_zip.h"

namespace scankit {
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
    EXPECT_NE(unpacked.error().message.find(path), std::string::npos);
    EXPECT_EQ(unpacked.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(unpacked.error().message.find('\x1b'), std::string::npos);
    return unpacked.error().message;
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
  ASSERT_TRUE(unpacked) << unpacked.error().message;
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
  EXPECT_NE(refusal({"a.so", "xxxx", 0100644, 0xfffffffe}).find("far more"), std::string::npos);
  EXPECT_NE(refusal({"m-1.dist-info/WHEEL", "again"}).find("twice"), std::string::npos);
  const std::string record = "a.so,sha256=AAAA,4\n";
  const auto path = write(zip_of({kWheel, {"m-1.dist-info/RECORD", record}, {"a.so", "xxxx"}}));
  EXPECT_NE(unpack_wheel(path, scratch_.path() + "/out").error().message.find("RECORD"), std::string::npos);
}

TEST_F(WheelFile, TakesAHashThatIsRight) {
  // sha256 of "xxxx", as RECORD writes it.
  const std::string record =
      "a.so,sha256=" + std::string("JIGmPIWmLPiJ0rFJ8aUumFqTQXUBc_4B7_UMwntZQbU") + ",4\n";
  const auto path = write(zip_of({kWheel, {"m-1.dist-info/RECORD", record}, {"a.so", "xxxx"}}));
  const auto unpacked = unpack_wheel(path, scratch_.path() + "/out");
  EXPECT_TRUE(unpacked) << unpacked.error().message << sha256_hex("xxxx");
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
}  // namespace scankit
