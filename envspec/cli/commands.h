// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/cli/reports.h"
#include "envspec/check/facts.h"

namespace CLI {
class Option;
}

// What the parsed command lines do; cli.cc parses.
namespace scankit {

// --python, --root, --from, of which each command takes what it can use.
void add_subject_options(CLI::App& command, SubjectOptions& options);

struct EnvInitOptions {
  SubjectOptions subject;
  std::string out;  // "": ./scankit.yaml; "-": standard output
  bool force = false;
};
int run_env_init(const EnvInitOptions& options);

struct EnvCheckOptions {
  SubjectOptions subject;
  std::string spec;  // "": ./scankit.yaml
  std::string lock;  // "": ./scankit.lock, where it is there
  std::string cache_dir;
  bool redact = false;
  ShowOptions show;
};
int run_env_check(const EnvCheckOptions& options);

struct EnvDiffOptions {
  std::string left, right;
  std::string cache_dir;
  bool json = false, redact = false;
};
int run_env_diff(const EnvDiffOptions& options);

int run_env_schema();

}  // namespace scankit
