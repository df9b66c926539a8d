// SPDX-License-Identifier: Apache-2.0
#include "envspec/export/export.h"

namespace scankit {
namespace {

// A URL where it was installed from one. What was built here lies in the folder: pip and uv read a relative
// --find-links from the requirements file's own folder, and a relative path to a wheel from the current one.
std::string requirement(const LockedDistribution& one) {
  return one.name + "==" + one.version + " \\\n    --hash=sha256:" + one.artifact->sha256 + "\n";
}

}  // namespace

// pip's requirements file format, for --require-hashes: every line has its hash, none asks for more.
Exported export_requirements(const EnvironmentLock& lock) {
  const Installable all = installable(lock);
  Exported exported{"requirements.txt", "", all.left_out};
  for (const std::string& line : header_lines(lock)) exported.text += "# " + line + "\n";
  exported.text += "# pip install --no-deps --require-hashes -r requirements.txt\n";
  for (const std::string& line : all.left_out) exported.text += "# LEFT OUT " + line + "\n";
  exported.text += "--require-hashes\n";
  if (!built_here(lock).empty()) exported.text += std::string("--find-links ") + kWheelFolder + "\n";
  for (const LockedDistribution* one : all.with_hash) {
    if (one->source == "here")
      exported.text += "# " + std::string(kWheelFolder) + "/" + one->artifact->file + "\n";
    exported.text += requirement(*one);
  }
  return exported;
}

}  // namespace scankit
