// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "builder/module/assemble.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/elf/fatbin.h"
#include "doctor/elf/image.h"
#include "doctor/model/json.h"

namespace scankit::module {

// `build --explain --json` has the same number: it is read back as a manifest.
constexpr int kManifestSchema = 1;

// One compiler is the object "toolchain"; several are the array "toolchains", each with its targets.
// module/bundled.cc reads both forms.
std::string write_manifest(const ManifestInput& input) {
  nlohmann::ordered_json json;
  json["schema"] = kManifestSchema;
  json["module"] = "";  // here for its place; add_explanation() sets it
  json["flavor"] = input.flavor;
  json["scankit"] = kToolVersion;
  for (const ManifestInput::Maker& maker : input.compilers) {
    nlohmann::ordered_json one = {{"kind", maker.compiler->kind()},
                                  {"version", maker.compiler->version()},
                                  {"sha256", maker.compiler->sha256()}};
    if (input.compilers.size() == 1) {
      json["toolchain"] = one;
      break;
    }
    one["targets"] = names_of(maker.targets, " ");
    json["toolchains"].push_back(one);
  }
  compile::add_explanation(json, *input.explanation);
  for (std::size_t i = 0; i < input.images->size(); ++i) {
    const compile::BuiltCode& image = (*input.images)[i];
    json["images"][i]["kind"] = image.target.ptx ? "ptx" : "cubin";
    json["images"][i]["size"] = image.bytes.size();
    json["images"][i]["sha256"] = image.sha256;
  }
  return json_document(json);
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kModuleLimit = 1u << 30;
constexpr std::size_t kManifestLimit = 64u << 20;

Error no_manifest(const std::string& path, const Message& why) {
  return {
      Errc::InvalidArgument, message("{} contains no manifest: {}", path, why),
      message("each module that scankit built contains a manifest, and there is a copy as .json next to it")};
}

Error bad_manifest(const std::string& name, const std::string& why) {
  return {Errc::InvalidArgument, message("the manifest {} is damaged: {}", name, why),
          message("rebuild the module, or use the copy next to it")};
}

// The manifest's text. A file that is not a whole library is named for what it is: a web page, a git-lfs
// pointer, a part of a module.
Result<std::string> manifest_in(const std::string& path) {
  const auto host = make_real_host();
  auto source = host->open(path);
  if (!source) return Error{Errc::InvalidArgument, source.error().message, ""};
  const elf::FileState state = elf::file_state(std::move(*source));
  if (state.state != "elf") return no_manifest(path, state.detail);
  SCANKIT_TRY(const std::string file, host->read_file(path, kModuleLimit));
  auto manifest = section_bytes(file, ".scankit.manifest");
  if (manifest) return manifest;
  if (manifest.error().code == Errc::NotFound)
    return no_manifest(path, message("scankit did not build it, or a tool removed the section"));
  return no_manifest(path, manifest.error().message);
}

// Skips values that are not texts, which only another program can have written.
compile::Inputs inputs_of(const Json& json) {
  compile::Inputs inputs;
  if (!json.is_object()) return inputs;
  for (const auto& [label, value] : json.items())
    if (value.is_string()) inputs.emplace_back(label, value.get<std::string>());
  return inputs;
}

// Checks what every reader of a manifest relies on: "module" is a text, "images" is an array.
Result<Json> parse(const std::string& name, const std::string& text) {
  Json json = parse_json_or_discard<Json>(text);
  if (json.is_discarded()) return bad_manifest(name, say("it is not JSON"));
  SCANKIT_CHECK(readable_schema(name, schema_number(json), kManifestSchema));
  if (!json.is_object() || json_text(json, "module").empty() || !json["images"].is_array())
    return bad_manifest(name, say("\"module\" and \"images\" are required"));
  return json;
}

// Puts the shared inputs back in front of each image's own (add_explanation() took them out).
Result<compile::Explanation> explanation_of(const std::string& name, const std::string& text) {
  SCANKIT_TRY(const Json json, parse(name, text));
  if (!json.contains("image_inputs"))
    return Error{Errc::InvalidArgument, message("{} does not list what its images depend on", name),
                 message("an older scankit wrote it")};
  compile::Explanation explanation;
  explanation.module = json_text(json, "module");
  explanation.inputs = inputs_of(json.value("inputs", Json::object()));
  const compile::Inputs shared = inputs_of(json["image_inputs"]);
  for (const Json& entry : json["images"]) {
    if (!entry.is_object())
      return bad_manifest(name, say("\"images\" contains an entry that is not an image"));
    compile::ExplainedImage image{json_text(entry, "unit"), json_text(entry, "target"), shared,
                                  json_text(entry, "key"), json_text(entry, "sha256")};
    const compile::Inputs own = inputs_of(entry.value("inputs", Json::object()));
    image.inputs.insert(image.inputs.end(), own.begin(), own.end());
    explanation.images.push_back(std::move(image));
  }
  return explanation;
}

bool is_elf(const std::string& path) {
  const auto host = make_real_host();
  auto source = host->open(path);
  return source && !elf::file_state(std::move(*source)).machine.empty();
}

}  // namespace

Result<std::string> read_manifest(const std::string& path) {
  SCANKIT_TRY(std::string text, manifest_in(path));
  SCANKIT_CHECK(parse(path, text));
  return text;
}

Result<compile::Explanation> read_explanation(const std::string& path) {
  if (is_elf(path)) {
    SCANKIT_TRY(const std::string text, manifest_in(path));
    return explanation_of(path, text);
  }
  auto text = read_whole_file(path, kManifestLimit);
  if (!text) return Error{Errc::InvalidArgument, text.error().message, ""};
  return explanation_of(path, *text);
}

Result<void> check_against_manifest(const std::string& path, const std::string& manifest) {
  SCANKIT_TRY(const Json json, parse(path, manifest));
  const auto host = make_real_host();
  SCANKIT_TRY(auto source, host->open(path));
  SCANKIT_TRY(const elf::Image file, elf::Image::open(std::move(source)));
  SCANKIT_TRY(const auto entries, elf::find_device_images(file));
  const Json& images = json["images"];
  if (entries.size() != images.size())
    return Error{
        Errc::Malformed,
        message("{} contains {} images and its manifest lists {}", path, entries.size(), images.size()), ""};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    SCANKIT_TRY(const std::string padded, elf::fatbin_payload(file.file(), entries[i]));
    const auto size = images[i].find("size");  // payloads are padded to 8 bytes
    const std::string bytes = padded.substr(
        0, size != images[i].end() && size->is_number_unsigned() ? size->get<std::size_t>() : 0);
    if (sha256_hex(bytes) != json_text(images[i], "sha256"))
      return Error{Errc::Malformed,
                   message("image {} for {} in {} does not match its manifest", json_text(images[i], "unit"),
                           json_text(images[i], "target"), path),
                   ""};
  }
  return {};
}

}  // namespace scankit::module
