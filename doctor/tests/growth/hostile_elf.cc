// SPDX-License-Identifier: Apache-2.0
#include "doctor/tests/growth/hostile_elf.h"

#include <elf.h>

#include <cstdint>
#include <vector>

namespace scankit::growth {
namespace {

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::uint64_t add_name(std::string& names, const std::string& name) {
  const std::uint64_t at = names.size();
  names.append(name).push_back('\0');
  return at;
}

Elf64_Ehdr header() {
  Elf64_Ehdr head{};
  head.e_ident[EI_MAG0] = ELFMAG0;
  head.e_ident[EI_MAG1] = ELFMAG1;
  head.e_ident[EI_MAG2] = ELFMAG2;
  head.e_ident[EI_MAG3] = ELFMAG3;
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_version = EV_CURRENT;
  head.e_type = ET_DYN;
#ifdef __aarch64__
  head.e_machine = EM_AARCH64;
#else
  head.e_machine = EM_X86_64;
#endif
  head.e_ehsize = sizeof(Elf64_Ehdr);
  head.e_phoff = sizeof(Elf64_Ehdr);
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 2;
  return head;
}

}  // namespace

std::string elf_bytes(const HostileElf& wanted) {
  std::string names(1, '\0'), symbols(sizeof(Elf64_Sym), '\0');
  std::vector<Elf64_Dyn> dynamic;
  const auto add = [&](std::int64_t tag, std::uint64_t value) {
    Elf64_Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    dynamic.push_back(entry);
  };
  for (std::size_t i = 0; i < wanted.needed; ++i)
    add(DT_NEEDED, add_name(names, "libn" + std::to_string(i) + ".so"));
  std::string folders;
  for (std::size_t i = 0; i < wanted.folders; ++i)
    folders += (i == 0 ? "" : ":") + wanted.folder + std::to_string(i);
  if (!folders.empty()) add(DT_RUNPATH, add_name(names, folders));
  for (std::size_t i = 0; i < wanted.undefined; ++i) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(add_name(names, "name" + std::to_string(i)));
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE);
    append(symbols, symbol);
  }
  const auto count = static_cast<std::uint32_t>(wanted.undefined + 1);
  std::string hash;
  for (const std::uint32_t word : {1u, count, 0u}) append(hash, word);
  hash.resize(hash.size() + std::size_t{4} * count, '\0');
  hash.resize((hash.size() + 7) & ~std::size_t{7}, '\0');
  names.resize((names.size() + 7) & ~std::size_t{7}, '\0');
  const std::uint64_t at_hash = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr),
                      at_symbols = at_hash + hash.size(), at_names = at_symbols + symbols.size(),
                      at_dynamic = at_names + names.size();
  add(DT_HASH, at_hash);
  add(DT_SYMTAB, at_symbols);
  add(DT_SYMENT, sizeof(Elf64_Sym));
  add(DT_STRTAB, at_names);
  add(DT_STRSZ, names.size());
  add(DT_NULL, 0);
  Elf64_Phdr load{}, dyn{};
  load.p_type = PT_LOAD;
  load.p_flags = dyn.p_flags = PF_R;
  load.p_filesz = load.p_memsz = at_dynamic + dynamic.size() * sizeof(Elf64_Dyn);
  load.p_align = 4096;
  dyn.p_type = PT_DYNAMIC;
  dyn.p_offset = dyn.p_vaddr = at_dynamic;
  dyn.p_filesz = dyn.p_memsz = dynamic.size() * sizeof(Elf64_Dyn);
  dyn.p_align = 8;
  std::string out;
  append(out, header());
  append(out, load);
  append(out, dyn);
  out += hash + symbols + names;
  for (const Elf64_Dyn& entry : dynamic) append(out, entry);
  return out;
}

}  // namespace scankit::growth
