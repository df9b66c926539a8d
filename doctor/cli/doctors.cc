// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/cli/commands.h"
#include "doctor/model/json.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/fixes.h"
#include "doctor/report/text.h"
#include "doctor/report/words.h"

// `scankit doctor` with several --python or --from: each is diagnosed by itself, in one run. The worst
// exit status is that of the run.
namespace scankit::cli {
namespace {

using Json = nlohmann::ordered_json;

// One line of the summary. An environment that could not be read has no verdict.
struct Line {
  std::string place;
  std::optional<Verdict> verdict;
  std::string cause;
};

// The name of the place in the answer: after redaction the facts have it without what was removed.
std::string place_of(const Snapshot& snapshot, const std::string& named) {
  if (!snapshot.read_from.empty()) return snapshot.read_from;
  const std::string path = report::python_path(snapshot);
  return path.empty() ? named : path;
}

Line line_of(const Diagnosis& made, const std::string& place) {
  Line line{.place = place, .verdict = made.report.verdict, .cause = ""};
  for (const Finding& finding : made.report.findings)
    if (line.cause.empty() && finding.severity() == Severity::Error && !finding.because_of)
      line.cause = info(finding.cause).slug;
  return line;
}

// By the verdict, not by the exit status: --fail-on never makes nothing healthy.
const report::Mark& mark_of_line(const Line& line) {
  if (line.verdict == Verdict::Healthy) return report::kGood;
  return line.verdict == Verdict::Broken ? report::kError : report::kUnknown;
}

std::string summary(const std::vector<Line>& lines, const report::TextStyle& style) {
  const auto good = static_cast<std::size_t>(
      std::ranges::count_if(lines, [](const Line& line) { return line.verdict == Verdict::Healthy; }));
  report::Page page(style);
  page.gap().line(0, good == lines.size() ? say("all {} environments are healthy", lines.size())
                                          : say("{} of {} environments are healthy", good, lines.size()));
  for (const Line& line : lines)
    page.marked(
        2, mark_of_line(line), line.place,
        ": " + (line.verdict ? std::string(report::verdict_word(*line.verdict)) : say("cannot be examined")) +
            (line.cause.empty() ? "" : " (" + line.cause + ")"));
  return page.take();
}

// An error names paths of this machine, so that report_error() may have to redact it.
void add_failure(const Error& error, const DoctorOptions& options, const std::string& named,
                 std::vector<Line>& lines, Json& answers) {
  report_error(error, options.environment.redact);
  const std::string place = options.environment.redact ? say("environment {}", lines.size() + 1) : named;
  lines.push_back({.place = place, .verdict = std::nullopt, .cause = ""});
  answers.push_back({{"place", place}, {"exit_status", kExitUsage}, {"answer", nullptr}});
}

}  // namespace

int run_doctors(const DoctorOptions& options) {
  const report::TextStyle style = text_style(options.show);
  std::vector<Line> lines;
  Json answers = Json::array();
  int status = kExitClean;
  bool abandoned = false;
  const auto examine = [&](const DoctorOptions& one, const std::string& named) {
    const auto made = diagnosis_for(one);
    status = first_that_counts({status, made ? made->status : kExitUsage});
    if (!made) return add_failure(made.error(), options, named, lines, answers);
    abandoned = abandoned || made->abandoned;
    const std::string place = place_of(made->report.snapshot, named);
    lines.push_back(line_of(*made, place));
    const report::Views views = report::doctor_views(made->report, made->status);
    if (options.show.json) {
      answers.push_back(
          {{"place", place}, {"exit_status", made->status}, {"answer", parse_json<Json>(views.json())}});
      return;
    }
    // Printed as soon as it is known: the next one may take a minute.
    report::Page heading(style);
    if (lines.size() > 1) heading.gap();
    heading.strong(place);
    std::cout << heading.take();
    status = first_that_counts({status, show(views, options.show, made->notes)});
    std::cout.flush();
  };
  for (const std::string& python : options.pythons) {
    DoctorOptions one = options;
    one.environment.python = python;
    examine(one, python);
  }
  for (const std::string& snapshot : options.snapshots) {
    DoctorOptions one = options;
    one.from = snapshot;
    examine(one, snapshot);
  }
  if (options.show.json)
    std::cout << json_document(Json{{"$schema", "urn:scankit:doctors:1"},
                                    {"tool_version", kToolVersion},
                                    {"exit_status", status},
                                    {"environments", std::move(answers)}});
  else
    std::cout << summary(lines, style);
  return leave(status, abandoned);
}

}  // namespace scankit::cli
