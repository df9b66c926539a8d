// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>

#include "builder/fix/transaction.h"
#include "doctor/base/date.h"
#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/model/redact.h"
#include "doctor/model/snapshot.h"
#include "envspec/create/create.h"
#include "envspec/history/history.h"
#include "envspec/lock/install_metadata.h"

// What installers and scankit wrote down about their own runs. pip and uv keep no command line: INSTALLER
// says who installed a package, REQUESTED whether it was asked for, and RECORD's time when. conda keeps each
// command, and scankit the steps of each fix.
namespace scankit::envspec {
namespace {

// Of two packages of one run. A large wheel is unpacked for some seconds before its RECORD is written.
constexpr std::int64_t kSameRun = 10;

std::int64_t time_of(const Host& host, const std::string& path) {
  const auto info = host.stat(path);
  return info ? in_seconds(info->mtime_ns) : 0;
}

// uv_cache.json: the commit that a local project was built at, where its settings ask uv to look at git.
std::string uv_commit(const Host& host, const Distribution& distribution) {
  const auto text = host.read_file(path_join(distribution.path, "uv_cache.json"), 1u << 20);
  const auto json = parse_json_or_discard<nlohmann::json>(text ? *text : "");
  return json.is_object() ? printable(json_text(json, "commit")) : "";
}

Message origin_of(const Host& host, const Distribution& distribution) {
  const DirectUrl direct = direct_url(host, distribution);
  if (const std::string commit = direct.commit.empty() ? uv_commit(host, distribution) : direct.commit;
      !commit.empty())
    return direct.url.empty() ? message("commit {} of a local directory", commit)
                              : message("commit {} of {}", commit, direct.url);
  if (!direct.there) return {};
  if (!direct.local) return Message(direct.url);
  return direct.archive ? message("the local file {}", direct.file_name) : message("a local directory");
}

// conda calls the package of torch "pytorch".
std::string name_by_conda(const std::string& name) {
  std::string normalized = normalized_name(name);
  return normalized == "pytorch" ? "torch" : normalized;
}

// conda's packages have their times of conda-meta, since their files keep those of the build.
std::string metadata_of_conda(const Host& host, const std::string& prefix, const std::string& name) {
  const std::string folder = path_join(prefix, "conda-meta");
  const auto listed = host.list(folder);
  if (!listed) return "";
  for (const DirEntry& entry : *listed) {
    const std::string stem = entry.name.substr(0, entry.name.rfind('-', entry.name.rfind('-') - 1));
    if (entry.name.ends_with(".json") && name_by_conda(stem) == name) return path_join(folder, entry.name);
  }
  return "";
}

// "numpy 2.1.0 (requested), six 1.0": the first ones.
std::string packages_in_words(const std::vector<const InstalledPackage*>& packages) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> words;
  for (const InstalledPackage* one : packages) {
    if (words.size() == kMost) break;
    words.push_back(one->name + " " + one->version);
    if (!one->origin.empty()) words.back() += " (" + tr(one->origin) + ")";
  }
  std::string text = join(words);
  if (packages.size() > kMost) text = tr(message("{} and {} more", text, packages.size() - kMost));
  return text;
}

HistoryEvent event_of(const std::vector<const InstalledPackage*>& packages) {
  const InstalledPackage& first = *packages.front();
  HistoryEvent event{.time = first.time,
                     .source = first.installer.empty() ? "file" : first.installer,
                     .recorded_in = first.recorded_in};
  std::vector<std::string> requested;
  for (const InstalledPackage* one : packages) {
    event.changes.push_back({"packages." + one->name, "", one->version});
    if (one->requested) requested.push_back(one->name);
  }
  const std::string words = packages_in_words(packages);
  if (first.installer.empty())
    event.text = message("installed by an unknown installer: {}", words);
  else if (requested.empty() || requested.size() == packages.size())
    event.text = message("{} installed {}", first.installer, words);
  else
    event.text = message("{} installed {}; requested: {}", first.installer, words, join(requested));
  return event;
}

}  // namespace

std::vector<InstalledPackage> installed_packages(const Host& host, const Snapshot& snapshot) {
  std::vector<InstalledPackage> packages;
  for (const Distribution& one : snapshot.distributions.value) {
    InstalledPackage package{
        .name = normalized_name(one.name), .version = one.version, .installer = one.installer};
    package.recorded_in = path_join(one.path, "RECORD");
    if (!one.conda_channel.empty() || one.installer == "conda") {
      package.installer = "conda";
      package.recorded_in = metadata_of_conda(host, snapshot.python.value.prefix, package.name);
    }
    package.time = time_of(host, package.recorded_in);
    package.requested = host.exists(path_join(one.path, "REQUESTED"));
    package.origin = origin_of(host, one);
    packages.push_back(std::move(package));
  }
  return packages;
}

std::vector<HistoryEvent> installations(const std::vector<InstalledPackage>& packages) {
  std::vector<const InstalledPackage*> sorted;
  for (const InstalledPackage& one : packages)
    if (one.time != 0) sorted.push_back(&one);
  std::ranges::stable_sort(sorted, {}, [](const auto* one) { return std::pair(one->installer, one->time); });
  std::vector<HistoryEvent> events;
  std::vector<const InstalledPackage*> run;
  for (const InstalledPackage* one : sorted) {
    const bool same =
        !run.empty() && run.back()->installer == one->installer && one->time - run.back()->time <= kSameRun;
    if (!same && !run.empty()) {
      events.push_back(event_of(run));
      run.clear();
    }
    run.push_back(one);
  }
  if (!run.empty()) events.push_back(event_of(run));
  return events;
}

namespace {

// A command line as it may be shown and pasted into an issue: a password in a URL, conda's
// "https://HOST/t/TOKEN/channel" and the values of options such as --token are hidden.
std::string without_credentials(const std::string& text) {
  std::vector<redaction::Edit> edits;
  for (const redaction::Url& url : redaction::find_urls(text)) {
    if (url.host.start > url.authority.start)
      edits.push_back({{url.authority.start, url.host.start}, TextRedactor::hidden() + "@"});
    for (const redaction::Place& token : url.tokens) edits.push_back({token, TextRedactor::hidden()});
    constexpr std::string_view kToken = "/t/";
    if (const auto start = url.authority.end; text.compare(start, kToken.size(), kToken) == 0) {
      const auto end = std::min(text.find_first_of("/ '\"", start + kToken.size()), text.size());
      edits.push_back({{start + kToken.size(), end}, TextRedactor::hidden()});
    }
  }
  for (const redaction::Place& secret : redaction::find_secrets(text))
    edits.push_back({secret, TextRedactor::hidden()});
  return redaction::edited(text, std::move(edits));
}

// "==> 2026-11-22 10:00:00 <==", in the local time of the machine that conda ran on.
std::optional<std::int64_t> time_of_revision(const std::string& line) {
  constexpr std::string_view kBegin = "==> ", kEnd = " <==";
  if (!line.starts_with(kBegin) || !line.ends_with(kEnd)) return std::nullopt;
  const auto utc =
      parse_time(std::string_view(line).substr(kBegin.size(), line.size() - kBegin.size() - kEnd.size()));
  if (!utc) return std::nullopt;
  std::time_t as_utc = *utc;
  struct tm fields {};
  ::gmtime_r(&as_utc, &fields);
  fields.tm_isdst = -1;
  return ::mktime(&fields);
}

// "+defaults/linux-64::numpy-2.1.0-py311h_0" or "-numpy-2.1.0-py311h_0".
void take_package(const std::string& line, HistoryEvent& event) {
  std::string name = line.substr(1);
  if (const auto channel = name.rfind("::"); channel != std::string::npos) name.erase(0, channel + 2);
  const auto build = name.rfind('-');
  const auto version = build == std::string::npos || build == 0 ? build : name.rfind('-', build - 1);
  if (version == std::string::npos || version == 0) return;
  const std::string field = "packages." + name_by_conda(name.substr(0, version));
  const std::string value = printable(name.substr(version + 1, build - version - 1));
  auto change = std::ranges::find(event.changes, field, &FieldChange::field);
  if (change == event.changes.end())
    change = event.changes.insert(event.changes.end(), FieldChange{printable(field), "", ""});
  (line[0] == '+' ? change->after : change->before) = value;
}

}  // namespace

// Comment lines other than "# cmd: " are the specs, which the command has too.
std::vector<HistoryEvent> conda_history(std::string_view text, const std::string& path) {
  std::vector<HistoryEvent> events;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kCommand = "# cmd: ";
    if (const auto time = time_of_revision(line))
      events.push_back({.time = *time, .source = "conda", .recorded_in = path});
    else if (events.empty())
      continue;
    else if (line.starts_with(kCommand))
      events.back().command = without_credentials(printable(line.substr(kCommand.size())));
    else if (line.starts_with('+') || line.starts_with('-'))
      take_package(line, events.back());
  }
  for (HistoryEvent& event : events)
    event.text = event.command.empty() ? message("conda changed {} packages", event.changes.size())
                                       : message_n(event.changes.size(), "{}: {} package", "{}: {} packages",
                                                   event.command, event.changes.size());
  return events;
}

std::vector<HistoryEvent> own_history(const Host& host, const std::string& prefix,
                                      std::vector<Message>& problems) {
  std::vector<HistoryEvent> events;
  const fix::StateFolder state(prefix);
  const auto journals = state.journals();
  if (!journals) problems.push_back(journals.error().message);
  for (const fix::Journal& journal : journals.value_or({})) {
    const std::string file = path_join(state.root(), "journal/" + journal.id + ".json");
    HistoryEvent event{.time = time_of(host, file), .source = "scankit", .recorded_in = file};
    const std::string what =
        printable(journal.module + (journal.version.empty() ? "" : " " + journal.version));
    const bool kept = journal.state == fix::Journal::State::Committed;
    event.text =
        kept ? message("scankit changed {}: {}", what, without_credentials(printable(join(journal.steps))))
             : message("scankit took its change of {} back", what);
    for (const std::string& step : journal.steps)
      if (constexpr std::string_view kRan = "ran: "; event.command.empty() && step.starts_with(kRan))
        event.command = without_credentials(printable(step.substr(kRan.size())));
    events.push_back(std::move(event));
  }
  const std::string file = path_join(prefix, kRecordFile);
  if (!host.exists(file)) return events;
  const auto record = read_record(prefix);
  if (!record) {
    problems.push_back(record.error().message);
    return events;
  }
  HistoryEvent event{.time = time_of(host, file), .source = "scankit", .recorded_in = file};
  constexpr std::size_t kShort = 12;
  event.text = message("scankit env create or env sync made it with {}, from the lock {}", record->installer,
                       record->lock_sha256.substr(0, kShort));
  events.push_back(std::move(event));
  return events;
}

}  // namespace scankit::envspec
