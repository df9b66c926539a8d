// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "doctor/elf/dynamic.h"

namespace scankit {

struct VersionNeed {
  std::string file, name;  // "libc.so.6", "GLIBC_2.17"
  std::uint16_t index = 0;
  bool weak = false;    // the loader only warns where it is missing
  bool hidden = false;  // only this very version will do
};
struct VersionDefinition {
  std::string name;
  std::uint16_t index = 0;
  bool base = false;  // names the file, not a version
};

// Symbol versioning as the loader reads it (LSB Core, "Symbol Versioning"; glibc elf/dl-version.c).
class Versions {
 public:
  static Result<Versions> read(const Image& image, const Dynamic& dynamic);

  const std::vector<VersionNeed>& needs() const { return needs_; }
  const std::vector<VersionDefinition>& definitions() const { return definitions_; }
  bool has_definitions() const { return has_definitions_; }
  bool has_symbol_versions() const { return symbol_versions_ != 0; }
  // The versym entry of a symbol: bit 15 is "hidden", the rest an index; 1 (global) where it cannot be read.
  std::uint16_t of_symbol(const Image& image, std::uint32_t symbol) const;
  const VersionNeed* need(std::uint16_t index) const;
  // Empty for the local, global and base indices.
  std::string definition_name(std::uint16_t index) const;
  bool defines(const std::string& name) const;

 private:
  std::vector<VersionNeed> needs_;
  std::vector<VersionDefinition> definitions_;
  bool has_definitions_ = false;
  std::uint64_t symbol_versions_ = 0;
};

}  // namespace scankit
