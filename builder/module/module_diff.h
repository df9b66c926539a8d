// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

// For --check-reproducible: what differs between two builds, down to the section and the symbol.
namespace scankit {

// In which images, sections and symbols two builds of one module differ, in words; empty where they are the
// same bytes. Any two files may be given: what cannot be read as ELF is compared as bytes.
std::vector<std::string> module_differences(std::string_view first, std::string_view second);

// The same for one ELF file (a module, a cubin), each line begun with `where`; of `skipped` sections nothing
// is said.
std::vector<std::string> elf_differences(const std::string& where, std::string_view first,
                                         std::string_view second,
                                         const std::vector<std::string>& skipped = {});

}  // namespace scankit
