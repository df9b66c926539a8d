// SPDX-License-Identifier: Apache-2.0
// What scankit's readers make of a file or a text, as JSON: one request for each line on standard input, one
// answer for each line on standard output. truth_by_others.py compares the answers with those of pyelftools,
// packaging, zipfile, site and importlib.metadata.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "doctor/base/files.h"
#include "doctor/elf/library.h"
#include "doctor/host/host.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_layout.h"
#include "doctor/probes/python/sys_path.h"
#include "doctor/probes/target/wheel.h"
#include "envspec/spec/spec.h"

namespace scankit::fuzz {
namespace {

using Json = nlohmann::json;

Json error_of(const Error& error) { return {{"error", error.message}}; }

Json elf(const Host& host, const std::string& path) {
  const auto library = elf::open_library(host, path);
  if (!library) return error_of(library.error());
  const elf::Dynamic& dynamic = (*library)->dynamic;
  Json answer{{"needed", dynamic.needed},   {"soname", dynamic.soname},
              {"rpath", dynamic.rpath},     {"runpath", dynamic.runpath},
              {"undefined", Json::array()}, {"build_id", elf::read_build_id((*library)->image)}};
  const auto undefined = (*library)->symbols.undefined();
  if (!undefined) return error_of(undefined.error());
  for (const elf::UndefinedSymbol& symbol : *undefined)
    answer["undefined"].push_back({symbol.name, symbol.weak, symbol.version, symbol.version_file});
  auto exported = (*library)->symbols.exported();
  if (!exported) return error_of(exported.error());
  answer["exported"] = *exported;
  return answer;
}

Json tags(const std::string& name) {
  Wheel wheel;
  if (!probes::read_wheel_name(name, wheel)) return {{"error", "no name of a wheel"}};
  return {{"tags", probes::expanded_tags(wheel)}};
}

Json in_range(const std::string& range, const std::string& version) {
  const auto parsed = envspec::VersionRange::parse(range);
  if (!parsed) return error_of(parsed.error());
  const auto holds = parsed->contains(std::string_view(version));
  return {{"holds", holds ? Json(*holds) : Json(nullptr)}};
}

// One Python for all requests of a process: probing it takes longer than all else.
Json marker(const Host& host, const Json& ask) {
  static const auto python = probes::probe_python(host, ask.at("python").get<std::string>());
  if (!python.present()) return {{"error", "no Python"}};
  const auto holds = probes::marker_holds(ask.at("marker").get<std::string>(), python.value, "x86_64",
                                          ask.at("extras").get<std::vector<std::string>>());
  return {{"holds", holds ? Json(*holds) : Json(nullptr)}};
}

Json wheel(const std::string& path) {
  const auto folder = TemporaryDirectory::create("scankit-readers");
  if (!folder) return error_of(folder.error());
  const auto unpacked = probes::unpack_wheel(path, folder->path());
  if (!unpacked) return error_of(unpacked.error());
  Json libraries = Json::object();
  for (const std::string& each : unpacked->libraries) {
    const auto hash = sha256_file(path_join(folder->path(), each));
    libraries[each] = hash ? *hash : english(hash.error().message);
  }
  return {{"libraries", libraries}};
}

Json pth(const Host& host, const std::string& folder, const std::string& requested) {
  const auto python = probes::find_usable_interpreter(host, requested);
  if (!python) return error_of(python.error());
  const auto layout = probes::read_python_layout(host, python->path);
  if (!layout) return error_of(layout.error());
  Json paths = Json::array();
  for (const probes::PthLine& line : probes::PthReader(host, layout->pth_rules()).read_folder(folder))
    paths.push_back(line.path);
  return {{"paths", paths}};
}

Json distributions(const Host& host, const std::string& requested) {
  const auto python = probes::probe_python(host, requested);
  const auto found = probes::probe_distributions(host, python.value);
  Json names = Json::object();
  for (const Distribution& each : found.value)
    if (!names.contains(each.path)) names[each.path] = {each.name, each.version};
  return {{"found", names}};
}

Json answer_to(const Host& host, const Json& ask) {
  const std::string what = ask.at("ask"), path = ask.value("path", "");
  if (what == "elf") return elf(host, path);
  if (what == "tags") return tags(path);
  if (what == "range") return in_range(ask.at("range"), ask.at("version"));
  if (what == "marker") return marker(host, ask);
  if (what == "wheel") return wheel(path);
  if (what == "pth") return pth(host, path, ask.at("python"));
  if (what == "distributions") return distributions(host, path);
  return {{"error", "not known"}, {"ask", what}};
}

}  // namespace
}  // namespace scankit::fuzz

int main() {
  const auto host = scankit::make_real_host();
  for (std::string line; std::getline(std::cin, line);)
    std::cout << scankit::fuzz::answer_to(*host, nlohmann::json::parse(line))
                     .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
              << std::endl;
}
