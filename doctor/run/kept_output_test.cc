// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/run/streams.h"

namespace scankit::run {
namespace {

constexpr const char* kTraceback = "Traceback (most recent call last)";

std::string lines(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += "step " + std::to_string(i) + "\n";
  return text;
}

// Appended in pieces of `piece` bytes.
KeptOutput kept(const std::string& text, std::size_t piece) {
  KeptOutput output;
  for (std::size_t at = 0; at < text.size(); at += piece) output.append(text.substr(at, piece));
  return output;
}

TEST(KeptOutput, ShortOutputIsKeptWhole) {
  for (const std::size_t piece : {1u, 7u, 4096u, 1u << 20}) {
    const std::string text = lines(KeptOutput::kEnd - 100);
    EXPECT_EQ(kept(text, piece).text(), text) << piece;
  }
  EXPECT_EQ(KeptOutput().text(), "");
  EXPECT_EQ(KeptOutput().last(), '\n');
}

TEST(KeptOutput, LongOutputKeepsItsEnd) {
  const std::string text = lines(5 * KeptOutput::kEnd + 12345);
  for (const std::size_t piece : {13u, 65536u, 3u << 20}) {
    const KeptOutput output = kept(text, piece);
    EXPECT_EQ(output.text(), text.substr(text.size() - KeptOutput::kEnd)) << piece;
    EXPECT_EQ(output.bytes(), text.size());
    EXPECT_EQ(output.last(), '\n');
  }
}

// The error is at every place of a piece, and across the border of two.
TEST(KeptOutput, TheFirstErrorIsKeptWhereverThePiecesEnd) {
  for (std::size_t before : {0u, 1u, 100u, 4095u, 4096u, 70000u, 300000u, 1000000u}) {
    std::string text = lines(before).substr(0, before) + kTraceback + ": the first\n";
    const std::size_t error = before;
    text += lines(3 * KeptOutput::kEnd);
    text += std::string(kTraceback) + ": the last\n";
    for (const std::size_t piece : {1u, 5u, 33u, 1000u, 4096u, 65536u, 1u << 21}) {
      if (piece < 33 && before > 100000) continue;  // slow, and no other case
      const std::string found = kept(text, piece).text();
      ASSERT_NE(found.find(": the first\n"), std::string::npos) << before << " " << piece;
      EXPECT_NE(found.find(": the last\n"), std::string::npos);
      EXPECT_NE(found.find(" bytes were not kept ...]\n"), std::string::npos);
      const std::size_t start = error > KeptOutput::kBeforeError ? error - KeptOutput::kBeforeError : 0;
      EXPECT_EQ(found.substr(0, 200), text.substr(start, 200)) << before << " " << piece;
    }
  }
}

TEST(KeptOutput, AFirstErrorThatReachesIntoTheEndIsNotRepeated) {
  const std::string text = lines(1000) + "x.cu(3): error: no\n" + lines(KeptOutput::kEnd + 20000);
  EXPECT_EQ(kept(text, 65536).text(), text);
}

TEST(KeptOutput, MemoryIsBounded) {
  KeptOutput output;
  const std::string piece = lines(1u << 16) + ": error\n";
  for (int i = 0; i < 500; ++i) output.append(piece);
  EXPECT_LE(output.text().size(),
            KeptOutput::kEnd + KeptOutput::kFirstError + KeptOutput::kBeforeError + 100);
}

TEST(KeptOutput, KnowsWhetherSomethingIsMissing) {
  KeptOutput output;
  output.append(std::string(KeptOutput::kEnd, 'x'));
  EXPECT_FALSE(output.is_cut());
  output.append("y");
  EXPECT_TRUE(output.is_cut());
  // The first error and the end meet: nothing is missing until more comes than both keep.
  KeptOutput error;
  error.append("Traceback (most recent call last)\n" + std::string(KeptOutput::kEnd, 'x'));
  EXPECT_FALSE(error.is_cut());
  error.append(std::string(KeptOutput::kFirstError + KeptOutput::kBeforeError, 'x'));
  EXPECT_TRUE(error.is_cut());
}

}  // namespace
}  // namespace scankit::run
