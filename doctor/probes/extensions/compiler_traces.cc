// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "doctor/base/text.h"
#include "doctor/elf/fatbin.h"
#include "doctor/elf/image.h"
#include "doctor/probes/extensions/extensions.h"

// By which compilers a file was made, as they say in the file itself. Both traces can be stripped, and neither
// says on which machine or from which sources.
namespace scankit::probes {

std::string comment_section(const elf::Image& image) {
  constexpr std::uint64_t kLimit = 1u << 16;  // a line for each compiler
  for (const elf::Section& section : image.sections()) {
    if (section.name != ".comment") continue;
    const auto text = image.file().slice(section.offset, std::min(section.size, kLimit));
    if (!text) return "";
    std::string lines(text->text());
    std::ranges::replace(lines, '\0', '\n');
    return lines;
  }
  return "";
}

CompilerTraces compiler_traces(const Host& host, const std::string& path) {
  CompilerTraces traces;
  const auto library = elf::open_library(host, path);
  if (!library) return traces;
  const elf::Image& image = (*library)->image;
  std::set<std::string> compilers, toolkits, nvccs;
  const std::string comment = comment_section(image);  // the lines are views of it
  for (const std::string_view line : lines_of(comment)) {
    const std::string_view name = trimmed(line);
    if (!name.empty() && !name.starts_with("Linker:")) compilers.insert(printable(name));
  }
  // One compiler wrote all images for one GPU: unpacking the first tells for all.
  std::set<unsigned> seen;
  const auto entries = elf::find_device_images(image);
  for (const elf::FatbinEntry& entry : entries ? *entries : std::vector<elf::FatbinEntry>())
    if (entry.kind == "cubin" && seen.insert(entry.sm).second) {
      elf::CubinCompiler by = elf::cubin_compiler(image.file(), entry);
      if (!by.toolkit.empty()) toolkits.insert(std::move(by.toolkit));
      if (!by.version.empty()) nvccs.insert(std::move(by.version));
    }
  traces.compilers.assign(compilers.begin(), compilers.end());
  traces.toolkits.assign(toolkits.begin(), toolkits.end());
  traces.nvccs.assign(nvccs.begin(), nvccs.end());
  return traces;
}

}  // namespace scankit::probes
