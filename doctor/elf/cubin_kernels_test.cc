// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>

#include "doctor/elf/fatbin.h"

namespace scankit::elf {
namespace {

// A cubin of one kernel "k", section by section; what real compilers write is read in
// doctor/tests/e2e/test_fatbins.py.
class Cubin {
 public:
  Cubin() { add("", SHT_NULL, ""); }

  void add(const std::string& name, std::uint32_t type, const std::string& bytes, std::uint64_t size = 0) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<std::uint32_t>(names_.size());
    names_ += name + '\0';
    section.sh_type = type;
    section.sh_offset = sizeof(Elf64_Ehdr) + contents_.size();
    section.sh_size = type == SHT_NOBITS ? size : bytes.size();
    contents_ += bytes;
    sections_.push_back(section);
  }

  std::string bytes() {
    add(".shstrtab", SHT_STRTAB, "");
    sections_.back().sh_size = names_.size();
    contents_ += names_;
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<std::uint16_t>(sections_.size());
    header.e_shstrndx = static_cast<std::uint16_t>(sections_.size() - 1);
    header.e_shoff = sizeof header + contents_.size();
    std::string all = raw(header) + contents_;
    for (const Elf64_Shdr& section : sections_) all += raw(section);
    return all;
  }

  template <class T>
  static std::string raw(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }

 private:
  std::string names_, contents_;
  std::vector<Elf64_Shdr> sections_;
};

std::string attribute(std::uint8_t which, std::initializer_list<std::uint32_t> words) {
  std::string text{'\x04', static_cast<char>(which), static_cast<char>(words.size() * 4), '\0'};
  for (const std::uint32_t word : words) text += Cubin::raw(word);
  return text;
}

std::string one_kernel(const std::string& info_of_k) {
  Elf64_Sym none{}, kernel{}, function{};
  kernel.st_name = 1;
  kernel.st_info = function.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  kernel.st_other = 0x10;  // function: one that kernels call
  Cubin cubin;
  cubin.add(".strtab", SHT_STRTAB, std::string("\0k\0", 3));
  cubin.add(".symtab", SHT_SYMTAB, Cubin::raw(none) + Cubin::raw(function) + Cubin::raw(kernel));
  cubin.add(".nv.info", SHT_LOPROC,
            attribute(0x2f, {1, 11}) + attribute(0x2f, {2, 96}) + attribute(0x11, {2, 48}));
  cubin.add(".nv.info.k", SHT_LOPROC, info_of_k);
  cubin.add(".nv.shared.k", SHT_NOBITS, "", 2048);
  return cubin.bytes();
}

TEST(CubinKernels, ReadsWhatAKernelTakes) {
  const auto kernels =
      cubin_kernels(one_kernel(std::string("\x03\x1b\xff\x00", 4) + attribute(0x05, {64, 2, 1})));
  ASSERT_TRUE(kernels) << english(kernels.error().message);
  ASSERT_EQ(kernels->size(), 1u);
  const CubinKernel& k = kernels->front();
  EXPECT_EQ(k.name, "k");
  EXPECT_EQ(k.registers, 96u);
  EXPECT_EQ(k.stack_bytes, 48u);
  EXPECT_EQ(k.static_shared_bytes, 2048u);
  EXPECT_EQ(k.most_threads, 128u);
}

TEST(CubinKernels, ABlockOfImpossibleSizeIsNoBound) {
  const auto kernels = cubin_kernels(one_kernel(attribute(0x05, {0xffffffff, 0xffffffff, 2})));
  ASSERT_TRUE(kernels);
  EXPECT_EQ(kernels->front().most_threads, 0u);
}

TEST(CubinKernels, NoTruncationAndNoFlippedByteIsMoreThanAnError) {
  const std::string good = one_kernel(attribute(0x05, {64, 2, 1}));
  for (std::size_t length = 0; length < good.size(); ++length) (void)cubin_kernels(good.substr(0, length));
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int mask : {0xff, 0x80, 0x01}) {
      std::string bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ mask);
      (void)cubin_kernels(bad);
    }
  EXPECT_FALSE(cubin_kernels(good.substr(0, sizeof(Elf64_Ehdr))));
  EXPECT_FALSE(cubin_kernels("not one"));
}

}  // namespace
}  // namespace scankit::elf
