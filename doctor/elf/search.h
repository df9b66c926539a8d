// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/library.h"
#include "doctor/host/host.h"

namespace scankit::elf {

// /etc/ld.so.cache in the format "glibc-ld.so.cache1.1" (glibc elf/dl-cache.h), alone or behind the old one.
class LdCache {
 public:
  struct Entry {
    std::string soname, path;
    std::string hwcap;  // glibc-hwcaps folder it was found in; empty for the plain one
  };
  LdCache() = default;
  // Entries for 64-bit libraries of `machine` (EM_...). Empty where there is no cache or it is damaged:
  // `note` says so.
  static LdCache read(const Host& host, std::uint16_t machine);
  static LdCache parse(std::string bytes, std::uint16_t machine);

  // The file that the loader would try for this name on a processor with these hwcaps (best first); empty
  // where the cache has none.
  std::vector<std::string> lookup(std::string_view soname, const std::vector<std::string>& hwcaps) const;
  const std::vector<Entry>& entries() const { return entries_; }
  const Message& note() const { return note_; }

 private:
  std::vector<Entry> entries_;  // sorted by soname
  Message note_;
};

// Where glibc's loader looks for a library (elf/dl-load.c,
// _dl_map_object), as a function of the machine's files.

// What is the same for the whole life of one process.
struct SearchContext {
  std::string interpreter;                   // the loader itself: "/lib64/ld-linux-x86-64.so.2"
  std::uint16_t machine = 0;                 // of the main program; files for others are passed over
  std::string main_origin;                   // folder of the main program, all links resolved
  std::vector<std::string> library_path;     // LD_LIBRARY_PATH, expanded
  std::vector<std::string> preload;          // LD_PRELOAD
  std::vector<std::string> default_folders;  // compiled into the loader, without a '/' at the end
  std::vector<std::string> hwcaps;           // "x86-64-v3", ... that this processor has, best first
  std::string lib_token, platform_token;     // $LIB, $PLATFORM
  LdCache cache;
};
// From the main program's headers, the environment variables and the processor.
SearchContext make_search_context(const Host& host, const ElfLibrary& main_program,
                                  const std::string& main_path);

// $ORIGIN, $LIB, $PLATFORM and their ${...} forms.
std::string expand_tokens(const std::string& text, const std::string& origin, const SearchContext& context);

// One step of a search: directories in order, and where they come from.
struct SearchStep {
  std::string kind;  // "RPATH of FILE", "LD_LIBRARY_PATH", "RUNPATH of FILE"
  std::vector<std::string> folders;
  std::optional<std::vector<std::size_t>> existing = {};  // which of them exist, where that was looked up
};

struct SearchResult {
  std::shared_ptr<const ElfLibrary> library;  // null: not found
  std::vector<Message> searched;              // "RUNPATH /x", one a folder, in order; of very many the first
  Message fatal;                              // a file of that name at which the loader gives up
};
// `steps` are RPATHs, LD_LIBRARY_PATH and RUNPATH in the loader's order; the cache and the default folders
// follow, unless the object that asks was linked with -z nodefaultlib.
SearchResult search_library(LibraryCache& libraries, const SearchContext& context, const std::string& name,
                            const std::vector<SearchStep>& steps, bool no_default_folders);
// A name with a '/' in it: that file or nothing.
SearchResult open_named_file(LibraryCache& libraries, const SearchContext& context, const std::string& path);

}  // namespace scankit::elf
