// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builder/compile/compile.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/result.h"
#include "doctor/host/host.h"

// Puts device images into a host module without a linker: the sections are not allocated, so that no segment
// changes; they are appended, and a new section header table after them. The same input gives the same bytes.
namespace scankit::module {

// A section to append, with its alignment in bytes.
struct ModuleSection {
  std::string name;
  std::string bytes;
  std::uint64_t alignment = 8;
};

// Returns the file with the sections appended. Their offsets in the new file are added to `offsets`, in the
// order given. Errc::Malformed if `elf` is not a 64-bit little-endian ELF file with a section table;
// Errc::Conflict if it already has a section of one of the names.
Result<std::string> append_sections(std::string_view elf, const std::vector<ModuleSection>& sections,
                                    std::vector<std::uint64_t>& offsets);

// The bytes of a section; Errc::NotFound where there is none of that name.
Result<std::string> section_bytes(std::string_view elf, std::string_view name);

// Host module + images + manifest -> the finished module, with .nv_fatbin, .scankit.images and
// .scankit.manifest at its end (builder/README.md has the layout). The order of `images` is the order in the
// file and in the index.
Result<std::string> assemble_module(std::string_view host_module,
                                    const std::vector<compile::BuiltCode>& images, std::string_view manifest);

// What a finished module must contain. The file is read back with the doctor's own readers and not with the
// code that wrote it, so that what is promised here is what the doctor will see on the user's machine.
struct ModulePromise {
  std::string module;                      // exports PyInit_<module> and nothing else
  std::vector<compile::BuiltCode> images;  // each there with its size and hash
  bool for_one_torch = false;              // may need libraries; torch_flavor.h has what it promises
};
// The Error names the first promise that does not hold.
Result<void> assert_module(const Host& host, const std::string& path, const ModulePromise& promise);

// For --check-reproducible: what differs between two builds, down to the section and the symbol.

// In which images, sections and symbols two builds of one module differ, in words; empty where they are the
// same bytes. Any two files may be given: what cannot be read as ELF is compared as bytes.
std::vector<std::string> module_differences(std::string_view first, std::string_view second);

// The same for one ELF file (a module, a cubin), each line begun with `where`; of `skipped` sections nothing
// is said.
std::vector<std::string> elf_differences(const std::string& where, std::string_view first,
                                         std::string_view second,
                                         const std::vector<std::string>& skipped = {});

// What a finished module was made of, as JSON: inputs, compiler, images with their hashes. It lies inside the
// module and beside it. No path and no time, so that two machines write the same bytes.
struct ManifestInput {
  std::string flavor = "universal";
  const compile::Explanation* explanation = nullptr;  // its images in the same order as `images`
  const std::vector<compile::BuiltCode>* images = nullptr;
  // A compiler, and the targets that it made.
  struct Maker {
    const toolchain::DeviceCompiler* compiler;
    std::vector<Target> targets;
  };
  std::vector<Maker> compilers;
};
std::string write_manifest(const ManifestInput& input);

// The manifest inside a module. If the file is not such a module, the Error says what it is instead.
Result<std::string> read_manifest(const std::string& path);
// The same of a manifest, a module with one inside, or the output of `--explain --json`, as values.
Result<compile::Explanation> read_explanation(const std::string& path);
// Whether a module holds the images that its manifest names; Errc::Malformed with the first that is another.
Result<void> check_against_manifest(const std::string& path, const std::string& manifest);

}  // namespace scankit::module
