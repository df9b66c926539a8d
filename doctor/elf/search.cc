// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/search.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/elf/bytes.h"

namespace scankit::elf {
namespace {

// CACHEMAGIC_VERSION_NEW, CACHEMAGIC, cache_extension_magic and DL_CACHE_HWCAP_EXTENSION of elf/dl-cache.h.
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::uint32_t kExtensionMagic = 0xeaa42174;
constexpr std::uint64_t kHwcapExtension = std::uint64_t{1} << 62;

// struct cache_file_new, file_entry_new and cache_extension_section of the same header. `key` and `value`
// are the offsets of the soname and of the path, from the start of Header.
struct Header {
  char magic[20];
  std::uint32_t count, string_length;
  std::uint8_t flags, padding[3];
  std::uint32_t extension_offset, unused[3];
};
struct CacheEntry {
  std::int32_t flags;
  std::uint32_t key, value, os_version;
  std::uint64_t hwcap;
};
struct ExtensionSection {
  std::uint32_t tag, flags, offset, size;
};
static_assert(sizeof(Header) == 48 && sizeof(CacheEntry) == 24);

// sysdeps/generic/ldconfig.h: FLAG_ELF_LIBC6 with the machine's bits.
std::int32_t wanted_flags(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return 0x0303;
    case EM_AARCH64:
      return 0x0a03;
    case EM_PPC64:
      return 0x0503;
    case EM_S390:
      return 0x0403;
    case EM_RISCV:
      return 0x1003;
    default:
      return -1;
  }
}

// The glibc-hwcaps subdirectories that entries refer to by their index here. Empty for an ldconfig older
// than glibc 2.33, which writes no extension. The bounds of 16 and 256 are for hostile files.
std::vector<std::string> hwcap_names(const Bytes& cache, const Header& header) {
  std::vector<std::string> names;
  const auto magic = cache.read<std::uint32_t>(header.extension_offset);
  const auto count = cache.read<std::uint32_t>(std::uint64_t{header.extension_offset} + 4);
  if (header.extension_offset == 0 || !magic || *magic != kExtensionMagic || !count) return names;
  for (std::uint64_t i = 0; i < std::min<std::uint32_t>(*count, 16); ++i) {
    const auto section =
        cache.read<ExtensionSection>(header.extension_offset + 8 + i * sizeof(ExtensionSection));
    if (!section || section->tag != 1) continue;  // cache_extension_tag_glibc_hwcaps
    const auto table = cache.slice(section->offset, section->size);
    for (std::uint64_t k = 0; table && k < std::min<std::uint32_t>(section->size / 4, 256); ++k)
      names.emplace_back(cache.c_string(*table->element<std::uint32_t>(k)).value_or(""));
  }
  return names;
}

}  // namespace

LdCache LdCache::read(const Host& host, std::uint16_t machine) {
  auto bytes = host.read_file("/etc/ld.so.cache");
  if (bytes) return parse(*std::move(bytes), machine);
  LdCache cache;
  cache.note_ = bytes.error().message;
  return cache;
}

LdCache LdCache::parse(std::string data, std::uint16_t machine) {
  LdCache cache;
  // `ldconfig --format=compat` writes the old format and the new one behind it.
  const auto start = data.find(kNewMagic);
  if (start == std::string::npos || (start != 0 && !data.starts_with(kOldMagic))) {
    cache.note_ = message("/etc/ld.so.cache is not in the format of glibc 2.2 or newer");
    return cache;
  }
  data.erase(0, start);  // offsets of the new format count from its own header
  const Bytes bytes(std::move(data));
  const auto header = bytes.read<Header>(0);
  if (!header) {
    cache.note_ = message("/etc/ld.so.cache is truncated");
    return cache;
  }
  const std::vector<std::string> names = hwcap_names(bytes, *header);
  const std::int32_t flags = wanted_flags(machine);
  for (std::uint64_t i = 0; i < header->count; ++i) {
    const auto raw = bytes.read<CacheEntry>(sizeof(Header) + i * sizeof(CacheEntry));
    if (!raw) {
      cache.note_ = message("/etc/ld.so.cache is truncated");
      break;
    }
    const auto name = bytes.c_string(raw->key), path = bytes.c_string(raw->value);
    if (raw->flags != flags || !name || !path) continue;
    std::string hwcap;
    if ((raw->hwcap & kHwcapExtension) != 0) {
      const auto index = static_cast<std::uint32_t>(raw->hwcap);
      if (index >= names.size()) continue;
      hwcap = names[index];
    } else if (raw->hwcap != 0) {
      continue;  // processor bits of ldconfig before 2.33, which no newer loader reads
    }
    cache.entries_.push_back({std::string(*name), std::string(*path), std::move(hwcap)});
  }
  // Stable: among entries of one soname the order of the file decides.
  std::ranges::stable_sort(cache.entries_, {}, &Entry::soname);
  return cache;
}

std::vector<std::string> LdCache::lookup(std::string_view soname,
                                         const std::vector<std::string>& hwcaps) const {
  const auto first = std::ranges::lower_bound(entries_, soname, std::less<>{}, &Entry::soname);
  const auto last = std::find_if(first, entries_.end(), [&](const Entry& e) { return e.soname != soname; });
  // The loader takes one entry: that of the best hwcap it has, or else the first plain one.
  for (const std::string& wanted : hwcaps)
    for (auto it = first; it != last; ++it)
      if (it->hwcap == wanted) return {it->path};
  for (auto it = first; it != last; ++it)
    if (it->hwcap.empty()) return {it->path};
  return {};
}

namespace {

// The loader contains its default directories as strings in a row, each with a '/' at its end: "/lib64/",
// "/usr/lib64/". Distributions choose them when glibc is built, so the file is the only one that knows.
// `loader` is the contents of the file; the longest row around a "/usr/lib" wins, since the text occurs
// elsewhere too.
std::vector<std::string> folders_in_loader(const std::string& loader) {
  std::vector<std::string> folders;
  for (auto at = loader.find("/usr/lib"); at != std::string::npos; at = loader.find("/usr/lib", at + 1)) {
    std::size_t first = at;
    while (first > 1 && loader[first - 1] == '\0') {  // back over the strings before it
      const auto before = loader.rfind('\0', first - 2);
      const std::size_t start = before == std::string::npos ? 0 : before + 1;
      if (start >= first - 1 || loader[start] != '/' || loader[first - 2] != '/') break;
      first = start;
    }
    std::vector<std::string> run;
    for (std::size_t i = first; i < loader.size() && loader[i] == '/' && run.size() < 16;) {
      const auto end = loader.find('\0', i);
      if (end == std::string::npos || end - i > 256 || loader[end - 1] != '/') break;
      run.push_back(loader.substr(i, end - i - 1));
      i = end + 1;
    }
    if (run.size() > folders.size()) folders = std::move(run);
  }
  return folders;
}

std::vector<std::string> default_folders(const Host& host, const SearchContext& context) {
  if (const auto loader = host.read_file(context.interpreter, 4u << 20)) {
    auto folders = folders_in_loader(*loader);
    if (!folders.empty()) return folders;
  }
  // The loader cannot be read or has no such strings: Debian's directories where they exist, else those
  // of Red Hat.
  const std::string triplet = context.machine == EM_AARCH64 ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
  if (host.is_directory("/usr/lib/" + triplet))
    return {"/lib/" + triplet, "/usr/lib/" + triplet, "/lib", "/usr/lib"};
  return {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
}

// x86-64 psABI, "micro-architecture levels", by the names of /proc/cpuinfo ("pni" is SSE3, "abm" LZCNT).
// Each level includes those below it. Best first, as the loader tries them. The levels of POWER and of IBM Z
// are not modelled.
std::vector<std::string> hwcaps(const Host& host, std::uint16_t machine) {
  if (machine != EM_X86_64) return {};
  const auto cpuinfo = host.read_file("/proc/cpuinfo");
  if (!cpuinfo) return {};
  const auto line = cpuinfo->find("\nflags");
  if (line == std::string::npos) return {};
  std::istringstream words(cpuinfo->substr(line, cpuinfo->find('\n', line + 1) - line));
  std::set<std::string> have;
  for (std::string word; words >> word;) have.insert(word);
  const std::vector<std::pair<std::string, std::vector<std::string>>> levels = {
      {"x86-64-v2", {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}},
      {"x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}},
      {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}};
  std::vector<std::string> found;
  for (const auto& [level, flags] : levels) {
    if (!std::ranges::all_of(flags, [&](const std::string& f) { return have.contains(f); })) break;
    found.insert(found.begin(), level);
  }
  return found;
}

}  // namespace

SearchContext make_search_context(const Host& host, const ElfLibrary& main_program,
                                  const std::string& main_path) {
  SearchContext context;
  context.interpreter = read_interpreter(main_program.image);
  context.machine = main_program.image.identity().machine;
  context.main_origin = path_dirname(host.realpath(main_path).value_or(main_path));
  context.default_folders = default_folders(host, context);
  context.hwcaps = hwcaps(host, context.machine);
  context.platform_token = machine_name(main_program.image.identity());
  // $LIB is "lib64" on Red Hat and "lib/x86_64-linux-gnu" on Debian: the default directories tell which.
  const std::string& first = context.default_folders.front();
  const bool has_lib64 =
      std::ranges::find(context.default_folders, "/lib64") != context.default_folders.end();
  context.lib_token = has_lib64 ? "lib64" : first.substr(first.empty() ? 0 : 1);
  if (const auto path = host.env("LD_LIBRARY_PATH"); path && !path->empty()) {
    // ':' and ';' separate the directories (ld.so(8)).
    for (const std::string& part : split(*path, ":;")) {
      std::string folder = part.empty() ? host.env("PWD").value_or(".") : part;  // empty: the current folder
      folder = expand_tokens(folder, context.main_origin, context);
      while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
      context.library_path.push_back(std::move(folder));
    }
  }
  // Blanks and colons separate the names (ld.so(8)).
  if (const auto preload = host.env("LD_PRELOAD"))
    for (const std::string& name : split(*preload, ": "))
      if (!name.empty()) context.preload.push_back(expand_tokens(name, context.main_origin, context));
  context.cache = LdCache::read(host, context.machine);
  return context;
}

namespace {

struct Attempt {
  std::shared_ptr<const ElfLibrary> library;
  bool passed_over = true;  // the loader goes on to the next folder
  Message why;
};

// open_verify() in elf/dl-load.c: a file of another class or machine is passed over silently; one that is
// damaged ends the whole search with an error, even if a good one follows. A file that does not exist or may
// not be read is passed over by open_path().
Attempt attempt(LibraryCache& libraries, const SearchContext& context, const std::string& path) {
  auto opened = libraries.open(path);
  if (opened) {
    if ((*opened)->image.identity().machine != context.machine) return {};
    const std::uint16_t type = (*opened)->image.identity().type;
    if (type != ET_DYN) return {nullptr, false, message("{}: not a shared library", path)};
    return {*opened, false, ""};
  }
  const Errc code = opened.error().code;
  if (code == Errc::NotFound || code == Errc::PermissionDenied || code == Errc::Unsupported) return {};
  return {nullptr, false, opened.error().message};
}

// True where the name is settled: found, or given up.
bool try_file(LibraryCache& libraries, const SearchContext& context, const std::string& path,
              SearchResult& result) {
  Attempt got = attempt(libraries, context, path);
  if (got.passed_over) return false;
  result.library = std::move(got.library);
  result.fatal = std::move(got.why);
  return true;
}

// The subdirectories of the processor's levels come before the directory itself (elf/dl-hwcaps.c).
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
std::size_t note_searched(const SearchStep& step, std::size_t count, std::vector<Message>& searched) {
  constexpr std::size_t kMost = 64;
  std::size_t i = 0;
  for (; i < count && searched.size() < kMost; ++i) searched.push_back(step.kind + " " + step.folders[i]);
  return count - i;
}

// `step.existing` spares a look at directories that are known to be missing. `searched` lists them all the
// same: the loader would have looked there.
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
    result.searched.push_back(message_n(more, "and {} more directory", "and {} more directories", more));
  return false;
}

}  // namespace

// An unknown token stays in the text, as the loader leaves it.
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
      // glibc's is_dst() compares the longest identifier: $ORIGINAL is no $ORIGIN.
      const char next = i + form.size() < text.size() ? text[i + form.size()] : '\0';
      if (&form == &plain && (std::isalnum(static_cast<unsigned char>(next)) != 0 || next == '_')) continue;
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
    result.searched.push_back(message("default {}", folder));
    if (try_folder(libraries, context, folder, name, result)) return result;
  }
  return result;
}

// dlopen("/a/b.so") and a DT_NEEDED with a '/': the loader does not search, so a file for another machine is
// an error here, while search_library() passes over it.
SearchResult open_named_file(LibraryCache& libraries, const SearchContext& context, const std::string& path) {
  SearchResult result;
  result.searched.push_back(message("file {}", path));
  Attempt got = attempt(libraries, context, path);
  result.library = std::move(got.library);
  result.fatal = std::move(got.why);
  if (got.passed_over && result.fatal.empty() && libraries.host().exists(path))
    result.fatal = message("{}: built for another processor", path);
  return result;
}

}  // namespace scankit::elf
