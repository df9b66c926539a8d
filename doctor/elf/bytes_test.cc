// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/bytes.h"

#include <gtest/gtest.h>

#include <limits>

#include "doctor/elf/library_test.h"

namespace scankit::elf {
namespace {

constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();

TEST(Bytes, ReadsOnlyWhatIsWhollyInside) {
  const Bytes bytes(std::string("\x01\x02\x03\x04\x05", 5));
  EXPECT_EQ(bytes.read<std::uint32_t>(0), 0x04030201u);
  EXPECT_EQ(bytes.read<std::uint32_t>(1), 0x05040302u);
  EXPECT_FALSE(bytes.read<std::uint32_t>(2));
  EXPECT_FALSE(bytes.read<std::uint32_t>(kHuge));
  EXPECT_FALSE(bytes.element<std::uint32_t>(kHuge / 2));
  EXPECT_FALSE(Bytes().read<char>(0));
}

TEST(Bytes, SlicesNeverReachBeyondTheirParent) {
  const Bytes bytes(std::string("abcdef"));
  const auto slice = bytes.slice(2, 3);
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->text(), "cde");
  EXPECT_FALSE(slice->read<char>(3));
  EXPECT_FALSE(slice->slice(1, kHuge));
  EXPECT_FALSE(bytes.slice(kHuge, 2));
  EXPECT_FALSE(bytes.slice(7, 0));
  EXPECT_TRUE(bytes.slice(6, 0));
}

TEST(Bytes, TextNeedsItsEnd) {
  const Bytes bytes(std::string("ab\0cd", 5));
  EXPECT_EQ(bytes.c_string(0), "ab");
  EXPECT_EQ(bytes.c_string(2), "");
  EXPECT_FALSE(bytes.c_string(3));
  EXPECT_FALSE(bytes.c_string(5));
}

TEST(FileBytes, RefusesLengthsBeyondTheFileBeforeItAllocates) {
  const FileBytes file(test::in_memory("hello"));
  EXPECT_FALSE(file.slice(0, 60u << 20));
  EXPECT_FALSE(file.slice(kHuge, kHuge));
  EXPECT_FALSE(file.read<std::uint64_t>(0));
  EXPECT_FALSE(file.c_string(0));  // no NUL
  EXPECT_EQ(file.slice(1, 3)->text(), "ell");
}

}  // namespace
}  // namespace scankit::elf
