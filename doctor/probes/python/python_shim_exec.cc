// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python_shim.h"
#include "doctor/probes/python/python_text.h"

namespace scankit {
namespace {

// The words of a simple command, quotes removed; expansions stay as they are written.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      inside = true;
    } else if (quote != '\'' && c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      inside = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (inside) words.push_back(std::exchange(word, {}));
      inside = false;
    } else if (quote == 0 && c == '#' && !inside) {
      break;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

// The three ways in which scripts name their own folder.
std::string with_own_folder(std::string word, const std::string& script) {
  for (const std::string_view own :
       {"$(dirname \"$0\")", "$(dirname $0)", "$(dirname -- \"$0\")", "${0%/*}"}) {
    const auto at = word.find(own);
    if (at != std::string::npos) word.replace(at, own.size(), path_dirname(script));
  }
  return word;
}

std::optional<std::string> program_of(const std::vector<std::string>& words, const std::string& script) {
  std::size_t at = 0;
  const auto assignment = [&](const std::string& word) {
    return word.find('=') != std::string::npos && word.find('/') > word.find('=');
  };
  while (at < words.size() && assignment(words[at])) ++at;
  if (at >= words.size() || words[at] != "exec") return std::nullopt;
  ++at;
  if (at + 1 < words.size() && words[at] == "-a") at += 2;  // Nix: exec -a "$0" PROGRAM
  if (at < words.size() && path_basename(words[at]) == "env") ++at;
  while (at < words.size() && assignment(words[at])) ++at;
  if (at >= words.size()) return std::nullopt;
  std::string program = with_own_folder(words[at], script);
  const bool hands_arguments_on = std::ranges::find(words, "$@") != words.end();
  if (!hands_arguments_on || program.find_first_of("$`*?") != std::string::npos) return std::nullopt;
  if (path_basename(program).find("python") == std::string::npos) return std::nullopt;
  return program;
}

std::vector<std::string> versions_in(std::string_view text, char separator) {
  std::vector<std::string> versions;
  std::string word;
  const auto finish = [&] {
    if (word.starts_with("python-")) word.erase(0, 7);
    if (!word.empty()) versions.push_back(word);
    word.clear();
  };
  for (const std::string_view line : lines_of(text)) {
    for (const char c : line.substr(0, line.find('#')))
      if (c == separator || c == ' ' || c == '\t')
        finish();
      else
        word += c;
    finish();
  }
  return versions;
}

// pyenv-version-name: $PYENV_VERSION, the nearest .python-version, the global file, "system".
std::vector<std::string> chosen_versions(const Host& host, const std::string& root) {
  if (const auto forced = host.env("PYENV_VERSION"); forced && !forced->empty())
    return versions_in(*forced, ':');
  std::string folder = host.env("PYENV_DIR").value_or(working_directory(host));
  for (int depth = 0; !folder.empty() && depth < 256; ++depth) {
    if (const auto text = host.read_file(path_join(folder, ".python-version"), 1u << 16))
      return versions_in(*text, ' ');
    if (folder == "/") break;
    folder = path_dirname(folder);
  }
  if (const auto text = host.read_file(path_join(root, "version"), 1u << 16)) return versions_in(*text, ' ');
  return {"system"};
}

// The folder of a version: of that name, or the newest patch release of a prefix ("3.11").
std::string version_folder(const Host& host, const std::string& root, const std::string& version) {
  const std::string versions = path_join(root, "versions");
  if (version.find('/') != std::string::npos) return {};
  if (host.is_directory(path_join(versions, version))) return path_join(versions, version);
  std::string best;
  const auto entries = host.list(versions);
  if (!entries) return {};
  for (const DirEntry& entry : *entries) {
    if (!entry.name.starts_with(version + ".")) continue;
    const bool newer =
        best.size() < entry.name.size() || (best.size() == entry.name.size() && best < entry.name);
    if (newer) best = entry.name;
  }
  return best.empty() ? "" : path_join(versions, best);
}

}  // namespace

std::optional<std::string> exec_target(std::string_view text, const std::string& script) {
  std::optional<std::string> target;
  for (const std::string_view line : lines_of(text))
    if (auto program = program_of(words_of(trimmed(line)), script)) target = std::move(program);
  return target;
}

Result<std::string> pyenv_target(const Host& host, std::string_view shim_text, const std::string& program) {
  std::string root;
  constexpr std::string_view kRoot = "export PYENV_ROOT=";
  if (auto at = shim_text.find(kRoot); at != std::string_view::npos) {
    at += kRoot.size();
    if (auto literal = python_string_literal(shim_text, at)) root = *literal;
  }
  if (root.empty()) root = host.env("PYENV_ROOT").value_or("");
  const std::vector<std::string> versions = chosen_versions(host, root);
  for (const std::string& version : versions) {
    if (version == "system") return std::string();
    const std::string folder = version_folder(host, root, version);
    const std::string file = path_join(path_join(folder, "bin"), program);
    if (!folder.empty() && is_regular_file(host, file)) return file;
  }
  std::string names;
  for (const std::string& version : versions) names += (names.empty() ? "" : ", ") + printable(version);
  return Error{Errc::InvalidArgument,
               say("pyenv is set to version {}, which has no {} below {}/versions",
                   names.empty() ? "(none)" : names, printable(program), printable(root)),
               say("set another one (pyenv versions lists them), or give --python an interpreter")};
}

}  // namespace scankit
