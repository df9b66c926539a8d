// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "envspec/lock/lock.h"

// scankit.lock as JSON, in both directions. The JSON library writes the fields by name in sorted order;
// a field that is missing in a file keeps its default, so that an older minor schema can be read.
#define SCANKIT_FIELDS NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT

namespace scankit::envspec {

using Json = nlohmann::json;

SCANKIT_FIELDS(LockedArtifact, file, sha256, size, url)
SCANKIT_FIELDS(CondaPackage, name, version, build, channel, subdir, url, sha256, md5)
SCANKIT_FIELDS(LockedLibrary, path, distribution, sha256, size, state, machine, soname, build_id, needed,
               glibc_min, glibcxx_min, cuda_major, string_abi, pybind_internals, code)
SCANKIT_FIELDS(LockedPython, version, implementation, soabi, free_threaded)
SCANKIT_FIELDS(LockedTorch, version, cuda, hip, git, string_abi, cxx_standard, debug)
SCANKIT_FIELDS(LockedMachine, architecture, libc, libc_version, driver, driver_cuda, libcuda, why_no_driver,
               gpus, why_no_gpus, compilers)

SCANKIT_FIELDS(LockedToolchain, generator, compilers, cuda, nvcc, code, torch, why_no_compilers, why_no_cuda,
               why_no_torch)

SCANKIT_FIELDS(RecordedBuild, torch, installer, switches)

template <typename Part>
static Json or_null(const std::optional<Part>& part) {
  return part ? Json(*part) : Json(nullptr);
}
template <typename Part>
static void take_unless_null(const Json& json, const char* key, std::optional<Part>& part) {
  if (const auto at = json.find(key); at != json.end() && !at->is_null()) part = at->get<Part>();
}

// Added in schema 1.1.
static void to_json(Json& json, const LockedBuild& one) {
  Json toolchain = one.toolchain;
  if (one.toolchain.nvcc.empty()) toolchain.erase("nvcc");  // locks of older scankits keep their hash
  json = Json{{"sdist", or_null(one.sdist)},       {"sdist_from", one.sdist_from},
              {"why_no_sdist", one.why_no_sdist},  {"wheel", or_null(one.wheel)},
              {"why_no_wheel", one.why_no_wheel},  {"toolchain", std::move(toolchain)},
              {"recorded", or_null(one.recorded)}, {"files", one.files}};
}
static void from_json(const Json& json, LockedBuild& one) {
  take_unless_null(json, "sdist", one.sdist);
  one.sdist_from = json.value("sdist_from", "");
  one.why_no_sdist = json.value("why_no_sdist", "");
  take_unless_null(json, "wheel", one.wheel);
  one.why_no_wheel = json.value("why_no_wheel", "");
  one.toolchain = json.value("toolchain", LockedToolchain());
  take_unless_null(json, "recorded", one.recorded);
  one.files = json.value("files", one.files);
}

// "artifact" is null where no file is known, and "why_no_artifact" then has the reason.
static void to_json(Json& json, const LockedDistribution& one) {
  json = Json{
      {"name", one.name}, {"version", one.version}, {"installer", one.installer}, {"source", one.source}};
  json["artifact"] = or_null(one.artifact);
  if (!one.artifact) json["why_no_artifact"] = one.why_no_artifact;
  if (one.build) json["build"] = *one.build;
}
static void from_json(const Json& json, LockedDistribution& one) {
  one.name = json.at("name").get<std::string>();
  one.version = json.at("version").get<std::string>();
  one.installer = json.value("installer", "");
  one.source = json.value("source", "");
  take_unless_null(json, "artifact", one.artifact);
  one.why_no_artifact = json.value("why_no_artifact", "");
  take_unless_null(json, "build", one.build);
}

// The manifest is JSON text in the module's file; it is embedded as JSON here, so that a diff of two
// locks is readable. A manifest that does not parse becomes null.
static void to_json(Json& json, const LockedModule& one) {
  json = Json{{"module", one.module}, {"distribution", one.distribution}, {"path", one.path}};
  const Json manifest = parse_json_or_discard<Json>(one.manifest);
  json["manifest"] = manifest.is_discarded() ? Json(nullptr) : manifest;
}
static void from_json(const Json& json, LockedModule& one) {
  one.module = json.at("module").get<std::string>();
  one.distribution = json.value("distribution", "");
  one.path = json.at("path").get<std::string>();
  if (json.contains("manifest") && !json["manifest"].is_null()) one.manifest = dump_json(json["manifest"], 2);
}

namespace {

constexpr std::size_t kLockLimit = 64u << 20;  // the lock of 1000 libraries has 0.6 MB

// The top-level parts of a lock, for reading and writing: `visit(name, field)`. "schema", "torch" (null
// without torch) and "integrity" are handled by their callers.
template <class Lock, class Visit>
void each_part(Lock& lock, Visit visit) {
  visit("tool_version", lock.tool_version);
  visit("spec_sha256", lock.spec_sha256);
  visit("machine", lock.machine);
  visit("python", lock.python);
  visit("distributions", lock.distributions);
  visit("conda_packages", lock.conda_packages);
  visit("libraries", lock.libraries);
  visit("modules", lock.modules);
}

// Bytes that are not UTF-8 become U+FFFD instead of an exception: names in ELF files can be anything.
std::string dump(const Json& json, int indent) { return dump_json(json, indent); }

// The hash of each part's compact text, so that indentation and line ends do not matter. Parts of a
// newer minor schema, which this version does not know, are covered too.
Json integrity_of(const Json& json) {
  Json hashes = Json::object();
  for (const auto& [name, part] : json.items())
    if (name != "integrity") hashes[name] = sha256_hex(dump(part, -1));
  return hashes;
}

Error unreadable_lock(const std::string& name, const Message& why) {
  return {Errc::Malformed, message("{} is not a lock that scankit can read: {}", name, why),
          message("copy the original file again, or recreate it: scankit env lock")};
}

// Before everything else: an older scankit must not report a newer major schema as damaged.
Result<void> check_schema(const Json& json, const std::string& name) {
  const auto at = json.is_object() ? json.find("schema") : json.end();
  if (!json.is_object() || at == json.end() || !at->is_string())
    return unreadable_lock(name, message("the field \"schema\" is missing"));
  const std::string schema = at->get<std::string>(), major = schema.substr(0, schema.find('.'));
  if (major.empty() || major.size() > 6 || major.find_first_not_of("0123456789") != std::string::npos)
    return unreadable_lock(name,
                           message("\"schema\" is {}; expected a number such as 1.0", shown_value(schema)));
  if (major == std::to_string(kLockMajor)) return {};
  const bool newer = std::stoi(major) > kLockMajor;
  return Error{
      Errc::Unsupported,
      message("{} has schema {}, and this scankit reads {}.x", name, shown_value(schema), kLockMajor),
      newer ? message("use the scankit that wrote it, or a newer one")
            : message("recreate it: scankit env lock")};
}

// Names the parts that somebody changed, removed or added. This finds mistakes, not forgers: whoever
// edits a part can also write its hash.
Result<void> check_integrity(const Json& json, const std::string& name) {
  const auto stated = json.find("integrity");
  if (stated == json.end() || !stated->is_object())
    return unreadable_lock(name,
                           message("the field \"integrity\" is missing: the file was truncated or edited"));
  std::string edited;
  const auto add = [&](const std::string& part) {
    edited += (edited.empty() ? "" : ", ") + shown_value(part);
  };
  constexpr std::size_t kMost = 40;  // parts of a lock: eleven, and what later minor schemas add
  if (json.size() > kMost || stated->size() > kMost)
    return unreadable_lock(name, message("it has more than {} parts", kMost));
  const Json computed = integrity_of(json);
  for (const auto& [part, hash] : computed.items())
    if (const auto at = stated->find(part); at == stated->end() || *at != hash) add(part);
  for (const auto& [part, hash] : stated->items())
    if (!computed.contains(part)) add(part);
  if (edited.empty()) return {};
  return Error{
      Errc::Conflict, message("{} was edited after scankit wrote it: {}", name, edited),
      message("only scankit env lock can write a lock; change scankit.yaml or the environment and lock "
              "again")};
}

Result<Json> parse(std::string_view text, const std::string& name) {
  auto json = parse_bounded_json(text);
  if (!json) return unreadable_lock(name, json.error().message);
  return json;
}

// The JSON library checks the types, part by part, so that the message can name the part. bad_value()
// then checks the values, since a lock may come from a stranger.
Result<EnvironmentLock> take(const Json& json, const std::string& name) {
  EnvironmentLock lock;
  std::string part, why;
  try {
    lock.schema = json.at("schema").get<std::string>();
    each_part(lock, [&](const char* field, auto& value) {
      part = field;
      value = json.at(field).get<std::decay_t<decltype(value)>>();
    });
    part = "torch";
    if (const Json& torch = json.at("torch"); !torch.is_null()) lock.torch = torch.get<LockedTorch>();
  } catch (const Json::exception& problem) {
    return unreadable_lock(
        name, message("its part \"{}\": {}", part, shown_value(plain_json_problem(problem.what()))));
  }
  if (why = bad_value(lock); !why.empty()) return unreadable_lock(name, why);
  return lock;
}

}  // namespace

std::string lock_to_json(const EnvironmentLock& lock) {
  Json json = {{"schema", lock.schema}};
  each_part(lock, [&](const char* field, const auto& value) { json[field] = value; });
  json["torch"] = lock.torch ? Json(*lock.torch) : Json(nullptr);
  // The hashes must be those of the text as it will be read back, in which malformed UTF-8
  // is already replaced.
  json = parse_json<Json>(dump(json, -1));
  json["integrity"] = integrity_of(json);
  return json_document(json, 1);
}

Result<EnvironmentLock> lock_from_json(std::string_view text, const std::string& name) {
  SCANKIT_TRY(const Json json, parse(text, name));
  SCANKIT_CHECK(check_schema(json, name));
  SCANKIT_CHECK(check_integrity(json, name));
  return take(json, name);
}

Result<EnvironmentLock> read_lock(const std::string& path) {
  auto text = read_whole_file(path, kLockLimit, Accept::FilesAndPipes);
  if (text) return lock_from_json(*text, path);
  Error error = text.error();
  if (error.code == Errc::NotFound)
    error.hint = path == kLockFile ? message("write one: scankit env lock")
                                   : message("write one: scankit env lock --out {}", shell_quoted(path));
  return error;
}

const LockedArtifact* source_archive(const LockedDistribution& one) {
  if (one.artifact && !one.artifact->file.ends_with(".whl")) return &*one.artifact;
  return one.build && one.build->sdist ? &*one.build->sdist : nullptr;
}

const LockedDistribution* find_locked(const EnvironmentLock& lock, std::string_view name) {
  for (const LockedDistribution& one : lock.distributions)
    if (one.name == name) return &one;
  return nullptr;
}

}  // namespace scankit::envspec
