// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/name_history.h"

#include <utility>

#include "doctor/knowledge/known_packages.h"
#include "doctor/knowledge/python_names.h"
#include "doctor/logs/known_names.h"

namespace scankit::logs {
namespace {

// Where no table has the name: what is known of torch without its releases.
Lacking why_torch_lacks(const std::string& module, const std::string& name) {
  if (name.empty()) return is_young_part_of_torch(module) ? Lacking::NotYet : Lacking::NoLonger;
  if (is_young_part_of_torch(module)) return Lacking::NotYet;
  if (is_removed_from_torch(name)) return Lacking::NoLonger;
  return came_with_newer_torch(name) ? Lacking::NotYet : Lacking::Unknown;
}

}  // namespace

NameHistory history_of(const std::string& module, const std::string& name) {
  NameHistory history;
  history.package = module.substr(0, module.find('.'));
  const auto span =
      name.empty() ? knowledge::releases_of_module(module) : knowledge::releases_of_name(module, name);
  // A name that came and went says nothing: the installed release may lie before its first or behind its last.
  if (span && span->first.empty() != span->gone.empty()) {
    history.why = span->gone.empty() ? Lacking::NotYet : Lacking::NoLonger;
    history.release = span->gone.empty() ? span->first : span->gone;
  } else if (!span && history.package == "torch") {
    history.why = why_torch_lacks(module, name);
  }
  return history;
}

Message lacking_because(const NameHistory& history, const std::string& module, const std::string& name,
                        Message otherwise) {
  const auto& [why, package, release] = history;
  if (release.empty()) return otherwise;
  const bool not_yet = why == Lacking::NotYet;
  if (name.empty())
    return not_yet ? message("{} is missing: it came with {} {}", module, package, release)
                   : message("{} is missing: {} {} removed it", module, package, release);
  return not_yet ? message("{} has no {}, which came with {} {}", module, name, package, release)
                 : message("{} has no {}, which {} {} removed", module, name, package, release);
}

void add_history(const NameHistory& history, Judged& judged) {
  if (history.release.empty()) return;
  judged.more["distribution"] =
      knowledge::distribution_of_import_name(history.package).value_or(history.package);
  judged.more[history.why == Lacking::NotYet ? "first_release" : "gone_in"] = history.release;
}

}  // namespace scankit::logs
