// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/finding.h"

#include <algorithm>

namespace scankit {

const std::vector<CauseInfo>& all_causes() {
  static const std::vector<CauseInfo> causes = {
#define CAUSE(id, slug, severity, title, next_step) {Cause::id, slug, Severity::severity, title, next_step},
#include "doctor/model/causes.def"
#undef CAUSE
  };
  return causes;
}

const CauseInfo& info(Cause cause) { return all_causes()[static_cast<std::size_t>(cause)]; }

std::optional<Cause> cause_from_slug(std::string_view slug) {
  const auto& causes = all_causes();
  const auto found = std::ranges::find(causes, slug, &CauseInfo::slug);
  if (found == causes.end()) return std::nullopt;
  return found->cause;
}

}  // namespace scankit
