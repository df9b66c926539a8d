// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/fatbin.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "doctor/elf/library_test.h"

namespace scankit::elf {
namespace {

using test::in_memory;

const std::string kPtx =
    "//\n.version 8.1\n.target sm_75\n.address_size 64\n" + std::string(3000, ' ') + "\n";

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Spec {
  std::uint16_t kind;
  std::uint32_t arch;
  std::uint64_t flags;
  std::string payload;
  std::uint64_t full_size = 0;  // 0: stored raw
};

std::string entry(const Spec& spec) {
  const std::uint64_t padded = (spec.payload.size() + 7) / 8 * 8;
  std::string bytes;
  put<std::uint16_t>(bytes, spec.kind);
  put<std::uint16_t>(bytes, 0x0101);
  put<std::uint32_t>(bytes, 64);
  put<std::uint64_t>(bytes, padded);
  put<std::uint32_t>(bytes, spec.full_size != 0 ? static_cast<std::uint32_t>(spec.payload.size()) : 0);
  put<std::uint32_t>(bytes, 0);
  put<std::uint16_t>(bytes, 1);  // minor
  put<std::uint16_t>(bytes, 8);  // major
  put<std::uint32_t>(bytes, spec.arch);
  put<std::uint64_t>(bytes, 0);
  put<std::uint64_t>(bytes, spec.flags);
  put<std::uint64_t>(bytes, 0);
  put<std::uint64_t>(bytes, spec.full_size);
  return bytes + spec.payload + std::string(padded - spec.payload.size(), '\0');
}

std::string container(const std::vector<Spec>& specs) {
  std::string entries, bytes;
  for (const Spec& spec : specs) entries += entry(spec);
  put<std::uint32_t>(bytes, 0xba55ed50);
  put<std::uint16_t>(bytes, 1);
  put<std::uint16_t>(bytes, 16);
  put<std::uint64_t>(bytes, entries.size());
  return bytes + entries;
}

std::string lz4(const std::string& text) {
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(text.size()))), '\0');
  packed.resize(static_cast<std::size_t>(LZ4_compress_default(
      text.data(), packed.data(), static_cast<int>(text.size()), static_cast<int>(packed.size()))));
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string cubin(unsigned char os_abi, std::uint32_t flags) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_OSABI] = os_abi;
  header.e_machine = 190;
  header.e_flags = flags;
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

std::vector<Spec> all_kinds() {
  return {{2, 90, 0x11, cubin(0x41, 0x6005a04)},
          {2, 90, 0x100011, cubin(0x33, 0x5a055a)},
          {2, 120, 0x200011, cubin(0x41, 0x6007804)},
          {1, 75, 0x2011, lz4(kPtx), kPtx.size()},
          {1, 75, 0x8011, zstd(kPtx), kPtx.size()},
          {1, 75, 0x11, kPtx},
          {8, 90, 0x18011, "lto", 0}};
}

std::vector<FatbinEntry> read(const std::string& bytes) {
  const auto entries = read_fatbin(FileBytes(in_memory(bytes)), 0, bytes.size());
  EXPECT_TRUE(entries) << english(entries.error().message);
  return entries ? *entries : std::vector<FatbinEntry>();
}

TEST(Fatbin, ReadsEveryKindOfImage) {
  // Two containers behind each other with padding between, as the linker leaves those of two objects.
  const std::string bytes = container({all_kinds()[0]}) + std::string(8, '\0') + container(all_kinds());
  const auto entries = read(bytes);
  ASSERT_EQ(entries.size(), 8u);
  EXPECT_EQ(entries[0].kind, "cubin");
  EXPECT_EQ(entries[0].sm, 90u);
  EXPECT_EQ(entries[0].specific, "");
  EXPECT_EQ(entries[2].specific, "a");
  EXPECT_EQ(entries[3].specific, "f");
  EXPECT_EQ(entries[4].compression, "lz4");
  EXPECT_EQ(entries[5].compression, "zstd");
  EXPECT_EQ(entries[6].compression, "none");
  EXPECT_EQ(entries[6].isa_major, 8u);
  EXPECT_EQ(entries[6].isa_minor, 1u);
  EXPECT_EQ(entries[7].kind, "lto");
}

TEST(Fatbin, UnpacksBothCompressions) {
  const std::string bytes = container(all_kinds());
  const FileBytes file(in_memory(bytes));
  for (const FatbinEntry& e : read(bytes)) {
    if (e.kind != "ptx") continue;
    const auto text = fatbin_payload(file, e);
    ASSERT_TRUE(text) << e.compression << english(text.error().message);
    EXPECT_EQ(text->substr(0, kPtx.size()), kPtx);
    const auto facts = ptx_facts(*text);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->isa_major * 100 + facts->isa_minor, 801u);
    EXPECT_EQ(facts->sm, 75u);
    EXPECT_EQ(fatbin_payload(file, e, 100).error().code, Errc::Unsupported);
  }
}

TEST(Fatbin, ReadsBothDialectsOfCubins) {
  EXPECT_EQ(cubin_facts(cubin(0x41, 0x6005a04))->sm, 90u);
  EXPECT_EQ(cubin_facts(cubin(0x33, 0x5a055a))->sm, 90u);
  EXPECT_FALSE(cubin_facts(cubin(0x07, 0)));
  EXPECT_FALSE(cubin_facts("nothing"));
  EXPECT_FALSE(ptx_facts(".version x"));
}

TEST(Fatbin, EveryTruncationAndFlippedByteIsSurvived) {
  const std::string good = container(all_kinds());
  for (std::size_t length = 1; length < good.size(); ++length) {
    const auto entries = read_fatbin(FileBytes(in_memory(good.substr(0, length))), 0, length);
    EXPECT_FALSE(entries && entries->size() >= all_kinds().size()) << length;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(~bad[at]);
    const FileBytes file(in_memory(bad));
    const auto entries = read_fatbin(file, 0, bad.size());
    for (std::size_t i = 0; entries && i < entries->size(); ++i)
      (void)fatbin_payload(file, (*entries)[i], 1u << 20);
  }
}

TEST(Fatbin, FindsImagesWithAndWithoutASectionTable) {
  const test::Workshop shop;
  shop.write("images.bin", container(all_kinds()));
  const std::string source = "__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.balign 64\\n.incbin \\\"" +
                             shop.path("images.bin") + "\\\"\\n.previous\"); int x;\n";
  shop.shared("ext.so", source, {"-nostdlib"});
  std::string bytes = shop.read("ext.so");
  EXPECT_EQ(find_device_images(Image::open(in_memory(bytes)).value())->size(), all_kinds().size());
  std::fill_n(bytes.begin() + offsetof(Elf64_Ehdr, e_shoff), 8, '\0');
  EXPECT_EQ(find_device_images(Image::open(in_memory(bytes)).value())->size(), all_kinds().size());
}

TEST(Fatbin, ReadsWhatTheRealCompilerWrites) {
  const test::Workshop shop;
  shop.write("k.cu", "__global__ void k(float* p) { p[threadIdx.x] = 1; }\n");
  const auto compile = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"nvcc", "-fatbin", "-o", shop.path("k.fatbin"), shop.path("k.cu")});
    return run_process({.argv = flags, .environment = {}, .working_directory = {}, .standard_input = {}});
  };
  const auto run = compile(
      {"-gencode", "arch=compute_90,code=[sm_90,compute_90]", "-gencode", "arch=compute_90a,code=sm_90a"});
  if (!run || !run->ok()) GTEST_SKIP() << "no nvcc on PATH that makes code for sm_90";
  const std::string bytes = shop.read("k.fatbin");
  const FileBytes file(in_memory(bytes));
  const auto entries = read(bytes);
  ASSERT_EQ(entries.size(), 3u);
  for (const FatbinEntry& e : entries) {
    EXPECT_EQ(e.sm, 90u);
    const auto payload = fatbin_payload(file, e);
    ASSERT_TRUE(payload) << english(payload.error().message);
    if (e.kind == "cubin") {
      EXPECT_EQ(cubin_facts(*payload)->sm, 90u);
    } else {
      EXPECT_EQ(ptx_facts(*payload)->isa_major, e.isa_major);
      EXPECT_EQ(ptx_facts(*payload)->isa_minor, e.isa_minor);
    }
  }
  EXPECT_EQ(std::ranges::count(entries, "a", &FatbinEntry::specific), 1);
  EXPECT_EQ(std::ranges::count(entries, "ptx", &FatbinEntry::kind), 1);
}

}  // namespace
}  // namespace scankit::elf
