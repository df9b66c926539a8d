// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "builder/cli/commands.h"
#include "builder/module/manifest.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {

int show_manifest(const std::string& path) {
  const auto manifest = read_manifest(path);
  if (!manifest) return complain("build", manifest.error(), kExitUsage);
  std::fputs(manifest->c_str(), stdout);
  if (const auto good = check_against_manifest(path, *manifest); !good)
    return complain("build", {Errc::Malformed, good.error().message, say("install the module anew")},
                    kExitFindings);
  return kExitClean;
}

}  // namespace scankit
