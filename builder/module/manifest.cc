// SPDX-License-Identifier: Apache-2.0
#include "builder/module/manifest.h"

#include <nlohmann/json.hpp>

#include "doctor/base/tool_version.h"
#include "doctor/model/plain_json.h"

namespace scankit {

std::string write_manifest(const ManifestInput& input) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
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
  add_explanation(json, *input.explanation);
  for (std::size_t i = 0; i < input.images->size(); ++i) {
    const BuiltCode& image = (*input.images)[i];
    json["images"][i]["kind"] = image.target.ptx ? "ptx" : "cubin";
    json["images"][i]["size"] = image.bytes.size();
    json["images"][i]["sha256"] = image.sha256;
  }
  return json_document(json);
}

}  // namespace scankit
