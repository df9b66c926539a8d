// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/fatbin.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "doctor/base/say.h"

// A fatbin is a row of containers, a container is a row of entries, and an entry is a header with one image,
// stored raw or packed. read_fatbin() and find_device_images() list the entries and read headers alone;
// fatbin_payload() and the functions around it read the images. Every length comes from the file and is
// compared with what encloses it before anything is allocated.
namespace scankit::elf {
namespace {

Error damaged_image(Message why) {
  return {Errc::Malformed, message("the device image is damaged: {}", std::move(why)), ""};
}

// One frame; its own header may state any size, so the entry's decides how much memory there is.
Result<std::string> unpack_zstd(std::string_view packed, std::uint64_t size) {
  std::string out(size, '\0');
  const std::size_t frame = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
  if (ZSTD_isError(frame) != 0) return damaged_image(message("it contains no zstd frame"));
  const std::size_t got = ZSTD_decompress(out.data(), out.size(), packed.data(), frame);
  if (ZSTD_isError(got) != 0 || got != size)
    return damaged_image(message("its zstd data does not decompress to the stated size"));
  return out;
}

// A frame gives its data one block at a time, so the whole first block has to be there (RFC 8878: at most
// 128 KiB).
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
  // The frame's header and one whole block of 128 KiB.
  constexpr std::uint64_t kBlock = 160u << 10;
  constexpr std::size_t kWanted = sizeof(Elf64_Ehdr);
  const bool plain = entry.compression == "none";
  SCANKIT_TRY(const Bytes packed,
              file.slice(entry.offset, std::min(entry.size, plain ? kWanted : kBlock), kBlock));
  if (plain) return std::string(packed.text());
  if (entry.compression == "zstd") return zstd_start(packed.text(), kWanted);
  if (entry.compression != "lz4")
    return Error{Errc::Unsupported, message("a device image with an unknown compression"), ""};
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

// The text after the first `word`; "" where the word does not occur.
std::string_view behind(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + word.size());
}

}  // namespace

Result<std::string> unpack_lz4(std::string_view packed, std::uint64_t size) {
  // 255 bytes for one is the most that LZ4 reaches.
  if (size / 256 > packed.size()) return damaged_image(message("an impossible size"));
  if (packed.size() > LZ4_MAX_INPUT_SIZE || size > LZ4_MAX_INPUT_SIZE)
    return damaged_image(message("too long for LZ4"));
  std::string out(size, '\0');
  const int got =
      LZ4_decompress_safe(packed.data(), out.data(), static_cast<int>(packed.size()), static_cast<int>(size));
  if (got < 0 || static_cast<std::uint64_t>(got) != size)
    return damaged_image(message("its LZ4 data does not decompress to the stated size"));
  return out;
}

Result<std::string> fatbin_payload(const FileBytes& file, const FatbinEntry& entry, std::uint64_t limit) {
  if (entry.full_size > limit || entry.size > limit)
    return Error{Errc::Unsupported, message("a device image of {} bytes, above the limit", entry.full_size),
                 ""};
  SCANKIT_TRY(const Bytes packed, file.slice(entry.offset, entry.size, limit));
  if (entry.compression == "none") return std::string(packed.text());
  if (entry.compression == "lz4") return unpack_lz4(packed.text(), entry.full_size);
  if (entry.compression == "zstd") return unpack_zstd(packed.text(), entry.full_size);
  return Error{Errc::Unsupported, message("a device image with an unknown compression"), ""};
}

// CUDA 12 for sm <= 90 writes EI_OSABI 0x33 and the number in the low byte of e_flags; CUDA 13, and 12.8 and
// 12.9 for sm_100 and up, write 0x41 and shift the number by 8 (doctor/elf/README.md).
Result<CubinFacts> cubin_facts(std::string_view cubin) {
  const Bytes bytes{std::string(cubin.substr(0, sizeof(Elf64_Ehdr)))};
  const auto header = bytes.read<Elf64_Ehdr>(0);
  constexpr unsigned kMachineCuda = 190;
  if (!header || !cubin.starts_with(ELFMAG) || header->e_machine != kMachineCuda)
    return damaged_image(message("it is not an ELF file for a GPU"));
  CubinFacts facts;
  facts.abi_version = header->e_ident[EI_ABIVERSION];
  const unsigned os_abi = header->e_ident[EI_OSABI];
  if (os_abi == 0x33) {
    facts.sm = header->e_flags & 0xff;
  } else if (os_abi == 0x41) {
    facts.sm = (header->e_flags >> 8) & 0xff;
  } else {
    return Error{Errc::Unsupported, message("a cubin of ELF ABI version {}", os_abi), ""};
  }
  return facts;
}

unsigned cubin_abi(const FileBytes& file, const FatbinEntry& entry) {
  const auto start = payload_start(file, entry);
  if (!start) return 0;
  const auto facts = cubin_facts(*start);
  return facts ? facts->abi_version : 0;
}

// The text is in .note.nv.tkinfo: "Cuda compilation tools, release 13.0, V13.0.88". The whole image is
// searched, so that a damaged section table does not matter.
CubinCompiler cubin_compiler(const FileBytes& file, const FatbinEntry& entry) {
  CubinCompiler by;
  const auto cubin = fatbin_payload(file, entry, 64u << 20);
  if (!cubin) return by;
  std::string_view text = behind(*cubin, "compilation tools, release ");
  const std::string_view before = text;
  unsigned major = 0, minor = 0, patch = 0;
  if (!take_number(text, major) || !text.starts_with('.')) return by;
  text.remove_prefix(1);
  if (!take_number(text, minor)) return by;
  by.toolkit = before.substr(0, before.size() - text.size());
  const std::string same = fmt::format(", V{}.", by.toolkit);
  if (!text.starts_with(same)) return by;
  text.remove_prefix(same.size());
  if (take_number(text, patch)) by.version = fmt::format("{}.{}", by.toolkit, patch);
  return by;
}

// PTX is text: ".version 9.0" comes first, ".target sm_90a" after it.
Result<PtxFacts> ptx_facts(std::string_view text) {
  PtxFacts facts;
  std::string_view version = behind(text, ".version ");
  if (!take_number(version, facts.isa_major) || !version.starts_with('.'))
    return damaged_image(message("PTX without .version"));
  version.remove_prefix(1);
  if (!take_number(version, facts.isa_minor)) return damaged_image(message("PTX with a damaged .version"));
  std::string_view target = behind(version, ".target sm_");
  if (!take_number(target, facts.sm)) return damaged_image(message("PTX without .target"));
  if (target.starts_with('a') || target.starts_with('f')) facts.specific = target.substr(0, 1);
  return facts;
}

namespace {

// Flags and kinds as doctor/elf/README.md lists them.
constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::size_t kImageLimit = 1u << 16;  // the largest wheels hold some thousand
constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000, kArchSpecific = 0x100000, kFamily = 0x200000;

// Both structs are laid out as in the file: little-endian and without padding, which the assertion
// below checks.
struct Container {
  std::uint32_t magic;
  std::uint16_t version, header_size;
  std::uint64_t size;  // what follows the header
};
struct FatbinEntryHeader {
  std::uint16_t kind, version;
  std::uint32_t header_size;
  std::uint64_t padded_size;
  std::uint32_t compressed_size, options;
  std::uint16_t minor, major;
  std::uint32_t arch, name_offset, name_length;
  std::uint64_t flags, reserved, full_size;
};
static_assert(sizeof(Container) == 16 && sizeof(FatbinEntryHeader) == 64);

Error damaged_fatbin(Message why) {
  return {Errc::Malformed, message("the fatbin is damaged: {}", std::move(why)), ""};
}

FatbinEntry entry_from(const FatbinEntryHeader& raw, std::uint64_t payload) {
  FatbinEntry entry;
  entry.kind = raw.kind == 1   ? "ptx"
               : raw.kind == 2 ? "cubin"
               : raw.kind == 8 ? "lto"
                               : say("kind {}", raw.kind);
  entry.sm = raw.arch;
  entry.specific = (raw.flags & kArchSpecific) != 0 ? "a" : (raw.flags & kFamily) != 0 ? "f" : "";
  if (raw.kind == 1) entry.isa_major = raw.major, entry.isa_minor = raw.minor;
  entry.offset = payload;
  // LTO payloads carry the zstd flag without being zstd frames; nobody here unpacks them.
  const bool compressed = raw.compressed_size != 0 && raw.kind != 8;
  entry.compression = !compressed                ? "none"
                      : (raw.flags & kZstd) != 0 ? "zstd"
                      : (raw.flags & kLz4) != 0  ? "lz4"
                                                 : "unknown";
  entry.size = raw.compressed_size != 0 ? raw.compressed_size : raw.padded_size;
  entry.full_size = compressed ? raw.full_size : entry.size;
  return entry;
}

// Appends the entries of one container, which is [at, end) behind its header. After an error the entries
// read so far stay in `found`.
Result<void> read_entries(const FileBytes& file, std::uint64_t at, std::uint64_t end,
                          std::vector<FatbinEntry>& found) {
  while (at < end) {
    if (found.size() >= kImageLimit) return damaged_fatbin(message("too many images"));
    if (end - at < sizeof(FatbinEntryHeader)) return damaged_fatbin(message("an entry is truncated"));
    SCANKIT_TRY(const FatbinEntryHeader raw, file.read<FatbinEntryHeader>(at));
    if (raw.header_size < sizeof(FatbinEntryHeader) || raw.header_size > 4096)
      return damaged_fatbin(message("an entry's header has an impossible size"));
    if (raw.header_size > end - at || raw.padded_size > end - at - raw.header_size)
      return damaged_fatbin(message("an image extends beyond its container"));
    if (raw.compressed_size > raw.padded_size)
      return damaged_fatbin(message("an image is longer than its entry"));
    at += raw.header_size;
    found.push_back(entry_from(raw, at));
    at += raw.padded_size;
  }
  return {};
}

// Where the section table is gone: containers start at a multiple of 8 in what is mapped. The same four
// bytes may occur in code by chance, so a container counts only where all of its entries can be read.
std::vector<FatbinEntry> scan_segments(const Image& image) {
  std::vector<FatbinEntry> found;
  constexpr std::uint64_t kPiece = 1u << 20;
  for (const Segment& s : image.segments()) {
    if (s.type != PT_LOAD) continue;
    for (std::uint64_t done = 0; done < s.file_size && found.size() < kImageLimit;) {
      const auto piece = image.file().slice(s.offset + done, std::min(kPiece, s.file_size - done));
      if (!piece) break;
      std::uint64_t next = piece->size();
      for (std::uint64_t i = 0; i < piece->size(); i += 8) {
        const auto head = piece->read<std::uint32_t>(i);
        if (!head || *head != kMagic) continue;
        const std::uint64_t start = s.offset + done + i;
        const auto container = image.file().read<Container>(start);
        if (!container || container->version != 1 || container->header_size != sizeof(Container)) continue;
        const std::uint64_t left = s.file_size - done - i;
        if (left < sizeof(Container) || container->size > left - sizeof(Container)) continue;
        const std::size_t before = found.size();
        if (!read_entries(image.file(), start + sizeof(Container),
                          start + sizeof(Container) + container->size, found)) {
          found.resize(before);  // bytes that looked like a container by chance
          continue;
        }
        next = i + sizeof(Container) + container->size;
        break;
      }
      done += (next + 7) & ~std::uint64_t{7};
    }
  }
  return found;
}

}  // namespace

// Every object file that was linked brings a container of its own; the linker pads between them with zeros.
Result<std::vector<FatbinEntry>> read_fatbin(const FileBytes& file, std::uint64_t offset,
                                             std::uint64_t size) {
  std::vector<FatbinEntry> found;
  const auto end = checked_add(offset, size);
  if (!end || *end > file.size()) return damaged_fatbin(message("it extends beyond the file"));
  for (std::uint64_t at = offset; *end - at >= sizeof(Container);) {
    SCANKIT_TRY(const Container container, file.read<Container>(at));
    if (container.magic != kMagic) {
      if (container.magic != 0)
        return damaged_fatbin(message("a container does not start with its signature"));
      at += 8;  // padding between the containers of several objects
      if (at > *end) break;
      continue;
    }
    if (container.version != 1 || container.header_size < sizeof(Container))
      return Error{Errc::Unsupported, message("a fatbin container of version {}", container.version), ""};
    if (container.header_size > *end - at || container.size > *end - at - container.header_size)
      return damaged_fatbin(message("a container extends beyond its section"));
    at += container.header_size;
    SCANKIT_CHECK(read_entries(file, at, at + container.size, found));
    at += container.size;
    at = std::min((at + 7) & ~std::uint64_t{7}, *end);
  }
  return found;
}

Result<std::vector<FatbinEntry>> find_device_images(const Image& image) {
  const std::vector<Section> sections = image.sections();
  if (sections.empty()) return scan_segments(image);
  std::vector<FatbinEntry> found;
  const bool is_object = image.identity().type == ET_REL;
  for (const Section& s : sections) {
    // Relocatable code (nvcc -rdc) is the device linker's input: a library that still carries it loads only
    // what was linked. cuobjdump lists the same.
    const bool counts = s.name == ".nv_fatbin" || (s.name == "__nv_relfatbin" && is_object);
    if (s.type == SHT_NOBITS || !counts) continue;
    SCANKIT_TRY(auto more, read_fatbin(image.file(), s.offset, s.size));
    std::ranges::move(more, std::back_inserter(found));
  }
  return found;
}

}  // namespace scankit::elf
