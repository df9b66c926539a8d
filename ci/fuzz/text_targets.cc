// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "builder/fix/transaction.h"
#include "builder/fix/tree.h"
#include "builder/installer/fetch/wheel_fetcher.h"
#include "ci/fleet/node_result.h"
#include "ci/fuzz/targets.h"
#include "ci/gate/policy.h"
#include "doctor/base/files.h"
#include "doctor/base/sha256.h"
#include "doctor/declared/module_file.h"
#include "doctor/logs/explainer.h"
#include "doctor/model/json.h"
#include "doctor/model/redact.h"
#include "doctor/model/snapshot.h"
#include "doctor/preflight/probes/sources.h"
#include "doctor/probes/imports/importers.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/sys_path.h"
#include "doctor/probes/target/wheel.h"
#include "envspec/index/index.h"
#include "envspec/lock/lock.h"
#include "envspec/spec/spec.h"

// The readers of text formats. Results are used in some way ("(void)x.size()"), so that nothing is
// optimized away and what was read is also written again.
namespace scankit::fuzz {
namespace {

// A directory for readers that want files; it lives as long as the process.
const std::string& state_base() {
  static const auto folder = TemporaryDirectory::create("scankit-fuzz");
  static const std::string path = folder ? folder->path() : "";
  return path;
}

void read_snapshot(std::string_view input) {
  const auto snapshot = snapshot_from_json(input);
  if (!snapshot) return;
  (void)snapshot_to_json(*snapshot).size();
  (void)snapshot_to_json(redacted(*snapshot)).size();
}

// The lock with hashes that match its parts. Otherwise nearly every mutated input would fail at the
// integrity check, and the code behind it would never be reached; a forger can compute the hashes as well.
std::string with_hashes(std::string_view lock) {
  auto json = nlohmann::json::parse(lock, nullptr, false);
  if (!json.is_object()) return std::string(lock);
  json.erase("integrity");
  auto hashes = nlohmann::json::object();
  for (const auto& [name, part] : json.items())
    hashes[name] = sha256_hex(part.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  json["integrity"] = hashes;
  return json_document(json);
}

void read_lock_text(std::string_view input) {
  for (const std::string& text : {std::string(input), with_hashes(input)}) {
    const auto lock = envspec::lock_from_json(text, "fuzz.lock");
    if (lock) (void)envspec::lock_to_json(*lock).size();
  }
}

void read_spec(std::string_view input) { (void)envspec::parse_spec(input, "scankit.yaml").has_value(); }
void read_policy_text(std::string_view input) { (void)gate::parse_policy(input, "policy.yaml").has_value(); }

void read_journal(std::string_view input) {
  const fix::StateFolder state(state_base());
  const std::string folder = state.root() + "/journal";
  if (!make_directories(folder) || !write_file_atomically(folder + "/0001.json", input)) return;
  (void)state.journals().has_value();
}

void read_tree(std::string_view input) {
  const std::string file = state_base() + "/tree";
  if (write_file_atomically(file, input)) (void)fix::read_tree_list(file).has_value();
}

void read_index_page(std::string_view input) {
  (void)installer::parse_index_page(input, "https://index.invalid/simple/demo/").has_value();
}

void read_pylock(std::string_view input) { (void)envspec::read_uv_pylock(input).size(); }
void read_log(std::string_view input) { (void)logs::explain_text(input); }

void read_node(std::string_view input) {
  (void)fleet::read_node_text(input);
  // With a digest that matches, for the same reason.
  std::string body(input);
  while (body.ends_with('\n') || body.ends_with('}')) body.pop_back();
  (void)fleet::read_node_text(fleet::with_digest(std::move(body)));
}

void redact(std::string_view input) {
  TextRedactor redactor;
  redactor.learn_user("someuser");
  redactor.learn_home("/home/someuser");
  redactor.learn_from(input);
  (void)redactor.clean(std::string(input)).size();
}

void read_metadata(std::string_view input) {
  for (const probes::RequirementLine& line : probes::requirement_lines(input))
    (void)probes::marker_holds(line.marker, Python{}, "x86_64", {"dev"}).has_value();
  for (const Wheel& wheel : probes::tag_lines(std::string(input))) (void)probes::expanded_tags(wheel).size();
}

void read_module_file(std::string_view input) {
  const auto file = declared::parse_module_file(input, "scankit.module.yaml");
  if (file) (void)declared::imports_of(*file).size();
}

void read_python_source(std::string_view input) {
  (void)preflight::read_python_text(input);
  (void)probes::scan_imports(input, {"torch", "selective_scan_cuda"}).size();
  (void)probes::scan_package_file(input, "mamba_ssm.ops", true);
  (void)probes::mappings_of_finder(input, "/site/__editable___demo_finder.py").size();
}

constexpr std::array kTextTargets = {Target{"snapshot", read_snapshot},
                                     Target{"lock", read_lock_text},
                                     Target{"spec", read_spec},
                                     Target{"policy", read_policy_text},
                                     Target{"journal", read_journal},
                                     Target{"tree", read_tree},
                                     Target{"index_page", read_index_page},
                                     Target{"pylock", read_pylock},
                                     Target{"log", read_log},
                                     Target{"fleet_node", read_node},
                                     Target{"redact", redact},
                                     Target{"metadata", read_metadata},
                                     Target{"module_file", read_module_file},
                                     Target{"python_source", read_python_source}};

}  // namespace

std::span<const Target> text_targets() { return kTextTargets; }

}  // namespace scankit::fuzz
