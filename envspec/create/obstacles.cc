// SPDX-License-Identifier: Apache-2.0
// What a lock asks for that cannot be had, found before anything is made: packages without a file, wheels for
// another machine or Python, wheels that no index has and that are in none of the directories.
#include <algorithm>
#include <numeric>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/probes/target/wheel.h"
#include "envspec/create/conda.h"
#include "envspec/create/create.h"
#include "envspec/export/export.h"

namespace scankit::envspec {
namespace {

std::string named(const LockedDistribution& one) { return one.name + "==" + one.version; }

// The doctor's own check of wheels, asked about the file names of the lock.
std::vector<std::string> wheels_for_others(const EnvironmentLock& lock, const Snapshot& here) {
  Snapshot asked = here;
  asked.wheels.clear();
  for (const LockedDistribution& one : lock.distributions) {
    Wheel wheel;
    if (!one.artifact || !probes::read_wheel_name(one.artifact->file, wheel)) continue;
    wheel.path = one.artifact->file;
    wheel.tags_from = "file name";
    asked.wheels.push_back(std::move(wheel));
  }
  const auto& checks = checks::all_checks();
  const auto check = std::ranges::find(checks, std::string_view("wheel-fits"), &checks::Check::id);
  std::vector<std::string> lines;
  if (check == checks.end() || asked.wheels.empty()) return lines;
  for (const Finding& finding : (*check)->run(asked).findings)
    lines.push_back(finding.subject + ": " + tr(finding.summary));
  return lines;
}

}  // namespace

std::vector<std::string> obstacles(const EnvironmentLock& lock, const Snapshot& here, bool conda_installs) {
  std::vector<std::string> lines;
  const std::string machine = processor_of(here), &locked = lock.machine.architecture;
  if (!machine.empty() && !locked.empty() && machine != locked)
    lines.push_back(say("the lock is for {}, and this machine is {}", locked, machine));
  const bool by_conda = came_from_conda(lock);  // one line says it for all of its packages
  if (by_conda && !conda_installs)
    lines.push_back(
        say("conda made the locked environment, and only conda can make it again: scankit env create "
            "DIR --installer conda"));
  for (const LockedDistribution& one : lock.distributions)
    if (!one.artifact && !(one.source == "conda" && by_conda))
      lines.push_back(
          say("{}: {}", named(one),
              one.why_no_artifact.empty() ? say("the lock has no file for it") : said(one.why_no_artifact)));
  if (lines.empty()) lines = wheels_for_others(lock, here);
  return lines;
}

std::string find_file(const LockedArtifact& artifact, const std::vector<std::string>& folders,
                      std::string& why) {
  for (const std::string& folder : folders) {
    const std::string path = path_join(folder, artifact.file);
    const auto hash = sha256_file(path);
    if (hash && *hash == artifact.sha256) return path;
    constexpr std::size_t kShown = 12;
    if (hash)
      why = say("{} has sha256 {}, and the lock says {}", path, hash->substr(0, kShown),
                artifact.sha256.substr(0, kShown));
    else if (hash.error().code != Errc::NotFound)
      why = tr(hash.error().message);
  }
  if (why.empty())
    why = folders.empty()
              ? say("{} was not found: the lock has no directory {} next to it", artifact.file, kWheelFolder)
              : say("{} was not found in {}", artifact.file, join(folders));
  return "";
}

std::string first_lines(const std::vector<std::string>& lines) {
  constexpr std::size_t kMostLines = 12;
  std::vector<std::string> shown(lines.begin(),
                                 lines.begin() + static_cast<long>(std::min(lines.size(), kMostLines)));
  if (shown.size() < lines.size()) shown.push_back(say("and {} more", lines.size() - shown.size()));
  return clauses(shown);
}

std::vector<std::string> wheel_folders(const Host& host, const std::string& offline,
                                       const std::string& lock_file) {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& folder) {
    const std::string path = path_normalize(path_join(current_directory(), folder));
    if (host.is_directory(path) && std::ranges::find(folders, path) == folders.end()) folders.push_back(path);
  };
  if (!offline.empty()) add(offline);
  if (!lock_file.empty()) add(path_join(path_dirname(lock_file), std::string(kWheelFolder)));
  return folders;
}

Result<FoundWheels> find_wheels(const EnvironmentLock& lock, const std::vector<std::string>& folders,
                                bool offline) {
  FoundWheels found;
  std::vector<std::string> missing;
  bool built = false;
  for (const LockedDistribution& one : lock.distributions) {
    if (!one.artifact || (!offline && one.source != "here")) continue;
    std::string why;
    std::string path = find_file(*one.artifact, folders, why);
    if (!path.empty()) {
      found[one.name] = std::move(path);
      continue;
    }
    if (const LockedArtifact* archive = source_archive(one); archive != nullptr && one.source == "here") {
      if (offline)
        why = clauses({why, say("its source archive {} is not there either", archive->file)});
      else if (archive->url.empty())
        why = clauses({why, say("no URL of its source archive {} is known", archive->file)});
    }
    built = built || one.source == "here";
    missing.push_back(one.source == "here" ? say("{}, which was built locally: {}", named(one), why)
                                           : say("{}: {}", named(one), why));
  }
  if (missing.empty()) return found;
  return Error{Errc::NotFound,
               message_n(missing.size(), "{} package cannot be installed, and nothing was changed: {}",
                         "{} packages cannot be installed, and nothing was changed: {}", missing.size(),
                         first_lines(missing)),
               built ? message("where the lock was made, scankit env export requirements --out "
                               "requirements.txt packs them into {}; put it next to the lock",
                               kWheelFolder)
                     : message("where an index can be reached: scankit env fetch --out {}",
                               shell_quoted(folders.empty() ? kWheelFolder : folders.front()))};
}

Result<void> check_offline(const Host& host, const std::string& folder) {
  if (folder.empty() || host.is_directory(path_join(current_directory(), folder))) return {};
  return Error{
      Errc::InvalidArgument, message("--offline {} is not a directory", folder),
      message("scankit env fetch --out {} makes one where an index can be reached", shell_quoted(folder))};
}

std::vector<SourceBuild> sources_to_build(const EnvironmentLock& lock,
                                          const std::vector<std::string>& folders, bool offline) {
  std::vector<SourceBuild> builds;
  for (const LockedDistribution& one : lock.distributions) {
    const LockedArtifact* archive = source_archive(one);
    if (archive == nullptr || !one.artifact) continue;
    std::string why;
    const bool archive_alone = archive == &*one.artifact;
    if (!archive_alone && (one.source != "here" || !find_file(*one.artifact, folders, why).empty())) continue;
    std::string path = find_file(*archive, folders, why);
    if (path.empty() && (offline || archive->url.empty())) continue;
    builds.push_back({one.name, one.version, *archive, std::move(path)});
  }
  return builds;
}

EnvironmentLock without_packages(const EnvironmentLock& lock, const std::vector<SourceBuild>& builds) {
  EnvironmentLock rest = lock;
  std::erase_if(rest.distributions, [&](const LockedDistribution& one) {
    return std::ranges::find(builds, one.name, &SourceBuild::name) != builds.end();
  });
  return rest;
}

std::string size_in_words(std::uint64_t bytes) {
  constexpr double kKilo = 1000;
  const auto size = static_cast<double>(bytes);
  if (size >= kKilo * kKilo * kKilo) return fmt::format("{:.1f} GB", size / (kKilo * kKilo * kKilo));
  if (size >= kKilo * kKilo) return fmt::format("{:.0f} MB", size / (kKilo * kKilo));
  return fmt::format("{:.0f} kB", size / kKilo);
}

}  // namespace scankit::envspec
