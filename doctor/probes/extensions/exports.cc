// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>

#include <algorithm>
#include <array>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/extensions.h"

namespace scankit::probes {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
// torch's largest library has 75 thousand names in 10 MB; a compression bomb ends here.
constexpr std::uint64_t kNamesLimit = 256u << 20;
constexpr int kLevel = 12;

// Without padding; from_base64() expects none. `held` counts the bits that are not yet written.
std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 4 / 3 + 4);
  unsigned held = 0, bits = 0;
  for (const char c : bytes) {
    bits = (bits << 8 | static_cast<unsigned char>(c)) & 0xffff;
    for (held += 8; held >= 6; held -= 6) text += kBase64[bits >> (held - 6) & 63];
  }
  if (held > 0) text += kBase64[bits << (6 - held) & 63];
  return text;
}

Error malformed(const Message& why) {
  return {Errc::Malformed, message("the packed names of a library are damaged: {}", why), ""};
}

Result<std::string> from_base64(std::string_view text) {
  std::array<int, 256> value{};
  value.fill(-1);
  for (std::size_t i = 0; i < kBase64.size(); ++i)
    value[static_cast<unsigned char>(kBase64[i])] = static_cast<int>(i);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  unsigned held = 0, bits = 0;
  for (const char c : text) {
    const int six = value[static_cast<unsigned char>(c)];
    if (six < 0) return malformed(message("a character that is not base64"));
    bits = (bits << 6 | static_cast<unsigned>(six)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xff);
  }
  return bytes;
}

// A library whose names cannot be read keeps an empty `names`, which unpack_names() refuses: its names stay
// open and are not taken for missing.
ExportTable table_of(const elf::LoadedObject& object, bool global) {
  ExportTable table;
  table.path = path_normalize(object.path);
  table.soname = object.library->dynamic.soname;
  table.global = global;
  table.needed = object.library->dynamic.needed;
  for (const elf::VersionDefinition& d : object.library->symbols.versions().definitions())
    if (!d.base) table.versions.push_back(d.name);
  auto names = object.library->symbols.exported();
  if (!names) return table;
  std::ranges::sort(*names);
  names->erase(std::unique(names->begin(), names->end()), names->end());
  table.count = names->size();
  table.names = pack_names(*names);
  return table;
}

bool is_soname(const std::string& name) { return name.find(".so") != std::string::npos; }

}  // namespace

std::string pack_names(const std::vector<std::string>& sorted) {
  std::string text;
  std::string_view before;
  for (const std::string& name : sorted) {
    std::size_t shared = 0;
    // The length of a shared prefix has to fit into one byte.
    while (shared < 255 && shared < name.size() && shared < before.size() && name[shared] == before[shared])
      ++shared;
    text += static_cast<char>(shared);
    text += name.substr(shared);
    text += '\n';
    before = name;
  }
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), kLevel));
  return to_base64(packed);
}

// The text may come from a stored snapshot of somebody else, so every length in it is checked.
Result<std::vector<std::string>> unpack_names(const std::string& packed) {
  SCANKIT_TRY(const std::string bytes, from_base64(packed));
  // The frame states its own length: it is compared with the limit before the memory is allocated.
  const auto size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kNamesLimit)
    return malformed(message("no zstd frame of a usable length"));
  std::string text(size, '\0');
  const std::size_t got = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) != 0 || got != size) return malformed(message("its zstd data does not decompress"));
  std::vector<std::string> names;
  std::uint64_t total = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto shared = static_cast<unsigned char>(text[at]);
    const auto end = text.find('\n', at + 1);
    const std::string_view before = names.empty() ? std::string_view() : names.back();
    if (end == std::string::npos || shared > before.size())
      return malformed(message("a symbol is truncated"));
    std::string name(before.substr(0, shared));
    name.append(text, at + 1, end - at - 1);
    // pack_names() gets sorted names without repeats, so anything else is damage.
    if (!names.empty() && name <= before) return malformed(message("its symbols are not sorted"));
    if ((total += name.size()) > kNamesLimit) return malformed(message("more symbols than any library has"));
    names.push_back(std::move(name));
    at = end + 1;
  }
  return names;
}

Probed<Exports> probe_exports(const Host& host, const Snapshot& so_far) {
  if (!so_far.python.present())
    return Probed<Exports>::failed(message("no Python to look at: {}", so_far.python.note));
  const ExtensionResolver resolver(host, so_far);
  if (!resolver.failure().empty()) return Probed<Exports>::failed(resolver.failure());
  const elf::ProcessImage& process = resolver.with_torch();
  Exports exports;
  for (int i = 0; i < process.object_count(); ++i)
    exports.libraries.push_back(table_of(process.object(i), process.is_global(i)));
  return Probed<Exports>::of(std::move(exports));
}

Probed<std::vector<std::string>> probe_reachable(const Host& host, const Snapshot& so_far) {
  using Answer = Probed<std::vector<std::string>>;
  if (!so_far.python.present())
    return Answer::failed(message("no Python to look at: {}", so_far.python.note));
  const auto program = elf::open_library(host, so_far.python.value.executable);
  if (!program) return Answer::failed(program.error().message);
  const elf::SearchContext context =
      elf::make_search_context(host, **program, so_far.python.value.executable);
  std::set<std::string> found;
  // The program's DT_RPATH, unlike its RUNPATH, serves every library that is loaded into it: conda's Python.
  // RPATH counts only without RUNPATH (ld.so(8)).
  std::vector<std::string> own;
  const elf::Dynamic& dynamic = (*program)->dynamic;
  for (std::size_t at = 0; !dynamic.has_runpath && at < dynamic.rpath.size();) {
    const auto end = std::min(dynamic.rpath.find(':', at), dynamic.rpath.size());
    own.push_back(elf::expand_tokens(dynamic.rpath.substr(at, end - at), context.main_origin, context));
    at = end + 1;
  }
  for (const elf::LdCache::Entry& entry : context.cache.entries()) found.insert(entry.soname);
  for (const std::vector<std::string>* folders :
       {static_cast<const std::vector<std::string>*>(&own), &context.library_path, &context.default_folders})
    for (const std::string& folder : *folders) {
      const auto entries = host.list(folder);
      if (!entries) continue;
      for (const DirEntry& entry : *entries)
        if (is_soname(entry.name)) found.insert(entry.name);
    }
  return Answer::of({found.begin(), found.end()});
}

}  // namespace scankit::probes
