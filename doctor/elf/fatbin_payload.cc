// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "doctor/base/say.h"
#include "doctor/elf/fatbin.h"

namespace scankit {
namespace {

Error damaged_image(std::string why) {
  return {Errc::Malformed, say("the device image is damaged: {}", std::move(why)), ""};
}

Result<std::string> unpack_lz4(std::string_view packed, std::uint64_t size) {
  if (packed.size() > LZ4_MAX_INPUT_SIZE || size > LZ4_MAX_INPUT_SIZE)
    return damaged_image(say("too long for LZ4"));
  std::string out(size, '\0');
  const int got =
      LZ4_decompress_safe(packed.data(), out.data(), static_cast<int>(packed.size()), static_cast<int>(size));
  if (got < 0 || static_cast<std::uint64_t>(got) != size)
    return damaged_image(say("its LZ4 data does not unpack to the stated size"));
  return out;
}

// One frame; its own header may state any size, so the entry's decides how much memory there is.
Result<std::string> unpack_zstd(std::string_view packed, std::uint64_t size) {
  std::string out(size, '\0');
  const std::size_t frame = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
  if (ZSTD_isError(frame) != 0) return damaged_image(say("it holds no zstd frame"));
  const std::size_t got = ZSTD_decompress(out.data(), out.size(), packed.data(), frame);
  if (ZSTD_isError(got) != 0 || got != size)
    return damaged_image(say("its zstd data does not unpack to the stated size"));
  return out;
}

// A frame gives its data a block at a time, so that the first one has to be there whole (RFC 8878: 128 KiB at
// most).
std::string zstd_start(std::string_view packed, std::size_t size) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          ZSTD_freeDStream);
  std::string out(size, '\0');
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  ZSTD_outBuffer room{out.data(), out.size(), 0};
  while (stream && room.pos < room.size) {
    const std::size_t before = in.pos + room.pos;
    if (ZSTD_isError(ZSTD_decompressStream(stream.get(), &room, &in)) != 0) break;
    if (in.pos + room.pos == before) break;
  }
  out.resize(room.pos);
  return out;
}

// The ELF header of the payload, or less where it cannot be had.
Result<std::string> payload_start(const FileBytes& file, const FatbinEntry& entry) {
  constexpr std::uint64_t kBlock = 160u << 10;
  constexpr std::size_t kWanted = sizeof(Elf64_Ehdr);
  const bool plain = entry.compression == "none";
  SCANKIT_TRY(const Bytes packed,
              file.slice(entry.offset, std::min(entry.size, plain ? kWanted : kBlock), kBlock));
  if (plain) return std::string(packed.text());
  if (entry.compression == "zstd") return zstd_start(packed.text(), kWanted);
  if (entry.compression != "lz4")
    return Error{Errc::Unsupported, say("a device image packed in an unknown way"), ""};
  std::string out(kWanted, '\0');
  const int got =
      LZ4_decompress_safe_partial(packed.text().data(), out.data(), static_cast<int>(packed.size()),
                                  static_cast<int>(kWanted), static_cast<int>(kWanted));
  out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return out;
}

bool take_number(std::string_view& text, unsigned& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::string_view behind(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + word.size());
}

}  // namespace

Result<std::string> fatbin_payload(const FileBytes& file, const FatbinEntry& entry, std::uint64_t limit) {
  if (entry.full_size > limit || entry.size > limit)
    return Error{Errc::Unsupported, say("a device image of {} bytes, above the limit", entry.full_size), ""};
  // 255 bytes for one is the most that LZ4 reaches; zstd's repeats reach more, but no image has them.
  if (entry.compression == "lz4" && entry.full_size / 256 > entry.size)
    return damaged_image(say("an impossible size"));
  SCANKIT_TRY(const Bytes packed, file.slice(entry.offset, entry.size, limit));
  if (entry.compression == "none") return std::string(packed.text());
  if (entry.compression == "lz4") return unpack_lz4(packed.text(), entry.full_size);
  if (entry.compression == "zstd") return unpack_zstd(packed.text(), entry.full_size);
  return Error{Errc::Unsupported, say("a device image packed in an unknown way"), ""};
}

// CUDA 12 for sm <= 90 writes EI_OSABI 0x33 and the number in the low byte of e_flags; CUDA 13, and 12.9 for
// sm_100 and up, write 0x41 and shift it by 8 (doctor/elf/README.md).
Result<CubinFacts> cubin_facts(std::string_view cubin) {
  const Bytes bytes{std::string(cubin.substr(0, sizeof(Elf64_Ehdr)))};
  const auto header = bytes.read<Elf64_Ehdr>(0);
  constexpr unsigned kMachineCuda = 190;
  if (!header || !cubin.starts_with(ELFMAG) || header->e_machine != kMachineCuda)
    return damaged_image(say("it is not an ELF file for a GPU"));
  CubinFacts facts;
  facts.abi_version = header->e_ident[EI_ABIVERSION];
  const unsigned os_abi = header->e_ident[EI_OSABI];
  if (os_abi == 0x33) {
    facts.sm = header->e_flags & 0xff;
  } else if (os_abi == 0x41) {
    facts.sm = (header->e_flags >> 8) & 0xff;
  } else {
    return Error{Errc::Unsupported, say("a cubin of ELF dialect {}", os_abi), ""};
  }
  return facts;
}

unsigned cubin_abi(const FileBytes& file, const FatbinEntry& entry) {
  const auto start = payload_start(file, entry);
  if (!start) return 0;
  const auto facts = cubin_facts(*start);
  return facts ? facts->abi_version : 0;
}

// "Cuda compilation tools, release 13.0, V13.0.88"
std::string cubin_toolkit(const FileBytes& file, const FatbinEntry& entry) {
  const auto cubin = fatbin_payload(file, entry, 64u << 20);
  if (!cubin) return "";
  std::string_view text = behind(*cubin, "compilation tools, release ");
  const std::string_view before = text;
  unsigned major = 0, minor = 0;
  if (!take_number(text, major) || !text.starts_with('.')) return "";
  text.remove_prefix(1);
  if (!take_number(text, minor)) return "";
  return std::string(before.substr(0, before.size() - text.size()));
}

Result<PtxFacts> ptx_facts(std::string_view text) {
  PtxFacts facts;
  std::string_view version = behind(text, ".version ");
  if (!take_number(version, facts.isa_major) || !version.starts_with('.'))
    return damaged_image(say("PTX without .version"));
  version.remove_prefix(1);
  if (!take_number(version, facts.isa_minor)) return damaged_image(say("PTX with a damaged .version"));
  std::string_view target = behind(version, ".target sm_");
  if (!take_number(target, facts.sm)) return damaged_image(say("PTX without .target"));
  if (target.starts_with('a') || target.starts_with('f')) facts.specific = target.substr(0, 1);
  return facts;
}

}  // namespace scankit
