// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "doctor/report/escape.h"
#include "doctor/report/sinks.h"

namespace scankit {
namespace {

// A step shows ten annotations of each level; GitHub drops the others without a word.
constexpr std::size_t kMostOfOneLevel = 10;
constexpr std::size_t kMostFollowers = 5;

// The title is not escaped yet, the message is. `at` is a line of the repository.
struct Annotation {
  std::string title, message;
  std::optional<FileLine> at{};
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

// One annotation for each cause; its symptoms, which come after it, are part of the text. %0A is a line end in a message.
Annotation annotation_of(const std::vector<Problem>& problems, std::size_t at) {
  const Problem& problem = problems[at];
  std::string text = github_message(problem.subject);
  for (std::size_t i = 0; i < problem.told.size(); ++i)
    text += (i == 0 ? ": " : "%0A") + github_message(problem.told[i]);
  std::size_t followers = 0;
  for (std::size_t i = at + 1; i < problems.size() && !problems[i].follows_from.empty(); ++i)
    if (++followers <= kMostFollowers)
      text += "%0A" + github_message("follows from it: " + problems[i].rule + ", " + problems[i].subject);
  if (followers > kMostFollowers)
    text += "%0A" + github_message("and " + std::to_string(followers - kMostFollowers) + " more");
  for (const Repair& repair : problem.repairs)
    text += "%0A" + github_message("repair: " + (repair.command.empty() ? repair.sentence : repair.command));
  return {"scankit: " + problem.rule, text, problem.place};
}

std::string summary(const Document& document) {
  std::string text;
  for (const std::string& line : document.lead) text += (text.empty() ? "" : "%0A") + github_message(line);
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

// Problems of an environment belong to no line of the repository; only a drift has a file, the one that demands something else.
std::string annotations_of(const Document& document) {
  constexpr std::array<std::string_view, 3> kLevels{"notice", "warning", "error"};
  std::array<std::vector<Annotation>, 3> levels;
  levels[0].push_back({"scankit: " + document.verdict, summary(document)});
  for (const auto& [title, text] : document.notices)
    levels[0].push_back({"scankit: " + title, github_message(text)});
  const auto& problems = document.problems;
  for (std::size_t i = 0; i < problems.size(); ++i)
    if (i == 0 || problems[i].follows_from.empty())
      levels[static_cast<std::size_t>(problems[i].severity)].push_back(annotation_of(problems, i));
  for (const OpenQuestion& open : document.open)
    if (open.could_hide_error)
      levels[1].push_back({"scankit: unknown", github_message(open.question + " " + open.why)});
  std::string out;
  for (std::size_t level = kLevels.size(); level-- > 0;) append(out, kLevels[level], levels[level]);
  return out;
}

}  // namespace scankit
