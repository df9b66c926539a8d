// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/file_state.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "doctor/elf/test_library.h"

namespace scankit {
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
}  // namespace scankit
