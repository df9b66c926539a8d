// SPDX-License-Identifier: Apache-2.0
// The files of a conda environment that contain its path. conda-meta lists them, text and binary: conda puts
// the prefix in place of a longer text as it installs them, with zeros after it in a binary file. mamba 2 and
// micromamba do the same and record neither the longer text nor the mode, only the hashes before and after.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/base/sha256.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/model/json.h"
#include "envspec/create/conda.h"

namespace scankit::envspec {
namespace {

using OrderedRecord = nlohmann::ordered_json;  // conda's own order is kept

constexpr std::size_t kMostRecord = 64u << 20;  // of a package with some 100 000 files

// conda-meta/NAME-VERSION-BUILD.json, by path.
std::map<std::string, OrderedRecord> records_of(const std::string& environment) {
  std::map<std::string, OrderedRecord> records;
  const std::string folder = path_join(environment, "conda-meta");
  const auto host = make_real_host();
  const auto entries = host->list(folder);
  for (const DirEntry& entry : entries ? *entries : std::vector<DirEntry>()) {
    if (!entry.name.ends_with(".json")) continue;
    const std::string path = path_join(folder, entry.name);
    const auto text = host->read_file(path, kMostRecord);
    auto record = parse_json_or_discard<OrderedRecord>(text ? *text : "");
    if (record.is_object()) records[path] = std::move(record);
  }
  return records;
}

// The entries of paths_data of one record, nullptr where it has none.
OrderedRecord* paths_of(OrderedRecord& record) {
  const auto data = record.find("paths_data");
  if (data == record.end() || !data->is_object()) return nullptr;
  const auto paths = data->find("paths");
  return paths == data->end() || !paths->is_array() ? nullptr : &*paths;
}

// "lib/python3.11/" of the record of Python.
std::string library_of_python(const std::map<std::string, OrderedRecord>& records) {
  for (const auto& [path, record] : records)
    if (json_text(record, "name") == "python")
      if (const auto version = Version::parse(json_text(record, "version")))
        return "lib/python" + version->major_minor() + "/";
  return "";
}

// Where conda has put a file: those of a package for every Python are listed as site-packages/FILE.
std::string placed(const std::string& library, const OrderedRecord& one) {
  const std::string path = json_text(one, "_path");
  return (path.starts_with("site-packages/") ? library : "") + path;
}

bool has_other_bytes_than_its_package(const OrderedRecord& one) {
  const std::string before = json_text(one, "sha256"), after = json_text(one, "sha256_in_prefix");
  return json_text(one, "path_type") == "hardlink" && !before.empty() && !after.empty() && before != after;
}

// As conda-build decides which mode a file gets.
bool is_binary(const std::string& file) {
  constexpr std::size_t kMost = 64u << 20;  // what is longer is not searched for the path either
  const auto bytes = make_real_host()->read_file(file, kMost);
  return bytes && bytes->find('\0') != std::string::npos;
}

}  // namespace

CondaPrefixFiles prefix_files(const std::string& environment) {
  CondaPrefixFiles files;
  auto records = records_of(environment);
  files.conda = !records.empty();
  const std::string library = library_of_python(records);
  for (auto& [path, record] : records) {
    const OrderedRecord* paths = paths_of(record);
    for (const OrderedRecord& one : paths == nullptr ? OrderedRecord::array() : *paths) {
      const std::string inner = placed(library, one);
      bool binary = false;
      if (!json_text(one, "prefix_placeholder").empty())
        binary = json_text(one, "file_mode") == "binary";
      else if (has_other_bytes_than_its_package(one))
        binary = is_binary(path_join(environment, inner));
      else
        continue;
      (binary ? files.binary : files.text).insert(inner);
    }
  }
  return files;
}

std::string without_part_in_strings(std::string bytes, const std::string& part) {
  for (auto at = bytes.find(part); at != std::string::npos; at = bytes.find(part, at)) {
    const auto end = std::min(bytes.find('\0', at), bytes.size());
    bytes.erase(at, part.size());
    bytes.insert(end - part.size(), part.size(), '\0');
  }
  return bytes;
}

Result<void> correct_conda_records(const std::string& environment,
                                   const std::vector<std::string>& rewritten) {
  const std::set<std::string> changed(rewritten.begin(), rewritten.end());
  auto records = records_of(environment);
  const std::string library = library_of_python(records);
  for (auto& [path, record] : records) {
    bool corrected = false;
    OrderedRecord* paths = paths_of(record);
    if (paths == nullptr) continue;
    for (OrderedRecord& one : *paths) {
      const std::string inner = placed(library, one);
      if (json_text(one, "sha256_in_prefix").empty() || !changed.contains(inner)) continue;
      SCANKIT_TRY(one["sha256_in_prefix"], sha256_file(path_join(environment, inner)));
      corrected = true;
    }
    if (corrected) SCANKIT_CHECK(write_file_atomically(path, dump_json(record, 2)));
  }
  return {};
}

}  // namespace scankit::envspec
