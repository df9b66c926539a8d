// SPDX-License-Identifier: Apache-2.0
#include "doctor/build_facts.h"

#include <nlohmann/json.hpp>

#include "doctor/base/tool_version.h"
#include "doctor/model/json.h"
#include "doctor/program.h"
#include "doctor/torch_abi/symbol_index.h"

// The bill of materials of this build (ci/cmake/bill_of_materials.cmake), so that no second list of the
// libraries has to be kept.
extern "C" const char scankit_bill_of_materials[], scankit_bill_of_materials_end[];

namespace scankit {
namespace {

using Json = nlohmann::ordered_json;

Json known_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json libraries() {
  const std::string_view text(
      scankit_bill_of_materials,
      static_cast<std::size_t>(scankit_bill_of_materials_end - scankit_bill_of_materials));
  Json libraries = Json::array();
  const Json document = parse_json<Json>(text);
  for (const Json& package : document.at("packages")) {
    if (package.at("name") == "scankit") continue;
    const std::string version = package.at("versionInfo");
    libraries.push_back({{"name", package.at("name")},
                         {"version", known_or_null(version == "NOASSERTION" ? "" : version)},
                         {"license", package.at("licenseDeclared")}});
  }
  return libraries;
}

}  // namespace

std::string version_json() {
  const auto& releases = torch_abi::SymbolIndex::built_in().releases();
  return json_document(Json{
      {"$schema", "urn:scankit:version:1"},
      {"tool_version", kToolVersion},
      {"commit", known_or_null(kCommit)},
      {"compiler", kCompiler},
      {"symbol_index",
       {{"date", known_or_null(kSymbolIndexDate)},
        {"newest_torch", known_or_null(releases.empty() ? "" : releases.back().minor)}}},
      {"libraries", libraries()},
  });
}

}  // namespace scankit
