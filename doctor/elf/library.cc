// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/library.h"

#include <elf.h>

#include "doctor/base/say.h"

namespace scankit {

Result<std::shared_ptr<const ElfLibrary>> open_library(const Host& host, const std::string& path) {
  SCANKIT_TRY(const FileInfo info, host.stat(path));
  if (info.kind != FileKind::Regular) return Error{Errc::Malformed, say("{}: not a regular file", path), ""};
  SCANKIT_TRY(auto source, host.open(path));
  if (source->size() < sizeof(Elf64_Ehdr)) return Error{Errc::Malformed, say("{}: file too short", path), ""};
  auto library = std::make_shared<ElfLibrary>();
  library->path = path;
  library->device = info.device;
  library->inode = info.inode;
  auto image = Image::open(std::shared_ptr<const ByteSource>(std::move(source)));
  if (!image) {
    const std::string& why = image.error().message;
    return Error{image.error().code,
                 image.error().code == Errc::Malformed ? say("{}: invalid ELF header: {}", path, why)
                                                       : path + ": " + why,
                 ""};
  }
  library->image = *std::move(image);
  if (const auto missing = library->image.missing_part())
    return Error{Errc::Malformed, say("{}: file too short: {}", path, *missing), ""};
  auto dynamic = read_dynamic(library->image);
  if (!dynamic) return Error{Errc::Malformed, path + ": " + dynamic.error().message, ""};
  library->dynamic = *std::move(dynamic);
  auto versions = Versions::read(library->image, library->dynamic);
  if (!versions) return Error{Errc::Malformed, path + ": " + versions.error().message, ""};
  auto symbols = Symbols::open(library->image, library->dynamic, *std::move(versions));
  if (!symbols) return Error{Errc::Malformed, path + ": " + symbols.error().message, ""};
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

bool LibraryCache::has_folder(const std::string& path) {
  const auto known = folders_.find(path);
  if (known != folders_.end()) return known->second;
  return folders_.emplace(path, host_->is_directory(path)).first->second;
}

}  // namespace scankit
