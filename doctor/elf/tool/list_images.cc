// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>

#include "doctor/base/files.h"
#include "doctor/elf/fatbin.h"
#include "doctor/elf/library.h"

// scankit_list_images [--kernels] FILE: one line an image, for the tests that compare with other readers of
// the same file: "cubin sm_90a zstd abi 8", "ptx sm_75 none isa 9.0". With --kernels one line for each
// kernel of the cubins. Exit status 2: wrong usage or unreadable; 3: not ELF; 4: a damaged fatbin.
namespace scankit::elf {
namespace {

void print(const FileBytes& file, const FatbinEntry& entry) {
  std::string more;
  if (entry.kind == "ptx")
    more = " isa " + std::to_string(entry.isa_major) + "." + std::to_string(entry.isa_minor);
  if (entry.kind == "cubin" || entry.kind == "ptx") {
    const auto payload = fatbin_payload(file, entry);
    if (!payload) more += " UNREADABLE " + english(payload.error().message);
    // The payload's own header must say what the entry says.
    if (payload && entry.kind == "cubin") {
      const auto facts = cubin_facts(*payload);
      more += facts && facts->sm == entry.sm ? " abi " + std::to_string(facts->abi_version) : " CONTRADICTED";
    }
    if (payload && entry.kind == "ptx") {
      const auto facts = ptx_facts(*payload);
      if (!facts || facts->sm != entry.sm || facts->specific != entry.specific) more += " CONTRADICTED";
    }
  }
  std::printf("%s sm_%u%s %s%s\n", entry.kind.c_str(), entry.sm, entry.specific.c_str(),
              entry.compression.c_str(), more.c_str());
}

void print_kernels(const FileBytes& file, const FatbinEntry& entry) {
  if (entry.kind != "cubin") return;
  const auto payload = fatbin_payload(file, entry);
  const auto kernels = payload ? cubin_kernels(*payload) : Result<std::vector<CubinKernel>>(payload.error());
  if (!kernels) std::printf("sm_%u UNREADABLE %s\n", entry.sm, english(kernels.error().message).c_str());
  if (!kernels) return;
  for (const CubinKernel& k : *kernels)
    std::printf("sm_%u %s REG:%u STACK:%u SHARED:%u %u threads\n", entry.sm, k.name.c_str(), k.registers,
                k.stack_bytes, k.static_shared_bytes, k.most_threads);
}

int list(const std::string& path, bool kernels) {
  const auto host = make_real_host();
  auto source = host->open(path);
  if (!source) return 2;
  const auto image = Image::open(std::shared_ptr<const ByteSource>(*std::move(source)));
  if (!image) return 3;
  const auto images = find_device_images(*image);
  if (!images) return 4;
  for (const FatbinEntry& entry : *images) (kernels ? print_kernels : print)(image->file(), entry);
  return 0;
}

}  // namespace
}  // namespace scankit::elf

int main(int argc, char** argv) {
  const bool kernels = argc == 3 && std::strcmp(argv[1], "--kernels") == 0;
  if (argc != 2 && !kernels) return 2;
  const char* file = argv[argc - 1];
  return scankit::elf::list(file[0] == '/' ? file : scankit::path_join(scankit::current_directory(), file),
                            kernels);
}
