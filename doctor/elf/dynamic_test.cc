// SPDX-License-Identifier: Apache-2.0
// The bounds of the dynamic section, of notes and of version tables: files that no linker makes, and that a
// hostile one may be.
#include <elf.h>

#include <cstring>

#include "doctor/elf/library_test.h"
#include "doctor/elf/symbols.h"

namespace scankit::elf {
namespace {

// A file in memory whose addresses are its offsets: room for program headers, then whatever is added.
class HandMade {
 public:
  HandMade() : bytes_(sizeof(Elf64_Ehdr) + kSegments * sizeof(Elf64_Phdr), '\0') { strings_.push_back('\0'); }

  template <class T>
  std::uint64_t add(const T& value) {
    return add_bytes(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  }
  std::uint64_t add_bytes(const std::string& bytes) {
    bytes_ += bytes;
    return bytes_.size() - bytes.size();
  }
  std::uint64_t size() const { return bytes_.size(); }
  // Of a name in the string table.
  std::uint32_t name(const std::string& text) {
    strings_ += text + '\0';
    return static_cast<std::uint32_t>(strings_.size() - text.size() - 1);
  }
  void segment(std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
    segments_.push_back({type, PF_R, offset, offset, offset, size, size, 1});
  }
  void entry(std::int64_t tag, std::uint64_t value) { dynamic_.push_back({tag, {value}}); }

  Image image() const {
    HandMade whole = *this;
    whole.entry(DT_STRTAB, whole.add_bytes(strings_));
    whole.entry(DT_STRSZ, strings_.size());
    const std::uint64_t table = whole.size();
    for (const Elf64_Dyn& each : whole.dynamic_) whole.add(each);
    whole.segment(PT_DYNAMIC, table, whole.size() - table);
    whole.segment(PT_LOAD, 0, whole.size());
    EXPECT_LE(whole.segments_.size(), kSegments);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN, header.e_machine = EM_X86_64;
    header.e_phoff = sizeof header, header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<std::uint16_t>(whole.segments_.size());
    whole.bytes_.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
    const std::size_t length = whole.segments_.size() * sizeof(Elf64_Phdr);
    whole.bytes_.replace(sizeof header, length, reinterpret_cast<const char*>(whole.segments_.data()),
                         length);
    return Image::open(test::in_memory(whole.bytes_)).value();
  }
  Result<Dynamic> dynamic() const { return read_dynamic(image()); }
  Result<Versions> versions() const {
    SCANKIT_TRY(const Dynamic dynamic, this->dynamic());
    return Versions::read(image(), dynamic);
  }

 private:
  static constexpr std::size_t kSegments = 4;
  std::string bytes_, strings_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Dyn> dynamic_;
};

TEST(DynamicSection, BindsToItselfByEitherEntry) {
  const auto symbolic = [](std::int64_t tag, std::uint64_t value) {
    HandMade file;
    file.entry(tag, value);
    return file.dynamic()->symbolic;
  };
  EXPECT_TRUE(symbolic(DT_SYMBOLIC, 0));
  EXPECT_TRUE(symbolic(DT_FLAGS, DF_SYMBOLIC | DF_BIND_NOW));
  EXPECT_FALSE(symbolic(DT_FLAGS, DF_BIND_NOW));
  HandMade both;
  both.entry(DT_SYMBOLIC, 0);
  both.entry(DT_FLAGS, DF_BIND_NOW);
  EXPECT_TRUE(both.dynamic()->symbolic);
}

TEST(DynamicSection, LimitsTheNeededLibraries) {
  HandMade file;
  const std::uint64_t name = file.name("liba.so");
  for (int i = 0; i < 4096; ++i) file.entry(DT_NEEDED, name);
  ASSERT_TRUE(file.dynamic());
  EXPECT_EQ(file.dynamic()->needed.size(), 4096U);
  file.entry(DT_NEEDED, name);
  EXPECT_EQ(english(file.dynamic().error().message), "more than 4096 needed libraries");
}

TEST(StringTable, EndsWhereItsSizeSays) {
  const FileBytes file(test::in_memory(std::string("xabc\0defg\0", 10)));
  const StringTable table(file, 1, 7);  // "abc", and "def" without an end
  EXPECT_EQ(table.at(0).value(), "abc");
  EXPECT_EQ(table.at(3).value(), "");
  EXPECT_FALSE(table.at(4));
  EXPECT_EQ(english(table.at(7).error().message), "a name is outside the string table");
  EXPECT_EQ(english(table.at(8).error().message), "a name is outside the string table");
  EXPECT_EQ(table.piece(0, 7)->size(), 7U);
  EXPECT_EQ(table.piece(7, 0)->size(), 0U);
  EXPECT_FALSE(table.piece(0, 8));
  EXPECT_FALSE(table.piece(8, 0));
  EXPECT_FALSE(table.piece(1, ~std::uint64_t{0}));
}

TEST(StringTable, HasNoNameOf64KiB) {
  constexpr std::size_t kLimit = 64U << 10;
  const std::string text = std::string(kLimit, 'a') + std::string(1, '\0');
  const StringTable table(FileBytes(test::in_memory(text)), 0, text.size());
  EXPECT_EQ(table.at(1)->size(), kLimit - 1);
  EXPECT_FALSE(table.at(0));
}

std::string note(std::uint32_t type, const std::string& owner, const std::string& value) {
  const Elf64_Nhdr header{static_cast<std::uint32_t>(owner.size() + 1),
                          static_cast<std::uint32_t>(value.size()), type};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  for (std::string part : {owner + '\0', value}) {
    part.resize((part.size() + 3) / 4 * 4);
    bytes += part;
  }
  return bytes;
}

std::string build_id(const std::string& notes) {
  HandMade file;
  file.segment(PT_NOTE, file.add_bytes(notes), notes.size());
  return read_build_id(file.image());
}

TEST(BuildId, IsTheGnuNoteAmongOthers) {
  const std::string id = note(NT_GNU_BUILD_ID, "GNU", "\x01\xab");
  EXPECT_EQ(build_id(id), "01ab");
  EXPECT_EQ(build_id(note(NT_GNU_ABI_TAG, "GNU", "1234") + id), "01ab");
  EXPECT_EQ(build_id(note(NT_GNU_BUILD_ID, "FDO", "1234") + id), "01ab");
  EXPECT_EQ(build_id(note(NT_GNU_BUILD_ID, "stapsdt", "1234") + id), "01ab");
  EXPECT_EQ(build_id(note(NT_GNU_ABI_TAG, "GNU", "1234")), "");
  EXPECT_EQ(build_id(id.substr(0, id.size() - 4)), "");  // cut
}

TEST(BuildId, HasAtMost64Bytes) {
  EXPECT_EQ(build_id(note(NT_GNU_BUILD_ID, "GNU", std::string(64, 'a'))).size(), 128U);
  EXPECT_EQ(build_id(note(NT_GNU_BUILD_ID, "GNU", std::string(65, 'a'))), "");
  const std::string id = note(NT_GNU_BUILD_ID, "GNU", "id");
  constexpr std::size_t kSegmentLimit = 1U << 20;
  EXPECT_EQ(build_id(id + std::string(kSegmentLimit - id.size(), '\0')), "6964");
  EXPECT_EQ(build_id(id + std::string(kSegmentLimit - id.size() + 1, '\0')), "");
}

TEST(Interpreter, HasAtMost4096Bytes) {
  const auto interpreter = [](std::size_t length) {
    HandMade file;
    file.segment(PT_INTERP, file.add_bytes(std::string(length - 1, 'i') + '\0'), length);
    return read_interpreter(file.image());
  };
  EXPECT_EQ(interpreter(4096).size(), 4095U);
  EXPECT_EQ(interpreter(4097), "");
}

// A need of liba.so for each of `counts`, which says how many versions it wants. All share one list of `listed`
// versions. Without `linked`, neither needs nor versions lead to the next one.
HandMade with_needs(const std::vector<std::uint16_t>& counts, std::size_t listed, bool linked = true) {
  HandMade file;
  const std::uint32_t library = file.name("liba.so"), version = file.name("V_1");
  const std::uint64_t first = file.size(), list = first + counts.size() * sizeof(Elf64_Verneed);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool last = i + 1 == counts.size();
    file.add(Elf64_Verneed{VER_NEED_CURRENT, counts[i], library, static_cast<Elf64_Word>(list - file.size()),
                           linked && !last ? static_cast<Elf64_Word>(sizeof(Elf64_Verneed)) : 0});
  }
  for (std::size_t i = 0; i < listed; ++i)
    file.add(Elf64_Vernaux{0, static_cast<Elf64_Half>(i == 1 ? VER_FLG_WEAK : 0),
                           static_cast<Elf64_Half>(i == 1 ? 0x8003 : 2), version,
                           linked && i + 1 < listed ? static_cast<Elf64_Word>(sizeof(Elf64_Vernaux)) : 0});
  file.entry(DT_VERNEED, first);
  return file;
}

std::size_t needs_of(HandMade file, std::uint64_t count) {
  file.entry(DT_VERNEEDNUM, count);
  const auto versions = file.versions();
  return versions ? versions->needs().size() : 0;
}

TEST(VersionNeeds, AreAsManyAsTheirCounts) {
  EXPECT_EQ(needs_of(with_needs({2}, 2), 1), 2U);
  EXPECT_EQ(needs_of(with_needs({1}, 2), 1), 1U);  // the list is longer than its count
  EXPECT_EQ(needs_of(with_needs({1, 2}, 2), 2), 3U);
  EXPECT_EQ(needs_of(with_needs({1, 2}, 2), 1), 1U);
  EXPECT_EQ(needs_of(with_needs({1, 2}, 2), 0), 0U);
  // Where a link is missing, the list ends before its count does.
  EXPECT_EQ(needs_of(with_needs({2}, 2, false), 1), 1U);
  EXPECT_EQ(needs_of(with_needs({1, 1}, 1, false), 2), 1U);
  HandMade none;
  EXPECT_EQ(needs_of(none, 3), 0U);
  EXPECT_TRUE(none.versions());
}

TEST(VersionNeeds, AreHiddenByTheHighestBitOfTheirIndex) {
  HandMade file = with_needs({2}, 2);
  file.entry(DT_VERNEEDNUM, 1);
  const auto versions = file.versions();
  ASSERT_TRUE(versions) << english(versions.error().message);
  const VersionNeed &shown = versions->needs().at(0), &hidden = versions->needs().at(1);
  EXPECT_EQ(shown.file + " " + shown.name, "liba.so V_1");
  EXPECT_EQ(shown.index, 2);
  EXPECT_FALSE(shown.hidden || shown.weak);
  EXPECT_EQ(hidden.index, 3);
  EXPECT_TRUE(hidden.hidden && hidden.weak);
}

TEST(VersionNeeds, AreLimitedInAll) {
  EXPECT_EQ(needs_of(with_needs({65535, 1}, 65535), 2), 65536U);
  HandMade more = with_needs({65535, 2}, 65535);
  more.entry(DT_VERNEEDNUM, 2);
  EXPECT_EQ(english(more.versions().error().message), "too many version needs");
}

TEST(VersionDefinitions, AreAsManyAsTheirCount) {
  const auto definitions = [](std::size_t listed, std::uint64_t count, bool linked = true) {
    HandMade file;
    const std::uint32_t name = file.name("V_1");
    file.entry(DT_VERDEF, file.size());
    file.entry(DT_VERDEFNUM, count);
    constexpr auto kLength = static_cast<Elf64_Word>(sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux));
    for (std::size_t i = 0; i < listed; ++i) {
      const bool last = !linked || i + 1 == listed;
      file.add(Elf64_Verdef{VER_DEF_CURRENT, static_cast<Elf64_Half>(i == 0 ? VER_FLG_BASE : 0),
                            static_cast<Elf64_Half>(i + 1), 1, 0, sizeof(Elf64_Verdef), last ? 0 : kLength});
      file.add(Elf64_Verdaux{name, 0});
    }
    return file.versions()->definitions().size();
  };
  EXPECT_EQ(definitions(3, 3), 3U);
  EXPECT_EQ(definitions(3, 2), 2U);
  EXPECT_EQ(definitions(3, 3, false), 1U);
  EXPECT_EQ(definitions(1, 9), 1U);
  HandMade none;
  none.entry(DT_VERDEFNUM, 3);
  ASSERT_TRUE(none.versions());
  EXPECT_TRUE(none.versions()->definitions().empty());
}

}  // namespace
}  // namespace scankit::elf
