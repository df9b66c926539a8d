// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "doctor/base/message.h"
#include "doctor/elf/image.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/torch_abi/infer_release.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit {
namespace {

// Reading one takes a millisecond or so; a dozen narrow as well as a hundred.
constexpr std::size_t kLibrariesRead = 24;

// The text of .comment, in which each compiler leaves its name; "" where it was stripped.
std::string compilers_of(const Image& image) {
  constexpr std::uint64_t kLimit = 1u << 16;  // a line for each compiler
  for (const Section& section : image.sections()) {
    if (section.name != ".comment") continue;
    const auto text = image.file().slice(section.offset, std::min(section.size, kLimit));
    if (!text) return "";
    std::string lines(text->text());
    std::ranges::replace(lines, '\0', '\n');
    return lines;
  }
  return "";
}

// The places in headers that its assertions name.
std::vector<std::string> header_lines_of(const Image& image) {
  constexpr std::size_t kMost = 4096;
  std::set<std::string> lines;
  for (const std::string& text : find_texts(image, kAssertionMark, kMost))
    if (std::string line = header_line(text); !line.empty()) lines.insert(std::move(line));
  return {lines.begin(), lines.end()};
}

}  // namespace

BuiltFor date_extension(const Extension& copy, const std::vector<UndefinedSymbol>& undefined,
                        const Image& image) {
  if (copy.uses_torch)
    return date_file(SymbolIndex::built_in(),
                     {copy.path, undefined, copy.string_abi, copy.pybind_internals, copy.tag, copy.cuda_major,
                      copy.glibc_min, compilers_of(image), header_lines_of(image)});
  // Not worth the inflating of the symbol index.
  BuiltFor built_for;
  built_for.file = copy.path;
  built_for.string_abi = copy.string_abi;
  built_for.glibc_min = copy.glibc_min;
  built_for.cuda_major = copy.cuda_major;
  built_for.python_tag = copy.tag;
  built_for.why_not_narrower = message("the file uses no torch symbol");
  return built_for;
}

BuiltFor date_files_together(const std::string& name, const std::vector<BuiltFor>& files) {
  const bool any = std::ranges::any_of(files, [](const BuiltFor& file) { return file.torch_names > 0; });
  return date_together(any ? SymbolIndex::built_in() : SymbolIndex(), name, files);
}

std::vector<BuiltFor> date_distributions(const Host& host, const std::vector<Distribution>& installed,
                                         const std::vector<Extension>& copies) {
  std::map<std::string, std::vector<BuiltFor>> groups;
  // A copy that import passes over is a leftover of another build.
  for (const Extension& copy : copies)
    if (copy.selected && !copy.distribution.empty() && copy.built_for.torch_names > 0)
      groups[copy.distribution].push_back(copy.built_for);
  std::vector<BuiltFor> answers;
  for (auto& [name, files] : groups) {
    const Distribution* distribution = find_distribution(installed, name);
    // An editable install has no RECORD that lists what it built.
    if (distribution == nullptr || distribution->editable) continue;
    for (const std::string& path : shared_libraries_of(host, *distribution)) {
      if (files.size() >= kLibrariesRead) break;
      if (std::ranges::find(files, path, &BuiltFor::file) != files.end()) continue;
      const Extension other = inspect_extension(host, path);
      if (other.built_for.torch_names > 0) files.push_back(other.built_for);
    }
    answers.push_back(date_files_together(name, files));
  }
  return answers;
}

}  // namespace scankit
