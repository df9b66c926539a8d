// SPDX-License-Identifier: Apache-2.0
// DIR/.scankit/record.json: what was made, for whoever asks later whether it is still that. The hashes are of
// what wheels contain; what every installer and every machine writes differently is left out (README.md).
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/model/json.h"
#include "doctor/report/progress.h"
#include "envspec/create/create.h"
#include "envspec/lock/install_metadata.h"

namespace scankit::envspec {
namespace {

using RecordJson = nlohmann::ordered_json;

constexpr int kRecordSchema = 1;
constexpr std::size_t kMostRecordBytes = 64u << 20;

// Of a file in the environment that was just made; the time survives the move.
std::int64_t mtime_of(const std::string& path) {
  struct stat info {};
  constexpr std::int64_t kNano = 1'000'000'000;
  return ::stat(path.c_str(), &info) == 0 ? std::int64_t{info.st_mtim.tv_sec} * kNano + info.st_mtim.tv_nsec
                                          : 0;
}

RecordedPackage recorded_package(const Distribution& distribution) {
  RecordedPackage package{.name = normalized_name(distribution.name),
                          .version = distribution.version,
                          .metadata = path_basename(distribution.path)};
  struct stat info {};
  const std::string file = path_join(distribution.path, "RECORD");
  if (::stat(file.c_str(), &info) != 0) return package;
  package.size = static_cast<std::uint64_t>(info.st_size);
  package.mtime_ns = mtime_of(file);
  return package;
}

// A number that a stranger's file may have got wrong.
template <typename Number>
Number number_in(const RecordJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<Number>() : Number{};
}

Error malformed(const std::string& path) {
  return {Errc::Malformed, message("{} is not a record written by this scankit", path),
          message("make it again: scankit env sync")};
}

}  // namespace

Result<std::string> content_hash(const Host& host, const Distribution& distribution, HashCache& cache) {
  SCANKIT_TRY(const std::vector<std::string> paths, content_paths(host, distribution));
  const std::string site = path_dirname(distribution.path);
  std::vector<std::string> files;
  for (const std::string& path : paths) files.push_back(path_join(site, path));
  const auto hashed = hash_files(host, files, cache);
  std::string lines;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!hashed[i].sha256) return hashed[i].sha256.error();
    lines += paths[i] + " " + *hashed[i].sha256 + "\n";
  }
  return sha256_hex(lines);
}

std::string EnvironmentRecord::signature() const {
  std::string lines;
  for (const auto& [name, hash] : content) lines += name + " " + hash + "\n";
  for (const RecordedFile& one : libraries) lines += one.path + " " + one.sha256 + "\n";
  return sha256_hex(lines);
}

std::string hash_of(const EnvironmentLock& lock) { return sha256_hex(lock_to_json(lock)); }

Result<EnvironmentRecord> make_record(const Host& host, const Snapshot& snapshot,
                                      const EnvironmentLock& lock) {
  EnvironmentRecord record;
  const Python& python = snapshot.python.value;
  record.python = python.version;
  record.torch = snapshot.torch.value.version;
  report::Progress progress(say("hashing the files of the packages"));
  HashCache nothing_kept("");  // the paths are those where it is made
  std::size_t done = 0;
  for (const Distribution& one : snapshot.distributions.value) {
    if (!one.path.starts_with(python.prefix + "/")) continue;  // of the system's site-packages
    progress.count(done++, snapshot.distributions.value.size());
    SCANKIT_TRY(std::string hash, content_hash(host, one, nothing_kept));
    record.content[normalized_name(one.name)] = std::move(hash);
    record.packages.push_back(recorded_package(one));
    if (record.site.empty()) record.site = path_dirname(one.path).substr(python.prefix.size() + 1);
  }
  for (const LockedLibrary& one : lock.libraries)
    record.libraries.push_back({one.path, one.sha256, one.size,
                                mtime_of(path_join(path_join(python.prefix, record.site), one.path))});
  return record;
}

std::string record_to_json(const EnvironmentRecord& record) {
  RecordJson json{{"schema", kRecordSchema},
                  {"tool", kToolVersion},
                  {"lock_sha256", record.lock_sha256},
                  {"python", record.python},
                  {"torch", record.torch},
                  {"installer", record.installer},
                  {"site", record.site},
                  {"signature", record.signature()},
                  {"content", record.content}};
  json["packages"] = RecordJson::array();
  for (const RecordedPackage& one : record.packages)
    json["packages"].push_back({{"name", one.name},
                                {"version", one.version},
                                {"metadata", one.metadata},
                                {"size", one.size},
                                {"mtime_ns", one.mtime_ns}});
  json["proof"] = RecordJson::array();
  for (const ProofStep& step : record.proof)
    json["proof"].push_back({{"what", step.what}, {"state", step.state}, {"detail", english(step.detail)}});
  json["libraries"] = RecordJson::array();
  for (const RecordedFile& one : record.libraries)
    json["libraries"].push_back(
        {{"path", one.path}, {"sha256", one.sha256}, {"size", one.size}, {"mtime_ns", one.mtime_ns}});
  return json_document(json);
}

Result<EnvironmentRecord> read_record(const std::string& environment) {
  const std::string path = path_join(environment, kRecordFile);
  auto text = read_whole_file(path, kMostRecordBytes);
  if (!text && text.error().code == Errc::NotFound)
    return Error{Errc::NotFound, message("{} has no record: {} does not exist", environment, path),
                 message("scankit env create and scankit env sync write it")};
  if (!text) return text.error();
  return record_from_json(*text, path);
}

Result<EnvironmentRecord> record_from_json(const std::string& text, const std::string& path) {
  const auto parsed = parse_bounded_json(text);
  if (!parsed || !parsed->is_object()) return malformed(path);
  const RecordJson json = *parsed;
  SCANKIT_CHECK(readable_schema(path, schema_number(json), kRecordSchema));
  if (schema_number(json) != kRecordSchema) return malformed(path);
  EnvironmentRecord record;
  record.lock_sha256 = json_text(json, "lock_sha256");
  record.python = json_text(json, "python");
  record.torch = json_text(json, "torch");
  record.installer = json_text(json, "installer");
  record.site = json_text(json, "site");
  const RecordJson content = json.value("content", RecordJson::object());  // items() keeps only a reference
  for (const auto& [name, hash] : content.items())
    if (hash.is_string()) record.content[name] = hash.get<std::string>();
  for (const RecordJson& step : json.value("proof", RecordJson::array()))
    record.proof.push_back(
        {json_text(step, "what"), json_text(step, "state"), Message(json_text(step, "detail")), 0});
  for (const RecordJson& one : json.value("libraries", RecordJson::array()))
    record.libraries.push_back({json_text(one, "path"), json_text(one, "sha256"),
                                number_in<std::uint64_t>(one, "size"),
                                number_in<std::int64_t>(one, "mtime_ns")});
  for (const RecordJson& one : json.value("packages", RecordJson::array()))
    record.packages.push_back({json_text(one, "name"), json_text(one, "version"), json_text(one, "metadata"),
                               number_in<std::uint64_t>(one, "size"),
                               number_in<std::int64_t>(one, "mtime_ns")});
  for (const RecordedPackage& one : record.packages)
    if (!is_inner_path(one.metadata) || one.metadata.find('/') != std::string::npos) return malformed(path);
  for (const RecordedFile& one : record.libraries)
    if (!is_inner_path(one.path)) return malformed(path);
  // Only the record of an environment without packages and libraries names no site-packages.
  const bool no_site = record.site.empty() && record.packages.empty() && record.libraries.empty();
  if (!no_site && !is_inner_path(record.site)) return malformed(path);
  if (record.signature() != json_text(json, "signature")) return malformed(path);
  return record;
}

}  // namespace scankit::envspec
