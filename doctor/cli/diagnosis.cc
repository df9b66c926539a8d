// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/diagnosis.h"

#include <utility>

#include "doctor/checks/runner.h"
#include "doctor/report/fold.h"

namespace scankit {
namespace {

Report judged(Snapshot snapshot, const Language* language) {
  const Speaking speaking(language);
  Report report = diagnose(std::move(snapshot));
  fold(report);
  return report;
}

}  // namespace

Diagnosis::Diagnosis(Snapshot snapshot) : language_(spoken_language()) {
  if (language_ != nullptr) translated_ = judged(snapshot, language_);
  english_ = judged(std::move(snapshot), nullptr);
}

Diagnosis::Diagnosis(const std::function<Report()>& judge) : language_(spoken_language()) {
  if (language_ != nullptr) translated_ = judge();
  const Speaking english(nullptr);
  english_ = judge();
}

std::string Diagnosis::text(const std::function<std::string(const Report&)>& render) const {
  return render(translated_ ? *translated_ : english_);
}

std::string Diagnosis::rendered(std::string_view format, const SinkOptions& options) const {
  const bool read_by_people = format == "text" || format == "markdown" || format == "html";
  if (read_by_people) return text([&](const Report& report) { return render(format, report, options); });
  const Speaking english(nullptr);
  return render(format, english_, options);
}

}  // namespace scankit
