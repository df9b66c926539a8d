// SPDX-License-Identifier: Apache-2.0
#include <lz4.h>
#include <lz4hc.h>

#include <optional>

#include "builder/compile/compile.h"
#include "doctor/base/say.h"
#include "doctor/elf/bytes.h"

namespace scankit::compile {
namespace {

// NVIDIA does not document the layout. These values were read from what nvcc 12.9 and 13.0 write and tried on
// a driver; doctor/elf/README.md has the table of fields.
constexpr std::uint32_t kContainerMagic = 0xBA55ED50;
constexpr std::uint16_t kContainerVersion = 1, kContainerHeader = 16, kEntryVersion = 0x0101;
constexpr std::uint16_t kKindPtx = 1, kKindElf = 2;
constexpr std::uint32_t kCubinHeader = 64, kPtxHeader = 80;
constexpr std::uint64_t k64Bit = 0x1, kLinux = 0x10, kArchSpecific = 0x100000, kFamily = 0x200000,
                        kSm100On = 0x1000000, kLz4 = 0x2000;

struct IsaVersion {
  std::uint16_t major = 0, minor = 0;
};

// The ISA version of a PTX text, from its line ".version 9.0"; nothing if the first 4 KiB have no such line.
std::optional<IsaVersion> ptx_isa(const std::string& text) {
  const std::string word = "\n.version ";
  const auto at = text.find(word);
  if (at == std::string::npos || at > 4096) return std::nullopt;
  unsigned major = 0, minor = 0;
  std::size_t i = at + word.size();
  const auto number = [&](unsigned& value) {
    const std::size_t start = i;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && i < start + 3; ++i)
      value = value * 10 + static_cast<unsigned>(text[i] - '0');
    return i > start;
  };
  if (!number(major) || i >= text.size() || text[i++] != '.' || !number(minor)) return std::nullopt;
  return IsaVersion{static_cast<std::uint16_t>(major), static_cast<std::uint16_t>(minor)};
}

// The version field of a cubin's entry: 1 and the cubin's EI_ABIVERSION, as nvcc writes it. ABI version 7
// (CUDA 12, up to sm_90) becomes 1.7, version 8 becomes 1.8.
std::optional<IsaVersion> cubin_version(const std::string& bytes) {
  if (bytes.size() < 64 || !bytes.starts_with("\177ELF\2\1")) return std::nullopt;
  return IsaVersion{1, static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[8]))};
}

std::uint64_t flags_of(const module::Target& target) {
  std::uint64_t flags = k64Bit | kLinux;
  if (target.specific == "a") flags |= kArchSpecific;
  if (target.specific == "f") flags |= kFamily;
  if (!target.ptx && target.sm >= 100) flags |= kSm100On;
  return flags;
}

// The image as an LZ4 block; empty if that is not shorter. A cubin shrinks to a third. Level 9 takes 50 ms for
// 1 MB of it; level 12 takes 120, for 0.7 % less.
std::string pack(const std::string& bytes) {
  constexpr int kLevel = 9;
  const int size = static_cast<int>(bytes.size());  // kImageLimit of compile.cc is far below LZ4's 2 GB
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(size)), '\0');
  const int length =
      LZ4_compress_HC(bytes.data(), packed.data(), size, static_cast<int>(packed.size()), kLevel);
  packed.resize(length > 0 && length < size ? static_cast<std::size_t>(length) : 0);
  return packed;
}

// The header of one entry; the payload, padded to 8 bytes, follows it.
void append_entry(std::string& out, const BuiltCode& image, IsaVersion version,
                  const Fatbin::Payload& payload) {
  const bool ptx = image.target.ptx, packed = payload.full_size != 0;
  elf::append_little_endian<std::uint16_t>(out, ptx ? kKindPtx : kKindElf);
  elf::append_little_endian<std::uint16_t>(out, kEntryVersion);
  elf::append_little_endian<std::uint32_t>(out, ptx ? kPtxHeader : kCubinHeader);
  elf::append_little_endian<std::uint64_t>(out, (payload.size + 7) / 8 * 8);
  elf::append_little_endian(out, static_cast<std::uint32_t>(packed ? payload.size : 0));
  elf::append_little_endian<std::uint32_t>(out, ptx ? 64 : 0);  // where the option blob lies
  elf::append_little_endian<std::uint16_t>(out, version.minor);
  elf::append_little_endian<std::uint16_t>(out, version.major);
  elf::append_little_endian<std::uint32_t>(out, image.target.sm);
  elf::append_little_endian<std::uint32_t>(out, ptx ? 64 : 0);  // name: none
  elf::append_little_endian<std::uint32_t>(out, 0);
  elf::append_little_endian<std::uint64_t>(out, flags_of(image.target) | (packed ? kLz4 : 0));
  elf::append_little_endian<std::uint64_t>(out, 0);
  elf::append_little_endian<std::uint64_t>(out, payload.full_size);
  if (!ptx) return;
  elf::append_little_endian<std::uint64_t>(out,
                                           0x48);  // the option blob; a driver dies of SIGSEGV without it
  elf::append_little_endian<std::uint64_t>(out, 0);
}

}  // namespace

// The container's header has the size of all entries, so it comes last. Payload offsets include it.
Result<Fatbin> write_fatbin(const std::vector<BuiltCode>& images) {
  Fatbin fatbin;
  std::string entries;
  for (const BuiltCode& image : images) {
    const auto version = image.target.ptx ? ptx_isa(image.bytes) : cubin_version(image.bytes);
    if (!version)
      return Error{
          Errc::Malformed,
          image.target.ptx
              ? message("the compiler's output for {} {} is not PTX", image.unit, image.target.name())
              : message("the compiler's output for {} {} is not a cubin", image.unit, image.target.name()),
          ""};
    const std::string packed = image.packed.empty() ? pack(image.bytes) : image.packed;
    const std::string& stored = packed.empty() ? image.bytes : packed;
    Fatbin::Payload payload{0, stored.size(), packed.empty() ? 0 : image.bytes.size()};
    append_entry(entries, image, *version, payload);
    payload.offset = kContainerHeader + entries.size();
    fatbin.payloads.push_back(payload);
    entries += stored;
    elf::pad_to(entries, 8);
  }
  elf::append_little_endian<std::uint32_t>(fatbin.bytes, kContainerMagic);
  elf::append_little_endian<std::uint16_t>(fatbin.bytes, kContainerVersion);
  elf::append_little_endian<std::uint16_t>(fatbin.bytes, kContainerHeader);
  elf::append_little_endian<std::uint64_t>(fatbin.bytes, entries.size());
  fatbin.bytes += entries;
  return fatbin;
}

}  // namespace scankit::compile
