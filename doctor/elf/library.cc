// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/library.h"

#include <elf.h>

#include "doctor/base/say.h"
#include "doctor/base/version.h"

namespace scankit::elf {

// Keeps Errc::Unsupported for 32-bit and big-endian files: a search passes over those and gives up at
// Errc::Malformed (attempt() in search.cc).
Result<std::shared_ptr<const ElfLibrary>> open_library(const Host& host, const std::string& path) {
  SCANKIT_TRY(const FileInfo info, host.stat(path));
  if (info.kind != FileKind::Regular)
    return Error{Errc::Malformed, message("{}: not a regular file", path), ""};
  SCANKIT_TRY(auto source, host.open(path));
  if (source->size() < sizeof(Elf64_Ehdr))
    return Error{Errc::Malformed, message("{}: file too short", path), ""};
  auto library = std::make_shared<ElfLibrary>();
  library->path = path;
  library->device = info.device;
  library->inode = info.inode;
  auto image = Image::open(std::shared_ptr<const ByteSource>(std::move(source)));
  if (!image) {
    const Message& why = image.error().message;
    return Error{image.error().code,
                 image.error().code == Errc::Malformed ? message("{}: invalid ELF header: {}", path, why)
                                                       : message("{}: {}", path, why),
                 ""};
  }
  library->image = *std::move(image);
  if (const auto missing = library->image.missing_part())
    return Error{Errc::Malformed, message("{}: file too short: {}", path, *missing), ""};
  auto dynamic = read_dynamic(library->image);
  if (!dynamic) return Error{Errc::Malformed, message("{}: {}", path, dynamic.error().message), ""};
  library->dynamic = *std::move(dynamic);
  auto versions = Versions::read(library->image, library->dynamic);
  if (!versions) return Error{Errc::Malformed, message("{}: {}", path, versions.error().message), ""};
  auto symbols = Symbols::open(library->image, library->dynamic, *std::move(versions));
  if (!symbols) return Error{Errc::Malformed, message("{}: {}", path, symbols.error().message), ""};
  library->symbols = *std::move(symbols);
  return std::shared_ptr<const ElfLibrary>(std::move(library));
}

Result<std::shared_ptr<const ElfLibrary>> LibraryCache::open(const std::string& path) {
  const auto known = known_.find(path);
  if (known != known_.end()) return known->second;
  SCANKIT_TRY(auto library, open_library(*host_, path));
  known_.emplace(path, library);
  return library;
}

void LibraryCache::keep(std::shared_ptr<const ElfLibrary> library) {
  known_.insert_or_assign(library->path, std::move(library));
}

bool LibraryCache::has_folder(const std::string& path) {
  const auto known = folders_.find(path);
  if (known != folders_.end()) return known->second;
  return folders_.emplace(path, host_->is_directory(path)).first->second;
}

// Both forms of c10::Error::Error(SourceLocation, std::string), as constructors C1 and C2: right for all 32
// torch releases from 1.11 to 2.15, while the flag in TorchConfig.cmake is gone from 2.8 on. "Ss" is how the
// Itanium C++ ABI abbreviates the old std::string; the new one is always spelled out.
std::string string_abi_of_torch(const Host& host, const std::string& libc10_path, Message& reason) {
  const auto library = open_library(host, libc10_path);
  if (!library) {
    reason = library.error().message;
    return "unknown";
  }
  const std::string start = "_ZN3c105ErrorC", middle = "ENS_14SourceLocationE";
  const std::string modern = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
  for (const char* constructor : {"1", "2"}) {
    for (const auto& [tail, abi] : {std::pair{modern, "new"}, std::pair{std::string("Ss"), "old"}}) {
      const std::string name = start + constructor + middle + tail;
      if (!(*library)->symbols.exports(SymbolQuery(name))) continue;
      reason = message("{} exports {}", libc10_path, name);
      return abi;
    }
  }
  reason = message("{} exports no known constructor of c10::Error", libc10_path);
  return "unknown";
}

Result<LibraryFacts> read_library_facts(const Host& host, const std::string& path) {
  SCANKIT_TRY(const auto library, open_library(host, path));
  return LibraryFacts{path, library->dynamic.soname, read_build_id(library->image), library->dynamic.needed};
}

Result<std::string> newest_defined_version(const Host& host, const std::string& path,
                                           const std::string& prefix) {
  SCANKIT_TRY(const auto library, open_library(host, path));
  std::optional<Version> newest;
  std::string text;
  for (const VersionDefinition& d : library->symbols.versions().definitions()) {
    // The base definition names the library itself ("libstdc++.so.6").
    if (d.base || !d.name.starts_with(prefix)) continue;
    const auto version = Version::parse(d.name.substr(prefix.size()));
    if (!version || (newest && *version <= *newest)) continue;
    newest = version;
    text = d.name.substr(prefix.size());
  }
  return text;
}

}  // namespace scankit::elf
