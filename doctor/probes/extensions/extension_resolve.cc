// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/extensions/extension_resolve.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/elf/torch_load.h"
#include "doctor/probes/extensions/extension_missing.h"

namespace scankit {
namespace {

std::string soname_of(const LoadedObject& object) {
  const Dynamic& dynamic = object.library->dynamic;
  return dynamic.has_soname ? dynamic.soname : path_basename(object.path);
}

// The newest version of the same family: "GLIBC_2.36" for a need of "GLIBC_2.38".
std::string newest_like(const Versions& versions, const std::string& wanted) {
  const std::string family = wanted.substr(0, wanted.rfind('_') + 1);
  std::optional<Version> newest;
  std::string text;
  for (const VersionDefinition& d : versions.definitions()) {
    if (d.base || !d.name.starts_with(family)) continue;
    const auto version = Version::parse(d.name.substr(family.size()));
    if (!version || (newest && *version <= *newest)) continue;
    newest = version;
    text = d.name;
  }
  return text;
}

}  // namespace

TorchLoadRequest torch_load_request(const Snapshot& so_far) {
  TorchLoadRequest request;
  request.location = so_far.torch.value.location;
  if (const auto cuda = Version::parse(so_far.torch.value.cuda))
    request.cuda_major = std::to_string(cuda->part(0));
  for (const PathEntry& entry : so_far.python.value.sys_path) request.sys_path.push_back(entry.path);
  request.extension_suffixes = so_far.python.value.extension_suffixes;
  return request;
}

ExtensionResolver::ExtensionResolver(const Host& host, const Snapshot& so_far)
    : host_(host), so_far_(so_far), libraries_(host) {
  auto process = ProcessImage::start(libraries_, so_far.python.value.executable);
  if (!process) {
    failure_ = say("the loader's work could not be followed: {}", process.error().message);
    return;
  }
  bare_ = *std::move(process);
  if (!bare_->missing_at_start().empty()) {
    const UnfoundLibrary& first = bare_->missing_at_start().front();
    failure_ = say("the interpreter itself does not start: {}, needed by {}, is nowhere", first.name,
                   first.needed_by);
  }
  with_torch_ = bare_;
  if (so_far.torch.present()) load_torch_here(host, so_far);
}

void ExtensionResolver::load_torch_here(const Host& host, const Snapshot& so_far) {
  const TorchLoad torch = load_torch(*with_torch_, host, torch_load_request(so_far));
  if (!torch.loaded) torch_note_ = say("torch could not be loaded: {}", torch.note);
  for (const UnfoundLibrary& missing : torch.missing) {
    std::string line = say("{} needed by {}", missing.name, path_normalize(missing.needed_by));
    if (!missing.fatal.empty()) line += " (" + missing.fatal + ")";
    torch_missing_.push_back(std::move(line));
  }
  std::vector<int> added;
  for (int i = bare_->object_count(); i < with_torch_->object_count(); ++i) added.push_back(i);
  for (const UnmetNeed& unmet : with_torch_->unmet_versions(added))
    torch_missing_.push_back(say("{} with version {} needed by {}",
                                 soname_of(with_torch_->object(unmet.provider)), unmet.version,
                                 path_normalize(with_torch_->object(unmet.object).path)));
}

void ExtensionResolver::take_symbols(const ProcessImage& process, const LoadResult& loaded, Extension& copy) {
  const auto resolved = process.resolve(loaded.object, loaded.list);
  if (!resolved) {
    copy.resolved = false;
    copy.resolution_note = resolved.error().message;
    return;
  }
  for (const ResolvedSymbol& r : *resolved) {
    if (r.symbol.weak) continue;
    ++copy.undefined;
    if (r.provider >= 0) {
      ++copy.provided;
      continue;
    }
    MissingSymbol missing;
    missing.name = r.symbol.name;
    missing.version = r.symbol.version;
    copy.missing_symbols.push_back(std::move(missing));
  }
  if (copy.missing_symbols.empty()) return;
  std::vector<std::shared_ptr<const ElfLibrary>> torch;
  for (const Library& library : so_far_.torch.value.libraries)
    if (const auto opened = libraries_.open(library.path)) torch.push_back(*opened);
  explain_missing_symbols(copy, torch, copy.missing_symbols);
}

void ExtensionResolver::take_libraries(const LoadResult& loaded, Extension& copy) {
  for (const UnfoundLibrary& unfound : loaded.missing) {
    MissingLibrary missing;
    missing.soname = unfound.name;
    missing.needed_by = path_normalize(unfound.needed_by);
    missing.searched = unfound.searched;
    if (!unfound.fatal.empty()) missing.searched.push_back(say("stopped at {}", unfound.fatal));
    look_elsewhere(host_, so_far_, with_torch_->context(), missing);
    copy.missing_libraries.push_back(std::move(missing));
  }
}

void ExtensionResolver::take_versions(const ProcessImage& process, const LoadResult& loaded,
                                      Extension& copy) {
  for (const UnmetNeed& unmet : process.unmet_versions(loaded.added)) {
    UnmetVersion entry;
    entry.library = path_normalize(process.object(unmet.provider).path);
    entry.version = unmet.version;
    entry.provided_max =
        newest_like(process.object(unmet.provider).library->symbols.versions(), unmet.version);
    entry.needed_by = path_normalize(process.object(unmet.object).path);
    if (const auto undefined = process.object(unmet.object).library->symbols.undefined())
      for (const UndefinedSymbol& symbol : *undefined)
        if (symbol.version == unmet.version && entry.symbols.size() < 64)
          entry.symbols.push_back(symbol.name);
    copy.unmet_versions.push_back(std::move(entry));
  }
}

// What is there only because torch came first: libraries that a bare import would not find, and, where it
// finds them all, those whose names it reaches through torch's global scope.
void ExtensionResolver::take_need_of_torch(const LoadResult& loaded, Extension& copy) {
  ProcessImage bare = *bare_;
  const LoadResult alone = bare.load(copy.path, bare.python_object(), false);
  if (alone.object < 0) return;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(copy.needs_torch_first, name) == copy.needs_torch_first.end())
      copy.needs_torch_first.push_back(name);
  };
  for (const UnfoundLibrary& unfound : alone.missing)
    if (std::ranges::none_of(loaded.missing, [&](const UnfoundLibrary& m) { return m.name == unfound.name; }))
      add(unfound.name);
  if (!alone.missing.empty()) return;
  const auto resolved = bare.resolve(alone.object, alone.list);
  if (!resolved) return;
  for (const ResolvedSymbol& r : *resolved) {
    if (r.symbol.weak || r.provider >= 0) continue;
    const int provider = with_torch_->provider_of(SymbolQuery(r.symbol), {});
    if (provider >= 0) add(soname_of(with_torch_->object(provider)));
  }
}

void ExtensionResolver::resolve(Extension& copy) {
  if (!failure_.empty()) {
    copy.resolution_note = failure_;
    return;
  }
  ProcessImage process = *with_torch_;
  const LoadResult loaded = process.load(copy.path, process.python_object(), false);
  if (loaded.object < 0) {
    copy.resolution_note = loaded.failure;
    return;
  }
  copy.resolved = true;
  copy.resolution_note = torch_note_;
  for (const int i : loaded.list) copy.closure.push_back(path_normalize(process.object(i).path));
  take_symbols(process, loaded, copy);
  take_libraries(loaded, copy);
  take_versions(process, loaded, copy);
  if (so_far_.torch.present()) take_need_of_torch(loaded, copy);
}

}  // namespace scankit
