// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/search.h"

#include <elf.h>

#include <algorithm>

#include "doctor/base/say.h"

namespace scankit {
namespace {

struct Attempt {
  std::shared_ptr<const ElfLibrary> library;
  bool passed_over = true;  // the loader goes on to the next folder
  std::string why;
};

// open_verify() in elf/dl-load.c: a file of another class or machine is passed over silently; one that is
// damaged ends the whole search with an error, even if a good one follows.
Attempt attempt(LibraryCache& libraries, const SearchContext& context, const std::string& path) {
  auto opened = libraries.open(path);
  if (opened) {
    if ((*opened)->image.identity().machine != context.machine) return {};
    const std::uint16_t type = (*opened)->image.identity().type;
    if (type != ET_DYN) return {nullptr, false, say("{}: not a shared library", path)};
    return {*opened, false, ""};
  }
  const Errc code = opened.error().code;
  if (code == Errc::NotFound || code == Errc::PermissionDenied || code == Errc::Unsupported) return {};
  return {nullptr, false, opened.error().message};
}

// Whether the name was settled: found, or given up.
bool try_file(LibraryCache& libraries, const SearchContext& context, const std::string& path,
              SearchResult& result) {
  Attempt got = attempt(libraries, context, path);
  if (got.passed_over) return false;
  result.library = std::move(got.library);
  result.fatal = std::move(got.why);
  return true;
}

bool try_folder(LibraryCache& libraries, const SearchContext& context, const std::string& folder,
                const std::string& name, SearchResult& result) {
  if (!libraries.has_folder(folder)) return false;
  const std::string levels = folder + "/glibc-hwcaps";
  if (libraries.has_folder(levels))
    for (const std::string& level : context.hwcaps)
      if (try_file(libraries, context, levels + "/" + level + "/" + name, result)) return true;
  return try_file(libraries, context, folder + "/" + name, result);
}

bool is_default_folder_file(const SearchContext& context, const std::string& path) {
  return std::ranges::any_of(context.default_folders,
                             [&](const std::string& folder) { return path.starts_with(folder + "/"); });
}

// The first `count` folders of a step were looked at. A RUNPATH may name thousands, for each of thousands of
// libraries: of so many the first are told. Returns how many are not.
std::size_t note_searched(const SearchStep& step, std::size_t count, std::vector<std::string>& searched) {
  constexpr std::size_t kMost = 64;
  std::size_t i = 0;
  for (; i < count && searched.size() < kMost; ++i) searched.push_back(step.kind + " " + step.folders[i]);
  return count - i;
}

bool search_steps(LibraryCache& libraries, const SearchContext& context, const std::string& name,
                  const std::vector<SearchStep>& steps, SearchResult& result) {
  std::size_t more = 0;
  for (const SearchStep& step : steps) {
    const std::size_t tries = step.existing ? step.existing->size() : step.folders.size();
    for (std::size_t i = 0; i < tries; ++i) {
      const std::size_t at = step.existing ? (*step.existing)[i] : i;
      if (!try_folder(libraries, context, step.folders[at], name, result)) continue;
      // The last is where it was found.
      if (note_searched(step, at + 1, result.searched) > 0)
        result.searched.push_back(step.kind + " " + step.folders[at]);
      return true;
    }
    more += note_searched(step, step.folders.size(), result.searched);
  }
  if (more > 0)
    result.searched.push_back(say_n(more, "and {} more directory", "and {} more directories", more));
  return false;
}

}  // namespace

std::string expand_tokens(const std::string& text, const std::string& origin, const SearchContext& context) {
  const std::pair<std::string_view, const std::string*> tokens[] = {
      {"ORIGIN", &origin}, {"LIB", &context.lib_token}, {"PLATFORM", &context.platform_token}};
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    bool replaced = false;
    for (const auto& [name, value] : tokens) {
      if (text[i] != '$') break;
      const std::string plain = "$" + std::string(name), braced = "${" + std::string(name) + "}";
      const std::string& form = text.compare(i, braced.size(), braced) == 0 ? braced : plain;
      if (text.compare(i, form.size(), form) != 0) continue;
      out += *value;
      i += form.size();
      replaced = true;
      break;
    }
    if (!replaced) out += text[i++];
  }
  return out;
}

SearchResult search_library(LibraryCache& libraries, const SearchContext& context, const std::string& name,
                            const std::vector<SearchStep>& steps, bool no_default_folders) {
  SearchResult result;
  if (search_steps(libraries, context, name, steps, result)) return result;
  result.searched.emplace_back("/etc/ld.so.cache");
  for (const std::string& path : context.cache.lookup(name, context.hwcaps)) {
    if (no_default_folders && is_default_folder_file(context, path)) continue;
    if (try_file(libraries, context, path, result)) return result;
  }
  if (no_default_folders) return result;
  for (const std::string& folder : context.default_folders) {
    result.searched.push_back(say("default {}", folder));
    if (try_folder(libraries, context, folder, name, result)) return result;
  }
  return result;
}

SearchResult open_named_file(LibraryCache& libraries, const SearchContext& context, const std::string& path) {
  SearchResult result;
  result.searched.push_back(say("file {}", path));
  Attempt got = attempt(libraries, context, path);
  result.library = std::move(got.library);
  result.fatal = std::move(got.why);
  if (got.passed_over && result.fatal.empty() && libraries.host().exists(path))
    result.fatal = say("{}: made for another processor", path);
  return result;
}

}  // namespace scankit
