// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/init.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>

#include "ci/gate/init_source.h"
#include "ci/gate/plan.h"
#include "ci/gate/policy.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/report/plain.h"
#include "doctor/report/words.h"

// What scankit_embed() put into the program.
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
TEMPLATE(install_environment)
TEMPLATE(fetch_scankit)
TEMPLATE(pre_commit)
TEMPLATE(slurm_healthcheck)
TEMPLATE(kubernetes_probe)
TEMPLATE(npd)
TEMPLATE(npd_json)
#undef TEMPLATE

namespace scankit {
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
      {"pre-commit", {{".pre-commit-config.yaml", pre_commit}}, true},
      {"slurm-healthcheck", {{"scankit-healthcheck.sh", slurm_healthcheck, 0755}}},
      {"kubernetes-probe", {{"scankit-probe.yaml", kubernetes_probe}}},
      {"node-problem-detector", {{"scankit-npd.sh", npd, 0755}, {"scankit-npd.json", npd_json}}},
  };
  return all;
}

// Also of a link that leads nowhere: writing would put something in its place.
bool is_there(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

std::string replaced(std::string text, const std::string& place, const std::string& by) {
  if (const auto at = text.find(place); at != std::string::npos) text.replace(at, place.size(), by);
  return text;
}

// The image is the one with an installer for what the environment is made from.
std::string filled(std::string text, const ScankitSource& source, const std::string& environment) {
  const bool conda = environment.starts_with("environment.");
  text = with_script(std::move(text), "INSTALL_ENVIRONMENT", install_environment());
  text = with_script(std::move(text), "FETCH_SCANKIT", fetch_scankit());
  text = replaced(std::move(text), "@SCANKIT@", yaml_quoted(source.where));
  text = replaced(std::move(text), "@SHA256@", yaml_quoted(source.sha256));
  return replaced(std::move(text), "@IMAGE@", conda ? "condaforge/miniforge3:latest" : "python:3.11");
}

struct Planned {
  std::string path, text;
  unsigned mode = 0644;
};

// The policy is the user's own once it is there: only `init policy --force` writes over it.
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

// What the pipeline will install, and what the user has to do before it can run.
void say_next_steps(const CiInitOptions& options, const ScankitSource& source) {
  const std::string environment = environment_file(options.out);
  const auto line = [](const std::string& text) { std::cout << plain(text, false) << "\n"; };
  line(environment.empty()
           ? say("no uv.lock, environment.yml, requirements*.txt, pyproject.toml or setup.py found in {}: "
                 "the pipeline fails until there is one",
                 options.out)
           : say("the pipeline installs the environment from {}", environment));
  if (!source.absent) return;
  const std::string folder = path_join(options.out, path_dirname(source.where));
  line(
      say("next, commit this scankit, whose hash the pipeline verifies (or name another one with --scankit "
          "and --sha256):"));
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
      complain(told.error());
      return exit_status_of(told.error());
    }
    source = *std::move(told);
  } else if (options.scankit) {
    complain({Errc::InvalidArgument, say("--scankit is for github and gitlab"),
              say("what {} writes runs the scankit on the PATH", options.kind)});
    return kExitUsage;
  }
  const std::vector<Planned> files = planned(*kind, options, source);
  // All or none: half a set would be neither the old one nor the new.
  std::vector<std::string> there;
  for (const Planned& file : files)
    if (!options.force && is_there(file.path)) there.push_back(file.path);
  if (!there.empty()) {
    complain({Errc::Conflict, say("is there already, and nothing was written: {}", joined(there)),
              say("--force writes over it, --out DIR writes elsewhere")});
    return kExitUsage;
  }
  for (const Planned& file : files) {
    Result<void> written = make_directories(path_dirname(file.path));
    if (written) written = write_output(file.path, file.text, file.mode);
    if (!written) {
      complain(written.error());
      return exit_status_of(written.error());
    }
    std::cout << plain(say("wrote {}", file.path), false) << "\n";
  }
  if (kind->pipeline) say_next_steps(options, source);
  return kExitClean;
}

}  // namespace scankit
