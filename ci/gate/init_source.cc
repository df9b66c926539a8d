// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/init_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "ci/gate/init.h"
#include "ci/gate/plan.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/host/host.h"

namespace scankit {
namespace {

bool is_url(const std::string& where) { return where.find("://") != std::string::npos; }

Error wrong(std::string message, std::string hint) {
  return {Errc::InvalidArgument, std::move(message), std::move(hint)};
}

Result<std::string> hash_option(std::string hash) {
  std::ranges::transform(hash, hash.begin(),
                         [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (hash.empty() || (hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos))
    return hash;
  return wrong(say("--sha256 takes 64 hexadecimal digits"), say("sha256sum FILE prints them"));
}

// What can be written into a file of YAML, and fetched by a shell that gets it as a variable.
Result<void> check_form(const std::string& where) {
  const bool one_line =
      std::ranges::all_of(where, [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
  if (where.empty() || !one_line) return wrong(say("--scankit takes a path or a URL on one line"), "");
  if (is_url(where) && !where.starts_with("https://") && !where.starts_with("http://"))
    return wrong(say("--scankit cannot fetch {}", where), say("give an https:// URL, or a path"));
  return {};
}

// A file that is there answers for itself, so that a wrong --sha256 is told here and not by the pipeline.
Result<ScankitSource> from_file(ScankitSource source, const CiInitOptions& options) {
  const std::string path =
      source.where.starts_with('/') ? source.where : path_join(options.out, source.where);
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (source.sha256.empty())
      return wrong(say("--scankit: {} not found", path),
                   say("put the program or its wheel there, or give its hash with --sha256"));
    return source;
  }
  if (!S_ISREG(status.st_mode)) return wrong(say("--scankit: {} is not a file", path), "");
  SCANKIT_TRY(const std::string hash, sha256_file(path));
  if (!source.sha256.empty() && source.sha256 != hash)
    return wrong(say("{} has the SHA-256 {}, not {}", path, hash, source.sha256),
                 say("give the file or the hash that you mean"));
  source.sha256 = hash;
  return source;
}

}  // namespace

Result<ScankitSource> scankit_source(const CiInitOptions& options) {
  ScankitSource source{.where = options.scankit.value_or(kCommittedScankit)};
  SCANKIT_CHECK(check_form(source.where));
  SCANKIT_TRY(source.sha256, hash_option(options.sha256));
  if (is_url(source.where)) {
    if (!source.sha256.empty()) return source;
    return wrong(say("--scankit with a URL needs --sha256"), say("sha256sum FILE prints it"));
  }
  const bool default_place =
      !options.scankit && ::access(path_join(options.out, source.where).c_str(), F_OK) != 0;
  if (!default_place) return from_file(std::move(source), options);
  SCANKIT_TRY(const std::string program, own_program());
  SCANKIT_TRY(source.sha256, sha256_file(program));
  source.absent = true;
  return source;
}

std::string yaml_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

std::string with_script(std::string text, const std::string& name, std::string_view script) {
  const std::string place = "@" + name + "@\n";
  const std::size_t at = text.find(place);
  if (at == std::string::npos) return text;
  const std::size_t line = text.rfind('\n', at) + 1;
  const std::string indent = text.substr(line, at - line);
  while (script.starts_with('#')) script.remove_prefix(script.find('\n') + 1);
  std::string lines;
  for (std::size_t begin = 0; begin < script.size();) {
    const std::size_t end = std::min(script.find('\n', begin), script.size());
    lines += indent + std::string(script.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return text.replace(line, indent.size() + place.size(), lines);
}

std::string environment_file(const std::string& folder) {
  const auto entries = make_real_host()->list(folder);
  if (!entries) return "";
  const auto first = [&](const auto& matches) {
    std::string found;
    for (const DirEntry& entry : *entries)
      if (matches(entry.name) && (found.empty() || entry.name < found)) found = entry.name;
    return found;
  };
  for (const std::string wanted : {"uv.lock", "environment.yml", "environment.yaml", "requirements.txt",
                                   "requirements*.txt", "pyproject.toml", "setup.py"}) {
    const std::string found = first([&](const std::string& name) {
      if (wanted == "requirements*.txt") return name.starts_with("requirements") && name.ends_with(".txt");
      return name == wanted;
    });
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace scankit
