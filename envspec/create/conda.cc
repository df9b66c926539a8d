// SPDX-License-Identifier: Apache-2.0
// The user's conda and the environment that it makes aside. Their channels, mirror, credentials and package
// cache apply, since it is their program that asks.
#include "envspec/create/conda.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "builder/fix/execute.h"
#include "builder/fix/transaction.h"
#include "builder/installer/installer.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/sha256.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/model/json.h"
#include "doctor/probes/python/python.h"
#include "doctor/report/progress.h"
#include "envspec/export/export.h"
#include "envspec/lock/install_metadata.h"

namespace scankit::envspec {
namespace {

// The first that reads packages of the .conda format (its release notes), which channels have had since then.
constexpr const char* kOldestConda = "4.7.0";

std::string printed_line(std::string_view printed, std::string_view begin) {
  for (const std::string_view line : lines_of(printed))
    if (line.starts_with(begin)) return std::string(trimmed(line.substr(begin.size())));
  return "";
}

}  // namespace

Result<CondaProgram> conda_of_version(std::string_view printed) {
  CondaProgram found;
  found.version = printed_line(printed, "conda ");
  if (found.version.empty()) {
    found.kind = CondaProgram::Kind::Libmamba;
    found.version = std::string(trimmed(printed));
  }
  const auto version = Version::parse(found.version);
  if (!version)
    return Error{Errc::ToolFailed, message("it does not say which version it is: {}", shown_value(printed)),
                 ""};
  if (found.kind == CondaProgram::Kind::Conda && *version < *Version::parse(kOldestConda))
    return Error{
        Errc::Unsupported,
        message("conda {} is too old: current packages need {} or newer", found.version, kOldestConda),
        message("conda update --name base conda; or put a newer conda, mamba or micromamba on PATH")};
  return found;
}

Result<CondaProgram> find_conda_program(const Host& host) {
  const installer::ShellConda shell = installer::conda_of_shell(host);
  if (shell.program.empty())
    return Error{
        Errc::NotFound,
        message("conda, mamba or micromamba was found neither on PATH nor in CONDA_EXE or MAMBA_EXE"),
        message("put conda on PATH, or make a virtual environment: --installer uv or --installer pip")};
  if (const auto foreign = probes::foreign_to_root(host, shell.program))
    return Error{Errc::PermissionDenied,
                 message("{} belongs to user {}, and running it would run that user's code as root",
                         foreign->path, foreign->uid),
                 message("run scankit as that user")};
  ProcessRequest request;
  request.argv = {shell.program, "--version"};
  request.timeout = std::chrono::minutes(1);
  SCANKIT_TRY(const ProcessResult said, run_process(request));
  auto found = said.ok() ? conda_of_version(said.out)
                         : Error{Errc::ToolFailed, Message(std::string(trimmed(said.err))), ""};
  if (!found)
    return Error{found.error().code,
                 message("{} ({}) cannot make the environment: {}", shell.program, shell.found_by,
                         found.error().message),
                 found.error().hint};
  found->program = shell.program;
  found->found_by = shell.found_by;
  return found;
}

std::vector<CondaPackage> packages_of_conda(const EnvironmentLock& lock) {
  std::vector<CondaPackage> packages;
  for (const CondaPackage& one : lock.conda_packages)
    if (one.channel != "pypi") packages.push_back(one);
  return packages;
}

bool came_from_conda(const EnvironmentLock& lock) { return !packages_of_conda(lock).empty(); }

std::string explicit_file(const EnvironmentLock& lock, const std::string& folder) {
  std::string text = "@EXPLICIT\n";
  for (const CondaPackage& one : packages_of_conda(lock)) {
    if (one.url.empty() || one.md5.empty()) return "";
    // MD5, which every conda reads here; the SHA-256 is compared afterwards.
    text += (folder.empty() ? one.url : "file://" + path_join(folder, path_basename(one.url))) + "#" +
            one.md5 + "\n";
  }
  return text;
}

Result<void> check_conda_files(const EnvironmentLock& lock, const std::string& folder) {
  std::vector<std::string> missing;
  for (const CondaPackage& one : packages_of_conda(lock)) {
    std::string why;
    if (one.url.empty() || one.sha256.empty() || one.md5.empty())
      why = say("the lock has no file for it");
    else
      (void)find_file({.file = path_basename(one.url), .sha256 = one.sha256}, {folder}, why);
    if (!why.empty()) missing.push_back(say("{}={}={}: {}", one.name, one.version, one.build, why));
  }
  if (missing.empty()) return {};
  return Error{
      Errc::NotFound,
      message_n(missing.size(), "{} package of conda cannot be installed, and nothing was made: {}",
                "{} packages of conda cannot be installed, and nothing was made: {}", missing.size(),
                first_lines(missing)),
      message("where the channels can be reached: scankit env fetch --out {}", shell_quoted(folder))};
}

std::string conda_python(const VersionRange& range) {
  std::vector<std::string> clauses;
  for (const std::string& part : split(range.text(), ",")) {
    std::string clause(trimmed(part));
    if (clause.starts_with("==") && clause.ends_with(".*")) clause.erase(0, 2);
    if (!clause.empty()) clauses.push_back(std::move(clause));
  }
  std::string text = "python";
  for (const std::string& clause : clauses) text += (text == "python" ? " " : ",") + clause;
  return text;
}

namespace {

// mamba 2 and micromamba keep a list of all environments as newer condas do. The line with the directory of ours is
// taken out of the user's own file, nothing else; of another owner (sudo with the user's HOME) it is left alone.
void forget_environment(const std::string& environment) {
  const auto host = make_real_host();
  const std::string home = host->env("HOME").value_or("");
  if (!home.starts_with('/')) return;
  const std::string listed = path_join(home, ".conda/environments.txt");
  const std::string file = host->realpath(listed).value_or(listed);
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0 || info.st_uid != ::geteuid()) return;
  constexpr std::size_t kMost = 1u << 20;
  const auto text = host->read_file(file, kMost);
  const std::string line = environment + "\n";
  const auto at = text ? text->find(line) : std::string::npos;
  if (at == std::string::npos || (at != 0 && (*text)[at - 1] != '\n')) return;
  const auto written =
      write_file_atomically(file, text->substr(0, at) + text->substr(at + line.size()), info.st_mode & 07777);
  if (!written)
    report::progress_note(say("{} still lists {}: {}", file, environment, tr(written.error().message)));
}

// A new environment of these words. Settings of the user's may add packages to every new one; libmamba has
// no such setting. Newer condas keep a list of all environments, where the directory of ours would stay.
Result<void> run_create(const CondaRequest& request, const std::vector<std::string>& words) {
  std::vector<std::string> argv = {request.conda.program, "create", "--yes", "--quiet", "--prefix",
                                   request.environment};
  if (request.conda.kind == CondaProgram::Kind::Conda) argv.emplace_back("--no-default-packages");
  if (!request.offline.empty()) argv.emplace_back("--offline");
  argv.insert(argv.end(), words.begin(), words.end());
  const auto done =
      fix::run_installer({argv, {"PIP_USER=0", "CONDA_REGISTER_ENVS=false"}, "/", {}}, request.lock);
  if (request.conda.kind == CondaProgram::Kind::Libmamba) forget_environment(request.environment);
  return done ? fix::Interruption::check() : done;
}

// The channels by the names that the lock has, so that the user's own settings make URLs of them.
std::vector<std::string> pinned_words(const EnvironmentLock& lock) {
  std::vector<std::string> words = {"--override-channels"};
  for (const std::string& channel : channels_of(lock)) words.insert(words.end(), {"--channel", channel});
  for (const CondaPackage& one : packages_of_conda(lock))
    words.push_back(one.name + "=" + one.version + "=" + one.build);
  return words;
}

// A conda that failed may leave the directory, and would then ask whether it may be removed.
Result<void> create_again(const CondaRequest& request, const std::vector<std::string>& words) {
  std::error_code code;
  std::filesystem::remove_all(request.environment, code);
  if (code) return Error{Errc::Io, message("cannot remove {}: {}", request.environment, code.message()), ""};
  return run_create(request, words);
}

Result<void> create_locked(const CondaRequest& request, const EnvironmentLock& lock) {
  const std::string files = explicit_file(lock, request.offline);
  if (files.empty()) return run_create(request, pinned_words(lock));
  const std::string list = path_join(request.tools, "conda-packages.txt");
  SCANKIT_CHECK(write_file_atomically(list, files));
  const auto done = run_create(request, {"--file", list});
  if (done || !request.offline.empty()) return done;
  SCANKIT_CHECK(fix::Interruption::check());
  report::progress_note(say("not every package is at its URL in the lock: looking in the channels"));
  return create_again(request, pinned_words(lock));
}

// The hash of what conda downloaded, or else the one that it recorded: of a channel that knows no SHA-256, conda
// has compared the MD5 alone.
std::string package_sha256(const nlohmann::json& record) {
  const auto downloaded = sha256_file(json_text(record, "package_tarball_full_path"));
  return downloaded ? *downloaded : json_text(record, "sha256");
}

// The command that prints the user's settings, each with the file that it comes from.
std::string sources_of(const CondaProgram& conda) {
  const bool libmamba = conda.kind == CondaProgram::Kind::Libmamba;
  return shell_quoted(conda.program) + (libmamba ? " config sources" : " config --show-sources");
}

}  // namespace

std::vector<std::string> other_conda_packages(const Host& host, const std::string& environment,
                                              const EnvironmentLock& lock) {
  std::vector<std::string> lines;
  const std::vector<CondaPackage> here = conda_packages(host, environment);
  const std::vector<CondaPackage> locked = packages_of_conda(lock);
  for (const CondaPackage& one : here)
    if (one.channel != "pypi" && std::ranges::find(locked, one.name, &CondaPackage::name) == locked.end())
      lines.push_back(say("{}: it is not in the lock", one.name));
  for (const CondaPackage& one : locked) {
    const auto found = std::ranges::find(here, one.name, &CondaPackage::name);
    if (found == here.end() || found->version != one.version || found->build != one.build) {
      lines.push_back(say("{}: {} {} is locked, and {} was installed", one.name, one.version, one.build,
                          found == here.end() ? say("nothing") : found->version + " " + found->build));
      continue;
    }
    const std::string file = fmt::format("conda-meta/{}-{}-{}.json", one.name, one.version, one.build);
    const auto text = host.read_file(path_join(environment, file), 64u << 20);
    const std::string hash = package_sha256(parse_json_or_discard<nlohmann::json>(text ? *text : ""));
    if (!one.sha256.empty() && hash != one.sha256)
      lines.push_back(say("{}: its file has another sha256 than the lock says", one.name));
    else if (one.sha256.empty() && one.md5 != found->md5)
      lines.push_back(say("{}: its file has another MD5 than the lock says", one.name));
  }
  return lines;
}

Result<void> make_locked_conda(const CondaRequest& request, const EnvironmentLock& lock) {
  if (!came_from_conda(lock)) return run_create(request, {"python=" + lock.python.version, "pip"});
  SCANKIT_CHECK(create_locked(request, lock));
  const auto host = make_real_host();
  const auto lines = other_conda_packages(*host, request.environment, lock);
  if (lines.empty()) return {};
  return Error{Errc::Malformed,
               message("conda installed other packages than the locked ones: {}", first_lines(lines)),
               message("check the channels that it is configured for: {}", sources_of(request.conda))};
}

Result<void> make_resolved_conda(const CondaRequest& request, const VersionRange& python) {
  return run_create(request, {conda_python(python), "pip"});
}

}  // namespace scankit::envspec
