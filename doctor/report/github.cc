// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/model/json.h"
#include "doctor/report/document.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

namespace scankit::report {
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

namespace {
using Json = nlohmann::ordered_json;

// GitHub shows no more results of one run.
constexpr std::size_t kMostResults = 5000;

Json text(const std::string& words) { return Json{{"text", plain(words, false)}}; }

// A drift is located in the repository's file that demands something else, so that GitHub shows it at
// that line. A relative URI is relative to the repository.
Json demanded_line(const FileLine& line) {
  constexpr std::string_view kRoot = "file:///";
  const std::string uri = line.file.starts_with('/')
                              ? file_uri(line.file)
                              : file_uri("/" + path_normalize(line.file)).substr(kRoot.size());
  return {{"artifactLocation", {{"uri", uri}}}, {"region", {{"startLine", std::max(line.line, 1u)}}}};
}

// A problem of a package, a node or a case has no file. What was examined takes its place, because viewers refuse a result
// without a physical location.
Json location(const Problem& problem, const std::string& environment) {
  const bool is_file = problem.subject.starts_with('/');
  Json place = Json::object();
  if (problem.place)
    place["physicalLocation"] = demanded_line(*problem.place);
  else if (is_file || environment.starts_with('/'))
    place["physicalLocation"] = {
        {"artifactLocation", {{"uri", file_uri(is_file ? problem.subject : environment)}}}};
  Json logical{{"name", plain(problem.subject, false)}, {"kind", is_file ? "resource" : "module"}};
  if (!problem.module.empty()) logical["fullyQualifiedName"] = plain(problem.module, false);
  place["logicalLocations"] = Json::array({std::move(logical)});
  return place;
}

std::string result_text(const Problem& problem) {
  std::string words;
  for (const std::string& sentence : problem.told) words += (words.empty() ? "" : " ") + sentence;
  if (!problem.follows_from.empty()) words += " Because of " + problem.follows_from + ".";
  for (const Repair& repair : problem.repairs)
    words += " Repair: " + (repair.command.empty() ? repair.sentence : repair.command) + ".";
  return words;
}

// A fingerprint that tells GitHub which finding of an earlier run this is. The directory may differ
// between runs (a CI checkout, a home directory), the file name does not. A counter separates equal
// findings of one run.
std::string fingerprint(const Problem& problem, std::map<std::string, unsigned>& seen) {
  const std::string identity = problem.rule + "\n" + problem.module + "\n" + path_basename(problem.subject);
  return sha256_hex(identity + "\n" + std::to_string(seen[identity]++));
}

Json rule_of(const Problem& problem) {
  const std::string more = problem.more.empty() ? "" : "More: " + problem.more;
  const std::string help = problem.help + (problem.help.empty() || more.empty() ? "" : ". ") + more;
  Json rule{{"id", problem.rule}, {"name", problem.rule}, {"shortDescription", text(problem.title)}};
  if (!help.empty()) rule["help"] = text(help);
  rule["defaultConfiguration"] = {{"level", severity_word(problem.usual_severity)}};
  return rule;
}

Json result_of(const Problem& problem, std::size_t rule, const std::string& environment,
               std::map<std::string, unsigned>& seen) {
  Json result{{"ruleId", problem.rule},
              {"ruleIndex", rule},
              {"level", severity_word(problem.severity)},
              {"message", text(result_text(problem))},
              {"locations", Json::array({location(problem, environment)})},
              {"partialFingerprints", {{"scankitFinding/v1", fingerprint(problem, seen)}}}};
  for (const Evidence& evidence : problem.evidence)
    result["properties"]["evidence"].push_back(
        {{"fact", plain(evidence.fact, false)}, {"value", plain(evidence.value, false)}});
  if (!problem.follows_from.empty()) result["properties"]["because_of"] = problem.follows_from;
  return result;
}

// Questions that were not answered are notifications about the run, not results: nothing was found.
Json notifications(const Document& document, std::size_t left_out) {
  Json list = Json::array();
  for (const OpenQuestion& open : document.open) {
    const char* level = open.crashed ? "error" : open.could_hide_error ? "warning" : "note";
    list.push_back({{"descriptor", {{"id", open.check}}},
                    {"level", level},
                    {"message", text(open.question + " " +
                                     (open.crashed ? "The check failed: " : "Unknown: ") + open.why)}});
  }
  for (const auto& [title, words] : document.notices)
    list.push_back({{"level", "note"}, {"message", text(title + ": " + words)}});
  if (left_out > 0)
    list.push_back({{"level", "warning"},
                    {"message", text(std::to_string(left_out) + " further findings are left out")}});
  return list;
}

}  // namespace

std::string sarif_of(const Document& document) {
  const auto& problems = document.problems;
  // By name, so that the indices do not depend on the order of the problems.
  std::map<std::string, std::pair<std::size_t, const Problem*>> rules;
  for (const Problem& problem : problems) rules.try_emplace(problem.rule, 0, &problem);
  Json rule_list = Json::array();
  for (auto& [name, rule] : rules) {
    rule.first = rule_list.size();
    rule_list.push_back(rule_of(*rule.second));
  }
  Json results = Json::array();
  std::map<std::string, unsigned> seen;
  const std::size_t shown = std::min(problems.size(), kMostResults);
  for (std::size_t i = 0; i < shown; ++i)
    results.push_back(result_of(problems[i], rules.at(problems[i].rule).first, document.environment, seen));
  // executionSuccessful is about scankit itself, not about what it found.
  const bool crashed = std::ranges::any_of(document.open, &OpenQuestion::crashed);
  Json invocation{{"executionSuccessful", !crashed}, {"exitCode", document.exit_status}};
  if (Json list = notifications(document, problems.size() - shown); !list.empty())
    invocation["toolExecutionNotifications"] = std::move(list);
  Json properties{{"verdict", document.verdict_word}};
  for (const std::string& line : document.lead) properties["summary"].push_back(plain(line, false));
  Json driver{{"name", "scankit"}, {"version", document.tool_version}, {"rules", std::move(rule_list)}};
  const Json sarif{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                   {"version", "2.1.0"},
                   {"runs", Json::array({{{"tool", {{"driver", std::move(driver)}}},
                                          {"invocations", Json::array({std::move(invocation)})},
                                          {"results", std::move(results)},
                                          {"properties", std::move(properties)},
                                          // The specification wants to know how columns are counted, even
                                          // though no result has one.
                                          {"columnKind", "utf16CodeUnits"}}})}};
  return json_document(sarif);
}

}  // namespace scankit::report
