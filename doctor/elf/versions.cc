// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/versions.h"

#include <elf.h>

#include <algorithm>

#include "doctor/base/say.h"

namespace scankit {
namespace {

// Entries link to each other by offsets of the file; only a limit ends a hostile list.
constexpr std::uint64_t kVersionLimit = 1u << 16;

template <class T>
Result<T> entry_at(const Image& image, std::uint64_t address) {
  SCANKIT_TRY(const Bytes bytes, image.at_address(address, sizeof(T)));
  return *bytes.read<T>(0);
}

Result<std::uint64_t> step(std::uint64_t address, std::uint64_t by) {
  const auto next = checked_add(address, by);
  if (!next) return Error{Errc::Malformed, say("a version entry points outside the file"), ""};
  return *next;
}

// A Verneed is a file, its Vernaux entries are the versions wanted of it. vna_other is the index by which
// .gnu.version refers to one; its bit 15 means hidden (LSB Core, "Symbol Versioning").
Result<void> read_need_names(const Image& image, const Dynamic& dynamic, std::uint64_t address,
                             const Elf64_Verneed& need, std::vector<VersionNeed>& needs) {
  SCANKIT_TRY(const std::string file, dynamic.strings.at(need.vn_file));
  SCANKIT_TRY(std::uint64_t at, step(address, need.vn_aux));
  for (unsigned i = 0; i < need.vn_cnt; ++i) {
    if (needs.size() >= kVersionLimit) return Error{Errc::Malformed, say("too many version needs"), ""};
    SCANKIT_TRY(const Elf64_Vernaux aux, entry_at<Elf64_Vernaux>(image, at));
    SCANKIT_TRY(std::string name, dynamic.strings.at(aux.vna_name));
    needs.push_back({file, std::move(name), static_cast<std::uint16_t>(aux.vna_other & 0x7fff),
                     (aux.vna_flags & VER_FLG_WEAK) != 0, (aux.vna_other & 0x8000) != 0});
    if (aux.vna_next == 0) break;
    SCANKIT_TRY(at, step(at, aux.vna_next));
  }
  return {};
}

Result<std::vector<VersionNeed>> read_needs(const Image& image, const Dynamic& dynamic) {
  std::vector<VersionNeed> needs;
  std::uint64_t at = dynamic.version_needs;
  for (std::uint64_t i = 0; at != 0 && i < std::min(dynamic.version_need_count, kVersionLimit); ++i) {
    SCANKIT_TRY(const Elf64_Verneed need, entry_at<Elf64_Verneed>(image, at));
    SCANKIT_CHECK(read_need_names(image, dynamic, at, need, needs));
    if (need.vn_next == 0) break;
    SCANKIT_TRY(at, step(at, need.vn_next));
  }
  return needs;
}

// vd_ndx is the index by which .gnu.version refers to the definition.
Result<std::vector<VersionDefinition>> read_definitions(const Image& image, const Dynamic& dynamic) {
  std::vector<VersionDefinition> definitions;
  std::uint64_t at = dynamic.version_defs;
  for (std::uint64_t i = 0; at != 0 && i < std::min(dynamic.version_def_count, kVersionLimit); ++i) {
    SCANKIT_TRY(const Elf64_Verdef def, entry_at<Elf64_Verdef>(image, at));
    SCANKIT_TRY(const std::uint64_t first, step(at, def.vd_aux));
    SCANKIT_TRY(const Elf64_Verdaux aux,
                entry_at<Elf64_Verdaux>(image, first));  // the others are its parents
    SCANKIT_TRY(std::string name, dynamic.strings.at(aux.vda_name));
    definitions.push_back({std::move(name), static_cast<std::uint16_t>(def.vd_ndx & 0x7fff),
                           (def.vd_flags & VER_FLG_BASE) != 0});
    if (def.vd_next == 0) break;
    SCANKIT_TRY(at, step(at, def.vd_next));
  }
  return definitions;
}

}  // namespace

Result<Versions> Versions::read(const Image& image, const Dynamic& dynamic) {
  Versions versions;
  versions.symbol_versions_ = dynamic.version_symbols;
  versions.has_definitions_ = dynamic.version_defs != 0;
  SCANKIT_TRY(versions.needs_, read_needs(image, dynamic));
  SCANKIT_TRY(versions.definitions_, read_definitions(image, dynamic));
  return versions;
}

// One u16 for each entry of .dynsym. An entry that cannot be read counts as unversioned.
std::uint16_t Versions::of_symbol(const Image& image, std::uint32_t symbol) const {
  if (symbol_versions_ == 0) return VER_NDX_GLOBAL;
  const auto address = checked_add(symbol_versions_, std::uint64_t{symbol} * sizeof(Elf64_Half));
  if (!address) return VER_NDX_GLOBAL;
  const auto bytes = image.at_address(*address, sizeof(Elf64_Half));
  return bytes ? bytes->read<Elf64_Half>(0).value_or(VER_NDX_GLOBAL) : VER_NDX_GLOBAL;
}

const VersionNeed* Versions::need(std::uint16_t index) const {
  const auto it = std::ranges::find(needs_, index, &VersionNeed::index);
  return it == needs_.end() ? nullptr : &*it;
}

// A definition that is marked base names the file and matches no version.
std::string Versions::definition_name(std::uint16_t index) const {
  for (const VersionDefinition& d : definitions_)
    if (d.index == index && !d.base) return d.name;
  return "";
}

bool Versions::defines(const std::string& name) const {
  return std::ranges::any_of(definitions_,
                             [&](const VersionDefinition& d) { return !d.base && d.name == name; });
}

}  // namespace scankit
