// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/base/say.h"
#include "doctor/model/finding.h"
#include "doctor/report/sinks.h"

namespace scankit {

// One snapshot judged in English and, where the user reads another language, in that one. What programs read
// stays English, so that the same input gives the same bytes on every machine. Checks are pure and take
// milliseconds: judging twice is simpler than sentences that could still change their language.
class Diagnosis {
 public:
  explicit Diagnosis(Snapshot snapshot);
  explicit Diagnosis(const std::function<Report()>& judge);  // which folds what it finds
  const Report& english() const { return english_; }
  std::string rendered(std::string_view format, const SinkOptions& options) const;
  std::string text(const std::function<std::string(const Report&)>& render) const;  // for the user

 private:
  const Language* language_;
  Report english_;
  std::optional<Report> translated_;
};

}  // namespace scankit
