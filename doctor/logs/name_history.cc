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
  if (knowledge::is_of_python(history.package)) history.package = "Python";
  const auto span =
      name.empty() ? knowledge::releases_of_module(module) : knowledge::releases_of_name(module, name);
  if (span) {
    history.first = span->first;
    history.gone = span->gone;
    if (span->first.empty() != span->gone.empty())
      history.why = span->gone.empty() ? Lacking::NotYet : Lacking::NoLonger;
  } else if (history.package == "torch") {
    history.why = why_torch_lacks(module, name);
  }
  return history;
}

Message lacking_because(const NameHistory& history, const std::string& module, const std::string& name,
                        Message otherwise) {
  const auto& [why, package, first, gone] = history;
  if (first.empty() && gone.empty()) return otherwise;
  if (name.empty()) {
    if (gone.empty()) return message("{} is missing: it came with {} {}", module, package, first);
    return first.empty() ? message("{} is missing: {} {} removed it", module, package, gone)
                         : message("{} is missing: it came with {} {}, and {} removed it", module, package,
                                   first, gone);
  }
  if (gone.empty()) return message("{} has no {}, which came with {} {}", module, name, package, first);
  return first.empty() ? message("{} has no {}, which {} {} removed", module, name, package, gone)
                       : message("{} has no {}, which came with {} {}, and which {} removed", module, name,
                                 package, first, gone);
}

void add_history(const NameHistory& history, Judged& judged) {
  // Python is no distribution that could be installed in its own place.
  if (history.package == "Python" || (history.first.empty() && history.gone.empty())) return;
  judged.more["distribution"] =
      knowledge::distribution_of_import_name(history.package).value_or(history.package);
  if (!history.first.empty()) judged.more["first_release"] = history.first;
  if (!history.gone.empty()) judged.more["gone_in"] = history.gone;
}

}  // namespace scankit::logs
