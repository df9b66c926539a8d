// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "doctor/base/say.h"
#include "doctor/report/audit.h"
#include "doctor/report/escape.h"
#include "doctor/report/sinks.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

// A step shows ten annotations of each level; GitHub drops the others without a word. @17!+ The title is
// not escaped yet, the message is. `at` is a line of the repository.
constexpr std::size_t kMostOfOneLevel = 10;
constexpr std::size_t kMostFollowers = 5;

struct Annotation {
  std::string title, message;
  std::optional<FileLine> at{};  // of the repository
};

// The form of a workflow command: "::error file=F,line=N,title=T::MESSAGE". Lines count from 1.
std::string annotation_line(std::string_view level, const Annotation& annotation) {
  std::string place;
  if (annotation.at)
    place = "file=" + github_property(annotation.at->file) +
            ",line=" + std::to_string(std::max(annotation.at->line, 1u)) + ",";
  return "::" + std::string(level) + " " + place + "title=" + github_property(annotation.title) +
         "::" + annotation.message + "\n";
}

// One annotation for each cause; its symptoms are part of the text. %0A is a line end in a message.
Annotation annotation_of(const Report& report, std::size_t at) {
  const Finding& finding = report.findings[at];
  std::string text = github_message(finding.subject + ": " + tr(finding.summary));
  std::size_t followers = 0;
  for (std::size_t i = at + 1; i < report.findings.size() && report.findings[i].because_of; ++i)
    if (++followers <= kMostFollowers)
      text += "%0A" + github_message("follows from it: " + std::string(info(report.findings[i].cause).slug) +
                                     ", " + report.findings[i].subject);
  if (followers > kMostFollowers)
    text += "%0A" + github_message("and " + std::to_string(followers - kMostFollowers) + " more");
  for (const Fix& fix : finding.fixes)
    text += "%0A" + github_message("repair: " + fix_or_command(fix, report.snapshot));
  return {"scankit: " + std::string(info(finding.cause).slug), text, finding.demanded_by};
}

std::string summary(const Report& report) {
  std::string text = github_message(counts_line(report));
  for (const std::string& line : target_lines(report.snapshot)) text += "%0A" + github_message(line);
  return text;
}

// If there are more annotations than GitHub shows, the last one that it shows lists the others.
void append(std::string& out, std::string_view level, const std::vector<Annotation>& all) {
  const bool fits = all.size() <= kMostOfOneLevel;
  const std::size_t shown = fits ? all.size() : kMostOfOneLevel - 1;
  for (std::size_t i = 0; i < shown; ++i) out += annotation_line(level, all[i]);
  if (fits) return;
  std::string rest;
  for (std::size_t i = shown; i < all.size(); ++i)
    // Removes "scankit: ", which every title begins with.
    rest += (rest.empty() ? "" : "%0A") + github_message(all[i].title.substr(9)) + ": " + all[i].message;
  out += annotation_line(level, {"scankit: " + std::to_string(all.size() - shown) + " more", rest});
}

}  // namespace

// Workflow commands, which a step of a job prints with `cat`. Findings about the environment belong to no
// line of the repository; only a drift has a file, the one that demands something else.
std::string doctor_github(const Report& report) {
  constexpr std::array<std::string_view, 3> kLevels{"notice", "warning", "error"};
  std::array<std::vector<Annotation>, 3> levels;
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    // fold() has placed symptoms directly after their cause, and annotation_of() has them in its text.
    if (i > 0 && report.findings[i].because_of) continue;
    levels[static_cast<std::size_t>(report.findings[i].severity())].push_back(annotation_of(report, i));
  }
  for (const Outcome& outcome : report.outcomes)
    if (is_open(outcome) && outcome.could_hide_error)
      levels[1].push_back({"scankit: unknown", github_message(tr(outcome.question) + " " + tr(outcome.why))});
  levels[0].insert(levels[0].begin(), {"scankit: " + verdict_line(report), summary(report)});
  if (const auto table = audit_table(report.snapshot))
    levels[0].insert(levels[0].begin() + 1, {say("scankit: every extension"), github_message(table->title)});
  std::string out;
  for (std::size_t level = kLevels.size(); level-- > 0;) append(out, kLevels[level], levels[level]);
  return out;
}

}  // namespace scankit
