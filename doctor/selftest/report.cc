// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/model/plain_json.h"
#include "doctor/report/json.h"
#include "doctor/report/plain.h"
#include "doctor/selftest/run.h"

namespace scankit {
namespace {
using Json = nlohmann::ordered_json;

std::size_t count_of(const std::vector<Trial>& trials, Judgement wanted) {
  return static_cast<std::size_t>(std::ranges::count(trials, wanted, &Trial::judgement));
}

std::string cause_or_none(const std::string& slug) { return slug.empty() ? say("nothing") : slug; }

std::string answer(const Trial& trial) {
  switch (trial.judgement) {
    case Judgement::Named:
      return say("named     {}", cause_or_none(trial.expected));
    case Judgement::Missed:
      return say("MISSED    {}, it said {}", cause_or_none(trial.expected), trial.named);
    case Judgement::NotPlanted:
      return say("FAILED    not planted: {}", trial.why);
    case Judgement::Failed:
      return say("FAILED    {}", trial.why);
    case Judgement::Skipped:
      return say("skipped   {}", trial.why);
  }
  return "";
}

// The folder's name is new in each run; what matters is what lies in it.
std::string without_folder(std::string text, const std::string& folder) {
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.replace(at, folder.size(), "$SCRATCH");
  return text;
}

}  // namespace

std::string selftest_text(const SelftestRequest& request, const std::vector<Trial>& trials) {
  const Python& python = request.facts.python.value;
  std::string out =
      plain(say("Planted for {} ({} {})", python.requested, python.implementation, python.version), true) +
      "\n";
  for (const Trial& trial : trials) {
    std::string name = trial.fault;
    name.resize(std::max<std::size_t>(name.size(), 16), ' ');
    out += name + " " + plain(answer(trial), true) + "\n";
    out += std::string(17, ' ') + trial.planted + "\n";
    if (!trial.import_line.empty())
      out += std::string(17, ' ') + plain(without_folder(trial.import_line, request.folder), true) + "\n";
    if (trial.judgement == Judgement::Named || trial.again.empty()) continue;
    std::string command;
    for (const std::string& word : trial.again) command += (command.empty() ? "" : " ") + shell_quoted(word);
    out += std::string(17, ' ') + plain(without_folder(command, request.folder), true) + "\n";
  }
  const std::size_t named = count_of(trials, Judgement::Named),
                    tried = trials.size() - count_of(trials, Judgement::Skipped);
  return out + say("{} of {} answers are right, {} skipped", named, tried, trials.size() - tried) + "\n";
}

std::string selftest_json(const SelftestRequest& request, const std::vector<Trial>& trials) {
  const int status = exit_status_of(trials);
  Json json{{"$schema", "urn:scankit:selftest:1"},
            {"tool_version", request.facts.tool_version},
            {"python", request.facts.python.value.requested},
            {"verdict", status == 0 ? "passed" : "failed"},
            {"imports", request.import},
            {"faults", Json::array()}};
  for (const Trial& trial : trials)
    json["faults"].push_back({{"fault", trial.fault},
                              {"planted", trial.planted},
                              {"expected", or_null(trial.expected)},
                              {"outcome", judgement_word(trial.judgement)},
                              {"named", or_null(trial.named)},
                              {"why", or_null(trial.why)},
                              {"import_error", or_null(without_folder(trial.import_line, request.folder))},
                              {"command", trial.again}});
  return json_document(json);
}

}  // namespace scankit
