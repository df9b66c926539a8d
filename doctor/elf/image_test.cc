// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "doctor/elf/library_test.h"

namespace scankit::elf {
namespace {

using test::in_memory;

TEST(FileState, TellsWhatElseAFileIs) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty"},
      {"<!DOCTYPE html><html>Not found</html>", "html"},
      {"\n  <HTML><head>", "html"},
      {"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>", "html"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git-lfs"},
      {"PK\x03\x04rest", "not-elf"},
      {"MZ\x90", "windows"},
      {"Entry not found", "not-elf"},
      {std::string(4096, '\0'), "not-elf"},
      {"\x7f"
       "E",
       "truncated"},
      {"\x7f"
       "ELF\x02\x01\x01",
       "truncated"}};
  for (const auto& [bytes, state] : cases) {
    const FileState found = file_state(in_memory(bytes));
    EXPECT_EQ(found.state, state) << bytes.substr(0, 40);
    EXPECT_FALSE(found.detail.empty()) << state;
  }
}

TEST(FileState, NamesTheMachineOfForeignLibraries) {
  Elf64_Ehdr arm{};
  std::memcpy(arm.e_ident, ELFMAG, SELFMAG);
  arm.e_ident[EI_CLASS] = ELFCLASS64;
  arm.e_ident[EI_DATA] = ELFDATA2LSB;
  arm.e_machine = EM_AARCH64;
  arm.e_phnum = 1;
  arm.e_phoff = sizeof arm;
  arm.e_phentsize = sizeof(Elf64_Phdr);
  const Elf64_Phdr nothing{};
  std::string bytes(reinterpret_cast<const char*>(&arm), sizeof arm);
  bytes.append(reinterpret_cast<const char*>(&nothing), sizeof nothing);
  EXPECT_EQ(file_state(in_memory(bytes)).state, "elf");
  EXPECT_EQ(file_state(in_memory(bytes)).machine, "aarch64");

  Elf32_Ehdr old{};
  std::memcpy(old.e_ident, ELFMAG, SELFMAG);
  old.e_ident[EI_CLASS] = ELFCLASS32;
  old.e_ident[EI_DATA] = ELFDATA2LSB;
  old.e_machine = EM_386;
  const FileState state = file_state(in_memory(std::string(reinterpret_cast<const char*>(&old), sizeof old)));
  EXPECT_EQ(state.state, "elf");
  EXPECT_EQ(state.machine, "i686");
}

TEST(FileState, SaysHowAFileFailed) {
  EXPECT_EQ(state_of_failure({Errc::NotFound, "gone", ""}).state, "vanished");
  EXPECT_EQ(state_of_failure({Errc::PermissionDenied, "no", ""}).state, "unreadable");
}

}  // namespace

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

}  // namespace scankit::elf
