// SPDX-License-Identifier: Apache-2.0
#include "envspec/history/history.h"

#include <algorithm>
#include <map>

#include "doctor/base/date.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "envspec/lock/install_metadata.h"

// Puts the sources together: all events from the moment on, and for each difference from a lock, spec, record
// or snapshot the event that explains it, also where that one is older.
namespace scankit::envspec {
namespace {

// Installers write RECORD after the files; a file that is newer than this was written by something else.
constexpr std::int64_t kAfterInstallation = 60;

using ByName = std::map<std::string, const InstalledPackage*>;

// A library that was written after its package was installed, or that belongs to none.
struct LaterFile {
  std::string inner, distribution;
  std::int64_t time = 0;
};

std::vector<LaterFile> later_files(const Host& host, const Snapshot& snapshot, const ByName& packages) {
  std::vector<LaterFile> later;
  for (const PlacedLibrary& one : placed_libraries(host, snapshot).libraries) {
    const auto info = host.stat(one.path);
    if (!info) continue;
    const auto owner = packages.find(one.distribution);
    const std::int64_t time = in_seconds(info->mtime_ns);
    // Packages of conda, those without a RECORD and files of no package have no time to compare with.
    const bool no_time =
        owner != packages.end() && (owner->second->installer == "conda" || owner->second->time == 0);
    if (no_time || (owner != packages.end() && time <= owner->second->time + kAfterInstallation)) continue;
    later.push_back({one.inner, one.distribution, time});
  }
  return later;
}

HistoryEvent event_of(const LaterFile& file, const ByName& packages) {
  HistoryEvent event{.time = file.time, .source = "file", .recorded_in = file.inner};
  event.changes = {{"files." + file.inner, "", ""}};
  if (const auto owner = packages.find(file.distribution); owner != packages.end())
    event.text = message("{} was written after {} {} was installed ({}); by what is not recorded", file.inner,
                         owner->second->name, owner->second->version, time_utc(owner->second->time));
  else
    event.text =
        message("{} was written, which no installed package lists; by what is not recorded", file.inner);
  return event;
}

class Historian {
 public:
  Historian(Subject& subject, const HistoryRequest& request, EnvironmentHistory& history)
      : subject_(subject), request_(request), history_(history) {}

  void run() {
    collect();
    keep_since();
    if (history_.since.base) explain_differences();
    std::ranges::stable_sort(history_.events, {}, &HistoryEvent::time);
    say_limits();
  }

 private:
  const Host& host() const { return *subject_.host; }
  const Python& python() const { return subject_.snapshot.python.value; }

  void collect() {
    packages_ = installed_packages(host(), subject_.snapshot);
    for (const InstalledPackage& one : packages_) by_name_.emplace(one.name, &one);
    all_ = installations(packages_);
    const auto add = [&](std::vector<HistoryEvent> events) {
      std::ranges::move(events, std::back_inserter(all_));
    };
    const std::string conda = path_join(python().prefix, "conda-meta/history");
    constexpr std::size_t kMostHistory = 64u << 20;
    const auto text = host().read_file(conda, kMostHistory);
    if (text) add(conda_history(*text, conda));
    if (!text && text.error().code != Errc::NotFound) history_.problems.push_back(text.error().message);
    has_conda_ = text.has_value();
    if (host().is_live()) add(own_history(host(), python().prefix, history_.problems));
    later_ = later_files(host(), subject_.snapshot, by_name_);
    for (const LaterFile& file : later_) all_.push_back(event_of(file, by_name_));
    const std::string cfg = path_join(python().prefix, "pyvenv.cfg");
    if (const auto info = host().stat(cfg)) {
      HistoryEvent event{.time = in_seconds(info->mtime_ns), .source = "file", .recorded_in = cfg};
      event.text = message("the virtual environment was made, with Python {}", python().version);
      all_.push_back(std::move(event));
    }
    for (const std::string& file : request_.files)
      add(commits_since(file, first_second(), history_.problems, history_.limits));
  }

  // A file is of what was there when it was written: what is of the same second is in it.
  std::int64_t first_second() const { return history_.since.time + (history_.since.base ? 1 : 0); }

  void keep_since() {
    for (const HistoryEvent& event : all_)
      if (event.time >= first_second()) history_.events.push_back(event);
  }

  // The event that tells of the field: the last one of it.
  const HistoryEvent* event_about(const std::string& field) const {
    const HistoryEvent* found = nullptr;
    for (const HistoryEvent& event : all_) {
      if (event.source == "git" ||
          std::ranges::find(event.changes, field, &FieldChange::field) == event.changes.end())
        continue;
      if (found == nullptr || event.time >= found->time) found = &event;
    }
    return found;
  }

  // The field whose change explains this one: a library comes with its package, and torch's CUDA with torch.
  std::string reason_of(const std::string& field) const {
    if (field.starts_with("torch.")) return "packages.torch";
    if (!field.starts_with("files.")) return field;
    const bool later =
        std::ranges::any_of(later_, [&](const LaterFile& file) { return field == "files." + file.inner; });
    if (later) return field;
    const auto owner = owners_.find(field.substr(std::string_view("files.").size()));
    return owner == owners_.end() ? field : "packages." + owner->second;
  }

  void explain_differences() {
    Side here = operand_of_facts(subject_.facts);
    here.kind = "environment";
    if (history_.since.base->tells_files) hash_files_of(here);
    for (const Difference& one : differences(*history_.since.base, here)) {
      const FieldChange change{one.field, one.left, one.right};
      if (!one.why_unknown.empty()) {
        history_.problems.push_back(message("{}: {}", one.field, one.why_unknown));
        continue;
      }
      const HistoryEvent* event = event_about(reason_of(one.field));
      // A removal is never in what is installed now: only conda's history has it.
      if (event == nullptr || (one.right.empty() && event->source != "conda"))
        history_.unexplained.push_back({change, why_not(one)});
      else
        take_event(*event, change);
    }
  }

  void hash_files_of(Side& here) {
    here.here = std::shared_ptr<const Subject>(&subject_, [](const Subject*) {});  // not ours to delete
    put_files(here, request_.cache_dir);
    for (const PlacedLibrary& one : placed_libraries(host(), subject_.snapshot).libraries)
      if (!one.distribution.empty()) owners_[one.inner] = one.distribution;
  }

  // The event is shown, also where it is older, with what it changed.
  void take_event(const HistoryEvent& event, const FieldChange& change) {
    auto at = std::ranges::find_if(history_.events, [&](const HistoryEvent& one) {
      return one.time == event.time && one.source == event.source && one.recorded_in == event.recorded_in;
    });
    if (at == history_.events.end()) at = history_.events.insert(history_.events.end(), event);
    const auto known = std::ranges::find(at->changes, change.field, &FieldChange::field);
    if (known == at->changes.end())
      at->changes.push_back(change);
    else
      *known = change;
  }

  static Message why_not(const Difference& one) {
    if (one.field.starts_with("packages.") && one.right.empty())
      return message("it was removed, and pip and uv do not record removals");
    if (one.field.starts_with("files.") && one.right.empty())
      return message("it was removed, and nothing records that");
    if (one.field == "driver" || one.field == "gpus")
      return message("it belongs to the machine, whose changes are not recorded in an environment");
    if (one.field.starts_with("python."))
      return message("the environment was made with another Python, and nothing records the command");
    return message("nothing that is recorded tells of it");
  }

  void say_limits() {
    const auto uses = [&](std::string_view installer) {
      return std::ranges::any_of(packages_, [&](const auto& one) { return one.installer == installer; });
    };
    if (uses("pip") || uses("uv"))
      history_.limits.push_back(
          message("pip and uv record who installed a package and when, and no command line"));
    if (!history_.since.base && !has_conda_)
      history_.limits.push_back(
          message("what was removed is not recorded: name a lock, a record or a snapshot instead of a date "
                  "to see it"));
    if (has_conda_)
      history_.limits.push_back(
          message("conda records local times without a zone; they are read in the zone of this machine"));
    const auto timeless = std::ranges::count(packages_, 0, &InstalledPackage::time);
    if (timeless > 0)
      history_.limits.push_back(message_n(
          static_cast<std::size_t>(timeless), "the time of the installation of {} package is not recorded",
          "the times of the installations of {} packages are not recorded", timeless));
    history_.limits.push_back(message("an edited Python source is not looked for"));
  }

  Subject& subject_;
  const HistoryRequest& request_;
  EnvironmentHistory& history_;
  std::vector<InstalledPackage> packages_;
  ByName by_name_;
  std::vector<LaterFile> later_;
  std::map<std::string, std::string> owners_;  // of libraries, by their inner path
  std::vector<HistoryEvent> all_;              // of every time
  bool has_conda_ = false;
};

}  // namespace

EnvironmentHistory history_of(Subject& subject, Since since, const HistoryRequest& request) {
  EnvironmentHistory history;
  history.since = std::move(since);
  history.limits = history.since.limits;
  history.problems = history.since.problems;
  Historian(subject, request, history).run();
  return history;
}

int history_status(const EnvironmentHistory& history) {
  if (!history.events.empty() || !history.unexplained.empty()) return kExitDrift;
  return history.problems.empty() ? kExitClean : kExitInconclusive;
}

}  // namespace scankit::envspec
