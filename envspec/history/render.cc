// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/date.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "doctor/report/escape.h"
#include "envspec/history/history.h"

// The answer of `env check --since` for people and for programs.
namespace scankit::envspec {
namespace {

constexpr std::size_t kMostChanges = 12;  // lines below one event
constexpr std::size_t kShortHash = 10;

// "torch.version 2.10.0 -> 2.11.0". What an event alone tells has no value from before.
std::string change_line(const FieldChange& change) {
  const auto value = [](const std::string& text) {
    const bool hash = text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
    return hash ? text.substr(0, kShortHash) : text;
  };
  const std::string none = say("none");
  const std::string before = change.before.empty() ? none : value(change.before);
  const std::string after = change.after.empty() ? none : value(change.after);
  return report::plain(say("{} {} -> {}", change.field, before, after), false);
}

// Only what was compared: an installation that nobody asked about has its packages in its sentence.
void add_changes(const HistoryEvent& event, std::string& text) {
  std::size_t shown = 0, known = 0;
  for (const FieldChange& change : event.changes) {
    if (change.before.empty() && (event.source != "git" || change.after.empty())) continue;
    if (++known <= kMostChanges) text += "    " + change_line(change) + "\n";
    shown = std::min(known, kMostChanges);
  }
  if (known > shown) text += "    " + say("and {} more", known - shown) + "\n";
}

}  // namespace

std::string history_text(const EnvironmentHistory& history) {
  const Since& since = history.since;
  std::string text = since.commit.empty()
                         ? say("since {} ({})", time_utc(since.time), report::plain(since.text, false))
                         : say("since {} ({}, commit {})", time_utc(since.time),
                               report::plain(since.text, false), since.commit.substr(0, kShortHash));
  text += "\n";
  for (const HistoryEvent& event : history.events) {
    text += "  " + time_utc(event.time) + "  " + report::plain(tr(event.text), false) + "\n";
    add_changes(event, text);
  }
  for (const Unexplained& one : history.unexplained)
    text += "  " + say("not recorded: {}: {}", change_line(one.change), tr(one.why)) + "\n";
  for (const Message& problem : history.problems)
    text += "  " + say("unknown: {}", report::plain(tr(problem), false)) + "\n";
  const std::size_t events = history.events.size(), open = history.unexplained.size();
  text +=
      say("{}, {}", say_n(events, "{} recorded event", "{} recorded events", events),
          say_n(open, "{} difference that nothing explains", "{} differences that nothing explains", open)) +
      "\n";
  for (const Message& limit : history.limits) text += say("note: {}", tr(limit)) + "\n";
  return text;
}

std::string history_json(const EnvironmentHistory& history) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  const auto change_json = [&](const FieldChange& change) {
    return Json{
        {"field", change.field}, {"before", or_null(change.before)}, {"after", or_null(change.after)}};
  };
  const auto sentences = [](const std::vector<Message>& messages) {
    Json list = Json::array();
    for (const Message& one : messages) list.push_back(one.english());
    return list;
  };
  constexpr const char* kSchema = "urn:scankit:env-history:1";
  Json json{{"$schema", kSchema},
            {"schema", kSchema},
            {"since",
             {{"text", history.since.text},
              {"time", time_utc(history.since.time)},
              {"commit", or_null(history.since.commit)}}},
            {"events", Json::array()},
            {"unexplained", Json::array()},
            {"unknown", sentences(history.problems)},
            {"not_recorded", sentences(history.limits)}};
  for (const HistoryEvent& event : history.events) {
    Json changes = Json::array();
    for (const FieldChange& change : event.changes) changes.push_back(change_json(change));
    json["events"].push_back({{"time", time_utc(event.time)},
                              {"source", event.source},
                              {"command", or_null(event.command)},
                              {"commit", or_null(event.commit)},
                              {"text", event.text.english()},
                              {"changes", std::move(changes)},
                              {"recorded_in", event.recorded_in}});
  }
  for (const Unexplained& one : history.unexplained) {
    Json entry = change_json(one.change);
    entry["why"] = one.why.english();
    json["unexplained"].push_back(std::move(entry));
  }
  return json_document(json);
}

}  // namespace scankit::envspec
