// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include <map>

#include "doctor/base/say.h"
#include "doctor/elf/bytes.h"
#include "doctor/elf/fatbin.h"

namespace scankit::elf {
namespace {

// Attributes of .nv.info (cuobjdump -elf names them EIATTR_*).
constexpr std::uint8_t kSized = 4;  // format: two bytes of length follow; the others carry their value in two
constexpr std::uint8_t kMaxThreads = 0x05, kRequiredThreads = 0x10, kFrameSize = 0x11, kRegisterCount = 0x2f;
constexpr unsigned char kEntry = 0x10;  // of st_other: a kernel, not a function that kernels call
constexpr std::string_view kInfo = ".nv.info.", kShared = ".nv.shared.";

// The sections that describe the resources of the kernels. An empty Bytes means that the section is missing
// or outside the image. `info_of` and `shared_of` go by the kernel's mangled name; `shared_of` is in bytes.
struct Parts {
  Bytes all, names, symbol_names, symbols, info;
  std::map<std::string, Bytes, std::less<>> info_of;
  std::map<std::string, std::uint64_t, std::less<>> shared_of;
};

Error broken(const Message& what) {
  return Error{Errc::Malformed, message("a damaged device image: {}", what), ""};
}

// A section of type SHT_NOBITS has a size but no bytes in the file.
Bytes contents(const Bytes& all, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS) return {};
  return all.slice(section.sh_offset, section.sh_size).value_or(Bytes());
}

Result<Parts> parts_of(std::string_view cubin) {
  Parts parts;
  parts.all = Bytes{std::string(cubin)};
  const auto header = parts.all.read<Elf64_Ehdr>(0);
  if (!header || !cubin.starts_with(ELFMAG) || header->e_shentsize != sizeof(Elf64_Shdr))
    return broken(message("no ELF header"));
  const auto table = parts.all.slice(header->e_shoff, std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr));
  const auto names = table ? table->element<Elf64_Shdr>(header->e_shstrndx) : std::nullopt;
  if (!names) return broken(message("its section table is outside the file"));
  parts.names = contents(parts.all, *names);
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = table->element<Elf64_Shdr>(i);
    const auto name = parts.names.c_string(section->sh_name);
    if (!name) continue;
    if (*name == ".symtab") parts.symbols = contents(parts.all, *section);
    if (*name == ".strtab") parts.symbol_names = contents(parts.all, *section);
    if (*name == ".nv.info") parts.info = contents(parts.all, *section);
    if (name->starts_with(kInfo))
      parts.info_of.emplace(name->substr(kInfo.size()), contents(parts.all, *section));
    // .nv.shared.NAME matters by its size alone, which is the static shared memory of the kernel.
    if (name->starts_with(kShared)) parts.shared_of.emplace(name->substr(kShared.size()), section->sh_size);
  }
  return parts;
}

// take(attribute, value): every attribute that has a length of its own.
template <class Take>
void each_attribute(const Bytes& info, Take take) {
  for (std::uint64_t at = 0; at + 4 <= info.size();) {
    const auto format = info.read<std::uint8_t>(at), attribute = info.read<std::uint8_t>(at + 1);
    const auto length = info.read<std::uint16_t>(at + 2);
    if (!format || !attribute || !length) return;
    at += 4;
    if (*format != kSized) continue;
    const auto value = info.slice(at, *length);
    if (!value) return;
    take(*attribute, *value);
    at += *length;
  }
}

unsigned threads_of(const Bytes& info) {
  unsigned threads = 0;
  each_attribute(info, [&](std::uint8_t attribute, const Bytes& value) {
    if (attribute != kMaxThreads && attribute != kRequiredThreads) return;
    // The extents of a block in x, y and z. A block of CUDA has at most 1024 threads, so larger numbers are
    // damage and count as no bound. That also keeps the product within 32 bits.
    const auto x = value.element<std::uint32_t>(0), y = value.element<std::uint32_t>(1),
               z = value.element<std::uint32_t>(2);
    if (x && y && z && *x <= 1024 && *y <= 1024 && *z <= 1024) threads = *x * *y * *z;
  });
  return threads;
}

}  // namespace

Result<std::vector<CubinKernel>> cubin_kernels(std::string_view cubin) {
  SCANKIT_TRY(const Parts parts, parts_of(cubin));
  std::map<std::uint32_t, std::uint32_t> registers, frames;  // by the symbol's index
  each_attribute(parts.info, [&](std::uint8_t attribute, const Bytes& value) {
    const auto symbol = value.element<std::uint32_t>(0), number = value.element<std::uint32_t>(1);
    if (!symbol || !number) return;
    if (attribute == kRegisterCount) registers[*symbol] = *number;
    if (attribute == kFrameSize) frames[*symbol] = *number;
  });
  std::map<std::string, CubinKernel> kernels;
  // The attributes name a symbol by its index in this table. The table ends where no whole entry follows.
  for (std::uint32_t i = 0;; ++i) {
    const auto symbol = parts.symbols.element<Elf64_Sym>(i);
    if (!symbol) break;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || (symbol->st_other & kEntry) == 0) continue;
    const auto name = parts.symbol_names.c_string(symbol->st_name);
    // The compiler writes the number of registers of every kernel: where it is missing, .nv.info is damaged.
    if (!name || !registers.contains(i))
      return broken(message("a kernel without a name or a number of registers"));
    CubinKernel kernel{std::string(*name), registers[i], frames.contains(i) ? frames[i] : 0, 0, 0};
    if (const auto shared = parts.shared_of.find(*name); shared != parts.shared_of.end())
      kernel.static_shared_bytes = static_cast<unsigned>(shared->second);
    if (const auto info = parts.info_of.find(*name); info != parts.info_of.end())
      kernel.most_threads = threads_of(info->second);
    kernels.emplace(kernel.name, kernel);
  }
  std::vector<CubinKernel> sorted;
  for (auto& [name, kernel] : kernels) sorted.push_back(std::move(kernel));
  return sorted;
}

}  // namespace scankit::elf
