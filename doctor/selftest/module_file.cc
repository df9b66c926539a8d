// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include <algorithm>
#include <cstring>

#include "doctor/selftest/selftest.h"

namespace scankit::selftest {
namespace {

constexpr std::uint64_t kPage = 0x1000;
constexpr unsigned kSegments = 4;
// In a PyModuleDef, m_name follows PyModuleDef_Base; the stable ABI fixes this layout
// (Include/moduleobject.h). The free-threaded build has a larger object header, so these files do
// not work there.
constexpr std::uint64_t kNameAt = 40;
constexpr std::uint64_t kDefSize = 104;  // sizeof(PyModuleDef)

// Offsets in the file are small; the tables of ELF store some of them in 32 bits.
std::uint32_t narrow(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

// The growing file. Numbers are stored in the byte order of the machine, which is x86-64's little-endian.
class Bytes {
 public:
  template <class T>
  Bytes& put(const T& value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  Bytes& put(const std::string& text) {
    bytes_ += text;
    return *this;
  }
  // Pads with zeros up to an offset; place() has decided it before.
  Bytes& fill_to(std::uint64_t size) {
    bytes_.resize(std::max<std::size_t>(bytes_.size(), size), '\0');
    return *this;
  }
  std::uint64_t size() const { return bytes_.size(); }
  const std::string& text() const { return bytes_; }

 private:
  std::string bytes_;
};

// A string table: index 0 is the empty string, as the ELF gABI demands.
class Strings {
 public:
  std::uint32_t add(const std::string& text) {
    const std::uint32_t at = narrow(bytes_.size());
    bytes_ += text;
    bytes_ += '\0';
    return at;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

// The hash function of the System V gABI, used for DT_HASH and for version names.
std::uint32_t elf_hash(const std::string& name) {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    const std::uint32_t high = hash & 0xF0000000u;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  return hash;
}

// Writes the file in two passes: the constructor collects all names and decides every offset (place()),
// write() then fills them in. There is one loadable segment that is not writable, with the tables and
// the code, and a writable one with the dynamic section, the slots of the undefined names and the
// module's definition. File offsets and addresses are the same. There are no sections, because the
// loader reads none.
class Writer {
 public:
  explicit Writer(const HandmadeModule& file) : file_(file), names_(file.names) {
    // The function that the code calls comes first, so its slot is the first one.
    if (file.start == HandmadeModule::Start::Works)
      names_.insert(names_.begin(), {"PyModuleDef_Init", "", ""});
    if (file.start == HandmadeModule::Start::Hangs) names_.insert(names_.begin(), {"pause", "", ""});
    init_name_ = strings_.add("PyInit_" + file.module);
    for (const auto& name : names_) name_offsets_.push_back(strings_.add(name.symbol));
    for (const auto& soname : file.needed) needed_.push_back(strings_.add(soname));
    write_version_needs();
    place();
  }

  std::string write() {
    Bytes out;
    put_header(out);
    put_symbols(out);
    out.fill_to(versym_).put(versions_of_names_.text());
    out.fill_to(strtab_).put(strings_.bytes());
    put_hash(out);
    out.fill_to(verneed_).put(version_needs_.text());
    put_relocations(out);
    put_code(out);
    put_dynamic(out);
    return out.fill_to(end_).text();
  }

 private:
  // Makes DT_VERSYM (one index for each symbol) and DT_VERNEED (one entry for each name with a version).
  // The symbols are those of put_symbols(): the null symbol, the undefined names, PyInit_.
  void write_version_needs() {
    versions_of_names_.put(std::uint16_t{VER_NDX_LOCAL});
    std::uint16_t index = VER_NDX_GLOBAL;
    // An entry is written when the next one begins, because its vn_next is only known then.
    for (const auto& name : names_) {
      if (name.version.empty()) {
        versions_of_names_.put(std::uint16_t{VER_NDX_GLOBAL});
        continue;
      }
      if (version_count_ > 0) last_need_.vn_next = sizeof(Elf64_Verneed) + sizeof(Elf64_Vernaux);
      flush_need();
      ++version_count_;
      versions_of_names_.put(++index);
      last_need_ = {VER_NEED_CURRENT, 1, strings_.add(name.library), sizeof(Elf64_Verneed), 0};
      last_version_ = {elf_hash(name.version), 0, index, strings_.add(name.version), 0};
    }
    versions_of_names_.put(std::uint16_t{VER_NDX_GLOBAL});
    flush_need();
  }
  // vn_version is 1 for a real entry and 0 if there is none to write.
  void flush_need() {
    if (last_need_.vn_version != 0) version_needs_.put(last_need_).put(last_version_);
    last_need_ = {};
  }

  // The order of these offsets is the order of the put_ calls in write(). 32 bytes are reserved for the
  // code, and the dynamic section begins on a page of its own, because it has other permissions.
  void place() {
    const std::uint64_t symbols = names_.size() + 2;
    symtab_ = sizeof(Elf64_Ehdr) + kSegments * sizeof(Elf64_Phdr);
    versym_ = symtab_ + symbols * sizeof(Elf64_Sym);
    // Symbols: the null symbol, the undefined names and PyInit_, hence 2 more than names.
    strtab_ = versym_ + versions_of_names_.size();
    hash_ = aligned(strtab_ + strings_.bytes().size());
    // DT_HASH has two counts, one bucket and one chain entry for each symbol, each of 4 bytes.
    verneed_ = aligned(hash_ + 4 * (3 + symbols));
    rela_ = aligned(verneed_ + version_needs_.size());
    code_ = rela_ + (names_.size() + 1) * sizeof(Elf64_Rela);
    dynamic_ = (code_ + 32 + kPage - 1) / kPage * kPage;
    // At most 11 entries besides DT_NEEDED and a DT_NULL.
    slots_ = dynamic_ + (needed_.size() + 12) * sizeof(Elf64_Dyn);
    definition_ = slots_ + names_.size() * 8;
    end_ = definition_ + kDefSize;
  }
  static std::uint64_t aligned(std::uint64_t at) { return (at + 7) / 8 * 8; }

  void put_header(Bytes& out) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = file_.machine;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof(Elf64_Ehdr);
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = kSegments;
    header.e_shentsize = sizeof(Elf64_Shdr);
    out.put(header);
    // File offset, virtual and physical address are all `from`.
    const auto segment = [&](std::uint32_t type, std::uint32_t flags, std::uint64_t from, std::uint64_t to,
                             std::uint64_t align) {
      out.put(Elf64_Phdr{type, flags, from, from, from, to - from, to - from, align});
    };
    segment(PT_LOAD, PF_R | PF_X, 0, code_ + 32, kPage);
    segment(PT_LOAD, PF_R | PF_W, dynamic_, end_, kPage);
    segment(PT_DYNAMIC, PF_R | PF_W, dynamic_, slots_, 8);
    // Without PT_GNU_STACK glibc would ask for an executable stack, which some systems forbid.
    segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16);
  }

  void put_symbols(Bytes& out) const {
    out.fill_to(symtab_).put(Elf64_Sym{});
    for (const std::uint32_t name : name_offsets_)
      out.put(Elf64_Sym{name, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), STV_DEFAULT, SHN_UNDEF, 0, 0});
    // The symbol is in a section as long as its index is neither SHN_UNDEF nor SHN_ABS; the loader then
    // adds the base address, and never looks for the section.
    out.put(Elf64_Sym{init_name_, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, 1, code_, 16});
  }

  // One bucket, whose chain has one member: the only name that is defined here, which is the last symbol.
  void put_hash(Bytes& out) const {
    const std::uint32_t symbols = narrow(names_.size() + 2);
    out.fill_to(hash_).put(std::uint32_t{1}).put(symbols).put(symbols - 1);
    out.fill_to(out.size() + 4ul * symbols);
  }

  void put_relocations(Bytes& out) const {
    out.fill_to(rela_);
    // The loader fills slot i with the address of undefined name i. Symbol 0 is the null
    // symbol, hence i + 1.
    for (std::uint64_t i = 0; i < names_.size(); ++i)
      out.put(Elf64_Rela{slots_ + 8 * i, ELF64_R_INFO(i + 1, R_X86_64_GLOB_DAT), 0});
    // m_name points to the name of the module, which is the end of the string "PyInit_NAME".
    const auto name = static_cast<std::int64_t>(strtab_ + init_name_ + std::strlen("PyInit_"));
    out.put(Elf64_Rela{definition_ + kNameAt, ELF64_R_INFO(0, R_X86_64_RELATIVE), name});
  }

  // The body of PyInit_NAME, at most 32 bytes of x86-64 code.
  void put_code(Bytes& out) const {
    out.fill_to(code_);
    // The distance from the end of the 4-byte operand, as RIP-relative operands are encoded.
    const auto relative = [&](std::uint64_t target) { out.put(narrow(target - (out.size() + 4))); };
    if (file_.start == HandmadeModule::Start::Crashes) {
      out.put(std::string("\x0f\x0b"));  // ud2
    } else if (file_.start == HandmadeModule::Start::Hangs) {
      // Aligns the stack to 16 bytes for the call. pause(2) returns after a signal, hence the loop.
      out.put(std::string("\x48\x83\xec\x08"));  // sub rsp, 8
      out.put(std::string("\xff\x15"));          // again: call [slot of pause]
      relative(slots_);
      out.put(std::string("\xeb\xf8"));  // jmp again
    } else {
      // Returns PyModuleDef_Init(&definition), which is multi-phase initialisation (PEP 489)
      // without slots.
      out.put(std::string("\x48\x8d\x3d"));  // lea rdi, [definition]
      relative(definition_);
      out.put(std::string("\xff\x25"));  // jmp [slot of PyModuleDef_Init]
      relative(slots_);
    }
  }

  void put_dynamic(Bytes& out) const {
    out.fill_to(dynamic_);
    const auto entry = [&](std::int64_t tag, std::uint64_t value) {
      Elf64_Dyn dyn{};
      dyn.d_tag = tag;
      dyn.d_un.d_val = value;
      out.put(dyn);
    };
    for (const std::uint32_t soname : needed_) entry(DT_NEEDED, soname);
    entry(DT_HASH, hash_);
    entry(DT_STRTAB, strtab_);
    entry(DT_STRSZ, strings_.bytes().size());
    entry(DT_SYMTAB, symtab_);
    entry(DT_SYMENT, sizeof(Elf64_Sym));
    entry(DT_RELA, rela_);
    entry(DT_RELASZ, (names_.size() + 1) * sizeof(Elf64_Rela));
    entry(DT_RELAENT, sizeof(Elf64_Rela));
    if (version_count_ > 0) {
      entry(DT_VERSYM, versym_);
      entry(DT_VERNEED, verneed_);
      entry(DT_VERNEEDNUM, version_count_);
    }
    out.fill_to(slots_);                             // and at least one DT_NULL
    out.fill_to(definition_).put(std::uint64_t{1});  // ob_refcnt of the definition
  }

  const HandmadeModule& file_;
  std::vector<HandmadeModule::Name> names_;
  Strings strings_;
  std::vector<std::uint32_t> name_offsets_, needed_;
  std::uint32_t init_name_ = 0;
  Bytes versions_of_names_, version_needs_;
  std::uint64_t version_count_ = 0;
  Elf64_Verneed last_need_{};
  Elf64_Vernaux last_version_{};
  std::uint64_t symtab_ = 0, versym_ = 0, strtab_ = 0, hash_ = 0, verneed_ = 0, rela_ = 0, code_ = 0;
  std::uint64_t dynamic_ = 0, slots_ = 0, definition_ = 0, end_ = 0;
};

}  // namespace

std::string module_bytes(const HandmadeModule& file) { return Writer(file).write(); }

}  // namespace scankit::selftest
