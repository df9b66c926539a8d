// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>

#include "ci/gate/gate.h"
#include "ci/gate/policy.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"
#include "doctor/host/host.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

// The templates are embedded in the executable (scankit_embed() in CMake makes the two symbols of each
// file); each macro makes a function that returns one of them.
#define TEMPLATE(name)                                                                          \
  extern "C" const char scankit_template_##name[];                                              \
  extern "C" const char scankit_template_##name##_end[];                                        \
  static std::string_view name() {                                                              \
    return {scankit_template_##name,                                                            \
            static_cast<std::size_t>(scankit_template_##name##_end - scankit_template_##name)}; \
  }
TEMPLATE(policy)
TEMPLATE(github)
TEMPLATE(gitlab)
TEMPLATE(jenkins)
TEMPLATE(grafana)
TEMPLATE(install_environment)
TEMPLATE(fetch_scankit)
TEMPLATE(pre_commit)
TEMPLATE(slurm_healthcheck)
TEMPLATE(kubernetes_probe)
TEMPLATE(npd)
TEMPLATE(npd_json)
TEMPLATE(issue_template)
#undef TEMPLATE

// `scankit ci init KIND`: writes files that run scankit in CI, under Slurm or in Kubernetes. A pipeline
// fetches a scankit whose hash is written into the file, since it runs with the permissions of the CI job.
namespace scankit::gate {
namespace {

bool is_url(const std::string& where) { return where.find("://") != std::string::npos; }

Error wrong(Message message, Message hint) {
  return {Errc::InvalidArgument, std::move(message), std::move(hint)};
}

// --sha256 in lower case; "" where it is not given.
Result<std::string> hash_option(std::string hash) {
  std::ranges::transform(hash, hash.begin(),
                         [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (hash.empty() || (hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos))
    return hash;
  return wrong(message("--sha256 needs 64 hexadecimal digits"), message("sha256sum FILE prints them"));
}

// The value goes into a YAML file and to a shell as a variable: one line, without control characters.
Result<void> check_form(const std::string& where) {
  const bool one_line =
      std::ranges::all_of(where, [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
  if (where.empty() || !one_line) return wrong(message("--scankit accepts a path or a URL on one line"), "");
  if (is_url(where) && !where.starts_with("https://") && !where.starts_with("http://"))
    return wrong(message("--scankit cannot fetch {}", where), message("use an https:// URL, or a path"));
  return {};
}

// A file that exists gives its own hash, so that a wrong --sha256 is reported here and not
// in the pipeline.
Result<ScankitSource> from_file(ScankitSource source, const CiInitOptions& options) {
  const std::string path =
      source.where.starts_with('/') ? source.where : path_join(options.out, source.where);
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (source.sha256.empty())
      return wrong(message("--scankit: {} not found", path),
                   message("put the program or its wheel there, or give its hash with --sha256"));
    return source;
  }
  if (!S_ISREG(status.st_mode)) return wrong(message("--scankit: {} is not a file", path), "");
  SCANKIT_TRY(const std::string hash, sha256_file(path));
  if (!source.sha256.empty() && source.sha256 != hash)
    return wrong(message("{} has the SHA-256 {}, not {}", path, hash, source.sha256),
                 message("give the right file or hash"));
  source.sha256 = hash;
  return source;
}

}  // namespace

Result<ScankitSource> scankit_source(const CiInitOptions& options) {
  ScankitSource source{.where = options.scankit.value_or(kCommittedScankit)};
  SCANKIT_CHECK(check_form(source.where));
  SCANKIT_TRY(source.sha256, hash_option(options.sha256));
  if (is_url(source.where)) {
    if (!source.sha256.empty()) return source;
    return wrong(message("--scankit with a URL needs --sha256"), message("sha256sum FILE prints it"));
  }
  // Without --scankit the user has to commit a copy of this program, unless one is there already.
  const bool default_place =
      !options.scankit && ::access(path_join(options.out, source.where).c_str(), F_OK) != 0;
  if (!default_place) return from_file(std::move(source), options);
  SCANKIT_TRY(const std::string program, own_program());
  SCANKIT_TRY(source.sha256, sha256_file(program));
  source.absent = true;
  return source;
}

// Single quotes: YAML then knows only one escape, the doubled quote.
std::string yaml_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

// Single quotes: Groovy then expands nothing, and a backslash escapes both characters that mean something.
std::string groovy_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return quoted + "'";
}

std::string with_script(std::string text, const std::string& name, std::string_view script) {
  const std::string place = "@" + name + "@\n";
  const std::size_t at = text.find(place);
  if (at == std::string::npos) return text;
  const std::size_t line = text.rfind('\n', at) + 1;
  const std::string indent = text.substr(line, at - line);
  // The license line and "#!" mean nothing inside a YAML block.
  while (script.starts_with('#')) script.remove_prefix(script.find('\n') + 1);
  std::string lines;
  for (std::size_t begin = 0; begin < script.size();) {
    const std::size_t end = std::min(script.find('\n', begin), script.size());
    lines += indent + std::string(script.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return text.replace(line, indent.size() + place.size(), lines);
}

// The order must be that of ci/templates/install-environment.sh.
std::string environment_file(const std::string& folder) {
  const auto entries = make_real_host()->list(folder);
  if (!entries) return "";
  const auto first = [&](const auto& matches) {
    std::string found;
    for (const DirEntry& entry : *entries)
      if (matches(entry.name) && (found.empty() || entry.name < found)) found = entry.name;
    return found;
  };
  for (const std::string wanted : {"uv.lock", "environment.yml", "environment.yaml", "requirements.txt",
                                   "requirements*.txt", "pyproject.toml", "setup.py"}) {
    const std::string found = first([&](const std::string& name) {
      if (wanted == "requirements*.txt") return name.starts_with("requirements") && name.ends_with(".txt");
      return name == wanted;
    });
    if (!found.empty()) return found;
  }
  return "";
}

namespace {

constexpr std::string_view kPolicySchemaFile = "scankit-ci.schema.json";

struct File {
  std::string_view path;
  std::string_view (*text)();
  unsigned mode = 0644;
};
struct Kind {
  std::string_view name;
  std::vector<File> files;
  bool policy = false;    // its run reads scankit-ci.yaml of the folder
  bool pipeline = false;  // it runs elsewhere, and has to fetch scankit and install the environment
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"policy", {}, true},
      {"github", {{".github/workflows/scankit.yml", github}}, true, true},
      {"gitlab", {{".gitlab-ci.yml", gitlab}}, true, true},
      {"jenkins", {{"Jenkinsfile", jenkins}}, true, true},
      {"pre-commit", {{".pre-commit-config.yaml", pre_commit}}, true},
      {"slurm-healthcheck", {{"scankit-healthcheck.sh", slurm_healthcheck, 0755}}},
      {"kubernetes-probe", {{"scankit-probe.yaml", kubernetes_probe}}},
      {"node-problem-detector", {{"scankit-npd.sh", npd, 0755}, {"scankit-npd.json", npd_json}}},
      {"grafana", {{"scankit-dashboard.json", grafana}}},
      {"issue-template", {{".github/ISSUE_TEMPLATE/installation.yml", issue_template}}},
  };
  return all;
}

// True for a dangling link too, and for a path that cannot be looked at: only a name that is certainly
// free is free.
bool is_there(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

std::string replaced(std::string text, const std::string& place, const std::string& by) {
  if (const auto at = text.find(place); at != std::string::npos) text.replace(at, place.size(), by);
  return text;
}

// Puts the scripts and values into a template. The image has the installer that the
// environment's file needs.
std::string filled(std::string text, const ScankitSource& source, const std::string& environment) {
  const bool conda = environment.starts_with("environment.");
  text = with_script(std::move(text), "INSTALL_ENVIRONMENT", install_environment());
  text = with_script(std::move(text), "FETCH_SCANKIT", fetch_scankit());
  text = replaced(std::move(text), "@SCANKIT@", yaml_quoted(source.where));
  text = replaced(std::move(text), "@SHA256@", yaml_quoted(source.sha256));
  text = replaced(std::move(text), "@GROOVY_SCANKIT@", groovy_quoted(source.where));
  text = replaced(std::move(text), "@GROOVY_SHA256@", groovy_quoted(source.sha256));
  return replaced(std::move(text), "@IMAGE@", conda ? "condaforge/miniforge3:latest" : "python:3.11");
}

struct Planned {
  std::string path, text;
  unsigned mode = 0644;
};

// The files to write. A policy that exists belongs to the user: only `init policy --force` overwrites it.
std::vector<Planned> planned(const Kind& kind, const CiInitOptions& options, const ScankitSource& source) {
  std::vector<Planned> files;
  for (const File& file : kind.files)
    files.push_back({path_join(options.out, file.path),
                     filled(std::string(file.text()), source, environment_file(options.out)), file.mode});
  const std::string rules = path_join(options.out, kPolicyFile);
  const bool asked = kind.name == "policy";
  if (!kind.policy || (!asked && is_there(rules))) return files;
  files.push_back({rules, std::string(policy())});
  files.push_back({path_join(options.out, kPolicySchemaFile), policy_schema()});
  return files;
}

// What the pipeline will install, and what the user has to commit before it can run.
void say_next_steps(const CiInitOptions& options, const ScankitSource& source) {
  const std::string environment = environment_file(options.out);
  const auto line = [](const std::string& text) { std::cout << report::plain(text, false) << "\n"; };
  line(environment.empty()
           ? say("no uv.lock, environment.yml, requirements*.txt, pyproject.toml or setup.py found in {}: "
                 "the pipeline fails until one exists",
                 options.out)
           : say("the pipeline installs the environment from {}", environment));
  if (!source.absent) return;
  const std::string folder = path_join(options.out, path_dirname(source.where));
  line(
      say("next, commit this scankit, whose hash the pipeline verifies (or choose another one with "
          "--scankit and --sha256):"));
  line("  mkdir -p " + shell_quoted(folder));
  line("  cp -f " + shell_quoted(own_program().value_or("scankit")) + " " +
       shell_quoted(path_join(options.out, source.where)));
  line("  git -C " + shell_quoted(options.out) + " add --force " + shell_quoted(source.where));
}

}  // namespace

const std::vector<std::string_view>& template_kinds() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Kind& kind : kinds()) out.push_back(kind.name);
    return out;
  }();
  return names;
}

int run_ci_init(const CiInitOptions& options) {
  const auto kind = std::ranges::find(kinds(), std::string_view(options.kind), &Kind::name);
  ScankitSource source;
  if (kind->pipeline) {
    auto told = scankit_source(options);
    if (!told) {
      cli::report_error(told.error());
      return cli::exit_status_of(told.error());
    }
    source = *std::move(told);
  } else if (options.scankit) {
    cli::report_error({Errc::InvalidArgument, message("--scankit is for github, gitlab and jenkins"),
                       message("the files that {} writes run the scankit on PATH", options.kind)});
    return kExitUsage;
  }
  const std::vector<Planned> files = planned(*kind, options, source);
  // All files or none: a mixture of old and new files would be neither.
  std::vector<std::string> there;
  for (const Planned& file : files)
    if (!options.force && is_there(file.path)) there.push_back(file.path);
  if (!there.empty()) {
    cli::report_error({Errc::Conflict, message("already exists, and nothing was written: {}", join(there)),
                       message("--force overwrites it, --out DIR writes to another directory")});
    return kExitUsage;
  }
  for (const Planned& file : files) {
    Result<void> written = make_directories(path_dirname(file.path));
    if (written) written = write_output(file.path, file.text, file.mode);
    if (!written) {
      cli::report_error(written.error());
      return cli::exit_status_of(written.error());
    }
    std::cout << report::plain(say("wrote {}", file.path), false) << "\n";
  }
  if (kind->pipeline) say_next_steps(options, source);
  return kExitClean;
}

}  // namespace scankit::gate
