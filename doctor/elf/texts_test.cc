// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/elf/file_state.h"
#include "doctor/elf/test_library.h"

namespace scankit {
namespace {

using test::Workshop;

std::vector<std::string> texts_in(const std::string& bytes, std::size_t most = 16) {
  const auto image = Image::open(test::in_memory(bytes));
  EXPECT_TRUE(image);
  return image ? find_texts(*image, "mark at ", most) : std::vector<std::string>{};
}

TEST(Texts, AreFoundInConstantDataFromTheMarkOn) {
  const Workshop shop;
  shop.shared("a.so",
              "const char* a(void) { return \"before mark at one\"; } const char* b(void) { return \"mark at "
              "two\"; }");
  auto texts = texts_in(shop.read("a.so"));
  std::ranges::sort(texts);
  EXPECT_EQ(texts, (std::vector<std::string>{"mark at one", "mark at two"}));
  EXPECT_EQ(texts_in(shop.read("a.so"), 1).size(), 1u);
}

// Once, at whatever place of a megabyte it begins.
TEST(Texts, AcrossTwoPiecesAreWhole) {
  const Workshop shop;
  for (const int fill : {(1 << 20) - 12, (1 << 20) - 4, 1 << 20}) {
    shop.shared("b.so",
                "__attribute__((aligned(4096), section(\".rodata.big\"))) const char big[" +
                    std::to_string((1 << 20) + 4096) + "] = {[" + std::to_string(fill) +
                    "] = 'm','a','r','k',' ','a','t',' ','t','h','e',' ','e','n','d',0};",
                {"-Wl,--unique=.rodata.big"});
    EXPECT_EQ(texts_in(shop.read("b.so")), std::vector<std::string>{"mark at the end"}) << fill;
  }
}

// Thirty megabytes of marks without an end: each search for one stops after a text's greatest length.
TEST(Texts, NothingButMarksEndsSoon) {
  const Workshop shop;
  shop.shared("c.so", "const char c[30 << 20] = {1};");
  std::string bytes = shop.read("c.so");
  const auto library = Image::open(test::in_memory(bytes));
  ASSERT_TRUE(library);
  for (const Section& section : library->sections())
    if (section.name == ".rodata")
      for (std::uint64_t at = 0; at + 8 < section.size; at += 8)
        bytes.replace(section.offset + at, 8, "mark at ");
  EXPECT_LE(texts_in(bytes).size(), 16u);
}

}  // namespace
}  // namespace scankit
