// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/sys_path_pth.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/sources/source_text.h"

namespace scankit {
namespace {

// An easy-install.pth of years has a hundred lines. What is longer than this is somebody's accident, and
// reading it would cost the diagnosis its time.
constexpr std::size_t kLongestPth = 1u << 20;
constexpr std::size_t kMostLines = 20000, kMostCodeLines = 200, kLongestCodeLine = 400;

void skip_blanks(std::string_view text, std::size_t& at) {
  at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

// 'key': 'value' pairs from the opening brace at text[at] to its end.
void read_dict(std::string_view text, std::size_t at, const std::string& file,
               std::vector<EditableMapping>& into) {
  ++at;
  while (into.size() < 1000) {
    skip_blanks(text, at);
    const auto key = python_string_literal(text, at);
    if (!key) return;
    skip_blanks(text, at);
    if (at >= text.size() || text[at] != ':') return;
    skip_blanks(text, ++at);
    const auto value = python_string_literal(text, at);
    if (!value) return;
    into.push_back({file, *key, *value});
    skip_blanks(text, at);
    if (at >= text.size() || text[at] != ',') return;
    ++at;
  }
}

}  // namespace

std::vector<EditableMapping> mappings_of_finder(std::string_view source, const std::string& file) {
  std::vector<EditableMapping> mappings;
  for (auto at = source.find("MAPPING"); at != std::string_view::npos; at = source.find("MAPPING", at + 1)) {
    const bool starts_line = at == 0 || source[at - 1] == '\n';
    const auto equals = source.find('=', at);
    const auto end = source.find('\n', at);
    if (!starts_line || equals == std::string_view::npos || equals > end) continue;
    std::size_t value = equals + 1;
    skip_blanks(source, value);
    if (value < source.size() && source[value] == '{') read_dict(source, value, file, mappings);
  }
  constexpr std::string_view kMap = ".map_module(";
  for (auto at = source.find(kMap); at != std::string_view::npos; at = source.find(kMap, at + 1)) {
    std::size_t value = at + kMap.size();
    const auto package = python_string_literal(source, value);
    if (!package || value >= source.size() || source[value] != ',') continue;
    skip_blanks(source, ++value);
    if (auto folder = python_string_literal(source, value)) {
      if (folder->ends_with("/__init__.py")) folder->erase(folder->size() - 12);
      mappings.push_back({file, *package, *folder});
    }
  }
  return mappings;
}

std::vector<PthLine> PthReader::read_folder(const std::string& folder) {
  std::vector<PthLine> lines;
  const auto entries = host_.list(folder);
  if (!entries) return lines;
  for (const DirEntry& entry : *entries) {
    if (!entry.name.ends_with(".pth") || (rules_.skips_hidden && entry.name.starts_with('.'))) continue;
    read_file(folder, entry.name, lines);
  }
  return lines;
}

void PthReader::read_file(const std::string& folder, const std::string& name, std::vector<PthLine>& lines) {
  const std::string file = path_join(folder, name);
  const auto text = host_.read_file(file, kLongestPth);
  if (!text) {
    if (text.error().code == Errc::Unsupported)
      code_lines_.push_back(say("{}: not read: {}", file, text.error().message));
    return;  // site.py goes on without it, too
  }
  std::string_view rest = *text;
  if (rules_.drops_mark && rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  for (std::string_view line : lines_of(rest)) {
    if (line.starts_with('#') || trimmed(line).empty()) continue;
    if (line.starts_with("import ") || line.starts_with("import\t")) {
      note_code(folder, file, line);
      continue;
    }
    // os.stat of a name with a NUL raises, and addpackage leaves the rest of the file unread.
    if (line.find('\0') != std::string_view::npos || lines.size() >= kMostLines) return;
    while (!line.empty() && trimmed(line.substr(line.size() - 1)).empty()) line.remove_suffix(1);
    const std::string path = line.starts_with('/') ? std::string(line) : path_join(folder, line);
    lines.push_back({file, path_normalize(path)});
  }
}

void PthReader::note_code(const std::string& folder, const std::string& file, std::string_view line) {
  if (code_lines_.size() < kMostCodeLines)
    code_lines_.push_back(file + ": " + printable(line.substr(0, kLongestCodeLine)));
  std::string_view module = trimmed(line.substr(6));
  const auto end = std::ranges::find_if_not(module, is_identifier_char);
  module = module.substr(0, static_cast<std::size_t>(end - module.begin()));
  const bool finder = module.starts_with("__editable__") || module.starts_with("_editable_impl_") ||
                      module.starts_with("__editables_");
  if (!finder) return;
  const std::string source_file = path_join(folder, std::string(module) + ".py");
  const auto source = host_.read_file(source_file, kLongestPth);
  if (!source) return;
  for (const EditableMapping& mapping : mappings_of_finder(*source, source_file)) {
    std::string text = to_text(mapping);
    if (std::ranges::find(finders_, text) == finders_.end()) finders_.push_back(std::move(text));
  }
}

}  // namespace scankit
