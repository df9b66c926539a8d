// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

struct CiInitOptions;

// The scankit that a pipeline fetches: a path or a URL with a hash, never a name that an index resolves,
// since anybody could publish a package of that name.
struct ScankitSource {
  std::string where;    // a URL, or a path in the repository (or an absolute one, on the runner)
  std::string sha256;   // the only bytes that the pipeline installs or runs
  bool absent = false;  // a path at which the user has yet to put this program
};
inline constexpr const char* kCommittedScankit = ".scankit/scankit";

// What --scankit and --sha256 say; without --scankit, a copy of this program at kCommittedScankit.
Result<ScankitSource> scankit_source(const CiInitOptions& options);

// `text` as a scalar of YAML on one line.
std::string yaml_quoted(const std::string& text);
// Every line of a script, without the comments at its top, in the place of "@NAME@" on a line of its own and
// as far to the right as that.
std::string with_script(std::string text, const std::string& name, std::string_view script);

// The file that install-environment.sh will install from in this folder, in its order; "" for none.
std::string environment_file(const std::string& folder);

// `scankit ci init KIND`: files to start from, out of ci/templates.
const std::vector<std::string_view>& template_kinds();

struct CiInitOptions {
  std::string kind;
  std::string out = ".";               // the folder they are written into
  bool force = false;                  // over files that are there; a policy that is there stays
  std::optional<std::string> scankit;  // of a pipeline: the program or its wheel, a path or a URL
  std::string sha256;                  // of that file; "": it is read, where it is there
};
int run_ci_init(const CiInitOptions& options);

}  // namespace scankit
