// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "ci/fuzz/targets.h"
#include "doctor/base/files.h"
#include "doctor/elf/fatbin.h"
#include "doctor/elf/library.h"
#include "doctor/host/host.h"
#include "doctor/probes/target/wheel.h"
#include "doctor/text/catalogue.h"

// The readers of binary formats: ELF files, fatbins, wheels and message catalogues.
namespace scankit::fuzz {
namespace {

class Memory : public ByteSource {
 public:
  explicit Memory(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, void* into, std::size_t length) const override {
    if (offset > bytes_.size() || bytes_.size() - offset < length)
      return Error{Errc::Malformed, "past the end", ""};
    bytes_.copy(static_cast<char*>(into), length, offset);
    return {};
  }

 private:
  std::string_view bytes_;
};

// A directory in memory for readers that want a path, used by all inputs of the process in turn. On a disk
// the fuzzer would spend its time there.
const std::string& folder_in_memory() {
  static const std::string path = [] {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
    static auto folder = TemporaryDirectory::create("scankit-fuzz");
    return folder ? folder->path() : std::string("/tmp");
  }();
  return path;
}

// Not atomic: no other process reads the file, and a rename for each input would be slow.
void write_plain(const std::string& path, std::string_view bytes) {
  FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) std::abort();
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) std::abort();
  std::fclose(file);
}

void read_elf(std::string_view input) {
  static const std::unique_ptr<Host> host = make_real_host();
  const std::string path = folder_in_memory() + "/input.so";
  write_plain(path, input);
  const auto library = elf::open_library(*host, path);
  if (!library) return;
  (void)(*library)->symbols.undefined().has_value();
  (void)(*library)->symbols.exported().has_value();
  (void)elf::find_device_images((*library)->image).has_value();
}

void read_fatbin_bytes(std::string_view input) {
  const elf::FileBytes file(std::make_shared<Memory>(input));
  const auto entries = elf::read_fatbin(file, 0, input.size());
  if (!entries) return;
  constexpr std::uint64_t kLimit = 4u << 20;
  for (const elf::FatbinEntry& entry : *entries) {
    (void)elf::cubin_abi(file, entry);
    (void)elf::cubin_compiler(file, entry).version.size();
    const auto payload = elf::fatbin_payload(file, entry, kLimit);
    if (!payload) continue;
    (void)elf::cubin_facts(*payload).has_value();
    (void)elf::ptx_facts(*payload).has_value();
  }
}

void read_wheel(std::string_view input) {
  const std::string path = folder_in_memory() + "/fuzz-1.0-py3-none-any.whl",
                    folder = folder_in_memory() + "/unpacked";
  write_plain(path, input);
  (void)probes::unpack_wheel(path, folder).has_value();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

void read_mo(std::string_view input) { (void)read_catalogue(std::string(input), "fuzz.mo").has_value(); }

constexpr std::array kBinaryTargets = {Target{"elf", read_elf}, Target{"fatbin", read_fatbin_bytes},
                                       Target{"wheel", read_wheel}, Target{"mo", read_mo}};

}  // namespace

std::span<const Target> binary_targets() { return kBinaryTargets; }

const Target* find_target(std::string_view name) {
  for (const auto targets : {binary_targets(), text_targets()})
    for (const Target& target : targets)
      if (target.name == name) return &target;
  return nullptr;
}

}  // namespace scankit::fuzz
