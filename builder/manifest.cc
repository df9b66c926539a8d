// SPDX-License-Identifier: Apache-2.0
#include "builder/manifest.h"

#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/base/tool_version.h"

namespace scankit {

std::string write_manifest(const ManifestInput& input) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["module"] = input.module;
  json["flavor"] = "universal";
  json["scankit"] = kToolVersion;
  json["inputs"] = {{"host_module_sha256", sha256_hex(input.host_module)},
                    {"device_source_sha256", sha256_hex(input.device_source)}};
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
  json["images"] = nlohmann::ordered_json::array();
  for (const BuiltCode& image : *input.images)
    json["images"].push_back({{"unit", image.unit},
                              {"target", image.target.name()},
                              {"kind", image.target.ptx ? "ptx" : "cubin"},
                              {"size", image.bytes.size()},
                              {"sha256", image.sha256}});
  return json.dump(2) + "\n";
}

}  // namespace scankit
