// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/probes/python/python_text.h"
#include "envspec/index/index_query.h"
#include "envspec/lock/lock_values.h"
#include "envspec/lock/records.h"

namespace scankit {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kPlace = " from ";  // pip's word between a requirement and its URL

// The first word behind `label` that is a hash.
std::string hash_behind(const std::string& said, std::string_view label) {
  const auto at = said.find(label);
  if (at == std::string::npos) return "";
  std::string_view rest = trimmed(std::string_view(said).substr(at + label.size()));
  constexpr std::string_view kKind = "sha256:", kPipsKind = "sha256 ";
  for (const std::string_view kind : {kKind, kPipsKind})
    if (rest.starts_with(kind)) rest.remove_prefix(kind.size());
  std::string hash(rest.substr(0, 64));
  return is_sha256(hash) ? hash : "";
}

// "    NAME==VERSION from URL (from -r FILE (line 1)):"; uv names no URL.
std::string url_of(const std::string& said, const IndexQuestion& question) {
  std::string label = question.name + "==" + question.version;
  label += kPlace;
  const auto at = said.find(label);
  if (at == std::string::npos) return "";
  const auto begin = at + label.size();
  return said.substr(begin, said.find_first_of(" \n", begin) - begin);
}

// PEP 625.
std::string usual_file_name(const IndexQuestion& question) {
  std::string name = normalized_name(question.name);
  std::ranges::replace(name, '-', '_');
  return name + "-" + question.version + ".tar.gz";
}

Words command_of(const Installer& installer, const std::string& questions, const std::string& folder) {
  Words argv = installer.program;
  Words more;
  if (installer.kind == Installer::Kind::Uv) {
    more = {"pip", "install", "--no-progress", "--target", folder + "/target"};
    if (!installer.environment.empty()) more.insert(more.end(), {"--python", installer.environment});
  } else {
    more = {"--disable-pip-version-check",
            "--no-input",
            "download",
            "--quiet",
            "--retries",
            "1",
            "--no-cache-dir",
            "--dest",
            folder};
  }
  argv.insert(argv.end(), more.begin(), more.end());
  for (const char* word : {"--no-deps", "--no-binary", ":all:", "--require-hashes", "-r"})
    argv.emplace_back(word);
  argv.push_back(questions);
  return argv;
}

}  // namespace

std::optional<LockedArtifact> read_source_hash(const std::string& said, const IndexQuestion& question) {
  std::string hash = hash_behind(said, "Computed:");
  if (hash.empty()) hash = hash_behind(said, " Got ");
  if (hash.empty()) return std::nullopt;
  const std::string url = url_of(said, question);
  const std::string file = url.empty() ? usual_file_name(question) : file_name_of(url);
  if (!is_file_name(file) || file.ends_with(".whl")) return std::nullopt;
  return LockedArtifact{file, hash, 0, plain_url(url)};
}

std::optional<LockedArtifact> ask_source(const Installer& installer, const IndexQuestion& question,
                                         std::chrono::milliseconds patience) {
  const auto folder = TemporaryDirectory::create("scankit-index");
  if (!folder) return std::nullopt;
  const std::string file = folder->path() + "/questions.txt";
  const std::string line =
      question.name + "==" + question.version + " --hash=sha256:" + std::string(64, '0') + "\n";
  if (!write_file_atomically(file, line)) return std::nullopt;
  const IndexRun run =
      run_installer(command_of(installer, file, folder->path()), installer.project, patience);
  return run.ok ? std::nullopt : read_source_hash(run.said, question);
}

}  // namespace scankit
