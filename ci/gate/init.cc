// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/init.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>

#include "ci/gate/policy.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
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
  bool policy = false;  // its run reads scankit-ci.yaml of the folder
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"policy", {}, true},
      {"github", {{".github/workflows/scankit.yml", github}}, true},
      {"gitlab", {{".gitlab-ci.yml", gitlab}}, true},
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

std::string with_version(std::string_view text) {
  constexpr std::string_view kPlace = "@VERSION@";
  std::string out(text);
  if (const auto at = out.find(kPlace); at != std::string::npos) out.replace(at, kPlace.size(), kToolVersion);
  return out;
}

struct Planned {
  std::string path, text;
  unsigned mode = 0644;
};

// The policy is the user's own once it is there: only `init policy --force` writes over it.
std::vector<Planned> planned(const Kind& kind, const CiInitOptions& options) {
  std::vector<Planned> files;
  for (const File& file : kind.files)
    files.push_back({path_join(options.out, file.path), with_version(file.text()), file.mode});
  const std::string rules = path_join(options.out, kPolicyFile);
  const bool asked = kind.name == "policy";
  if (!kind.policy || (!asked && is_there(rules))) return files;
  files.push_back({rules, std::string(policy())});
  files.push_back({path_join(options.out, kPolicySchemaFile), policy_schema()});
  return files;
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
  const std::vector<Planned> files = planned(*kind, options);
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
    if (written) written = write_file_atomically(file.path, file.text, file.mode);
    if (!written) {
      complain(written.error());
      return exit_status_of(written.error());
    }
    std::cout << plain(say("wrote {}", file.path), false) << "\n";
  }
  return kExitClean;
}

}  // namespace scankit
