// SPDX-License-Identifier: Apache-2.0
// A doctor's input is broken by definition: whatever the bytes
// are, the readers answer, in bounded time and memory.
#include <elf.h>

#include <algorithm>

#include "doctor/elf/fatbin.h"
#include "doctor/elf/image.h"
#include "doctor/elf/library.h"
#include "doctor/elf/library_test.h"

namespace scankit::elf {
namespace {

using test::Workshop;

const char* const kSource =
    "extern int far(int); extern int weak_one(void) __attribute__((weak));\n"
    "__thread int counter; int PyInit_small(void) { return far(counter) + (weak_one ? weak_one() : 0); }\n";

// Small enough that every byte can be tried.
std::string small_library(const Workshop& shop) {
  shop.shared("small.so", kSource,
              {"-nostdlib", "-Os", "-s", "-Wl,-z,norelro,-z,noseparate-code,--build-id,--hash-style=both"});
  return shop.read("small.so");
}

// Everything the doctor asks of a file, on a host that holds just that one.
class OneFileHost : public Host {
 public:
  explicit OneFileHost(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<std::string> read_file(const std::string&, std::size_t) const override { return bytes_; }
  Result<std::unique_ptr<ByteSource>> open(const std::string&) const override {
    return std::unique_ptr<ByteSource>(std::make_unique<test::MemorySource>(bytes_));
  }
  Result<std::vector<DirEntry>> list(const std::string&) const override { return absent(); }
  Result<FileInfo> stat(const std::string&) const override {
    FileInfo info;
    info.kind = FileKind::Regular;
    info.size = bytes_.size();
    return info;
  }
  Result<FileInfo> lstat(const std::string& path) const override { return stat(path); }
  Result<std::string> readlink(const std::string&) const override { return absent(); }
  Result<std::string> realpath(const std::string& path) const override { return path; }
  std::optional<std::string> env(std::string_view) const override { return std::nullopt; }
  bool is_live() const override { return false; }

 private:
  static Error absent() { return {Errc::NotFound, "no", ""}; }
  std::string bytes_;
};

// Returns whether the file would be taken for a whole library with all its tables.
bool read_everything(const std::string& bytes) {
  const bool whole = file_state(test::in_memory(bytes)).state == "elf";
  const OneFileHost host(bytes);
  const auto library = open_library(host, "/x.so");
  if (!library) return false;
  (void)read_build_id((*library)->image);
  (void)read_interpreter((*library)->image);
  (void)find_device_images((*library)->image);
  const Symbols& symbols = (*library)->symbols;
  const auto undefined = symbols.undefined();
  (void)symbols.exports(SymbolQuery("PyInit_small"));
  (void)symbols.exports(SymbolQuery("nothing"));
  (void)symbols.exported_with_prefix({"PyInit_"}, 16);
  return whole && undefined.has_value();
}

TEST(HostileElf, ReadsTheWholeFile) {
  const Workshop shop;
  const std::string good = small_library(shop);
  EXPECT_TRUE(read_everything(good));
}

TEST(HostileElf, NoTruncationIsTakenForAWholeLibrary) {
  const Workshop shop;
  const std::string good = small_library(shop);
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(read_everything(good.substr(0, length))) << "cut to " << length << " of " << good.size();
}

TEST(HostileElf, EveryFlippedByteIsSurvived) {
  const Workshop shop;
  const std::string good = small_library(shop);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int mask : {0xff, 0x80, 0x01}) {
      std::string bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ mask);
      (void)read_everything(bad);
    }
  }
}

TEST(HostileElf, ReadsNamesWithoutSectionHeaders) {
  const Workshop shop;
  std::string bytes = small_library(shop);
  std::fill_n(bytes.begin() + offsetof(Elf64_Ehdr, e_shoff), 8, '\0');
  std::fill_n(bytes.begin() + offsetof(Elf64_Ehdr, e_shnum), 4, '\0');
  const OneFileHost host(bytes);
  const auto library = open_library(host, "/x.so");
  ASSERT_TRUE(library) << english(library.error().message);
  EXPECT_TRUE((*library)->symbols.exports(SymbolQuery("PyInit_small")));
  const auto undefined = (*library)->symbols.undefined();
  ASSERT_TRUE(undefined);
  ASSERT_EQ(undefined->size(), 3u);  // far, weak_one, and __tls_get_addr of the thread-local variable
  EXPECT_EQ(std::count_if(undefined->begin(), undefined->end(), [](const auto& s) { return s.weak; }), 1);
}

// Numbers at the places where a file says how much there is, set to the worst values.
TEST(HostileElf, ImpossibleCountsCostNeitherTimeNorMemory) {
  const Workshop shop;
  const std::string good = small_library(shop);
  const OneFileHost host(good);
  const auto library = open_library(host, "/x.so").value();
  std::vector<std::uint64_t> places = {offsetof(Elf64_Ehdr, e_phoff), offsetof(Elf64_Ehdr, e_shoff)};
  const std::uint64_t hash = library->image.offset_of(library->dynamic.gnu_hash, 16).value();
  const std::uint64_t old_hash = library->image.offset_of(library->dynamic.sysv_hash, 8).value();
  for (std::uint64_t i = 0; i < 16; i += 4) places.push_back(hash + i);
  for (std::uint64_t i = 0; i < 8; i += 4) places.push_back(old_hash + i);
  const auto dynamic = library->image.segment(PT_DYNAMIC).value();
  for (std::uint64_t i = 8; i < dynamic.file_size; i += 16) places.push_back(dynamic.offset + i);
  for (std::uint64_t i = 0; i < library->image.segments().size(); ++i)
    for (std::uint64_t field : {8, 16, 32, 40})
      places.push_back(sizeof(Elf64_Ehdr) + i * sizeof(Elf64_Phdr) + field);
  for (const std::uint64_t place : places) {
    for (const std::uint64_t value :
         {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{0x7fffffff}, std::uint64_t{0}}) {
      std::string bad = good;
      bad.replace(place, 8, reinterpret_cast<const char*>(&value), 8);
      (void)read_everything(bad);
    }
  }
}

}  // namespace
}  // namespace scankit::elf
