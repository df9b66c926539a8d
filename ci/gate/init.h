// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

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
