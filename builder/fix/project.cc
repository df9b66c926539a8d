// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/project.h"

#include "builder/fix/distribution.h"
#include "builder/fix/run_installer.h"
#include "builder/fix/stored_zip.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"

namespace scankit {

std::string wheel_bytes(const BuiltModule& built) {
  std::vector<InstalledFile> files = {{built.file, built.bytes}};
  for (InstalledFile& file : wheel_info_files(built)) files.push_back(std::move(file));
  return stored_zip(files);
}

std::string project_wheel(const std::string& project, const BuiltModule& built) {
  return path_join(project, ".scankit/wheels/" + distribution_stem(built.module) + "-" + kToolVersion + "-" +
                                wheel_tag(built) + ".whl");
}

void add_to_project(const Installer& uv, const std::string& project, const std::vector<std::string>& wheels,
                    int lock, std::vector<std::string>& notes) {
  InstallerCommand command;
  command.argv = uv.program;
  command.folder = project;
  // --no-sync: the environment has the module already, and uv must not put back what the fix took away.
  for (const char* word : {"add", "--no-sync"}) command.argv.emplace_back(word);
  // As the user would write it: the entry then holds on every machine that has the project.
  for (const std::string& wheel : wheels) command.argv.push_back("./" + wheel.substr(project.size() + 1));
  if (run_installer(command, lock)) return;
  // The lock needs the index, the entry does not.
  command.argv.insert(command.argv.begin() + static_cast<std::ptrdiff_t>(uv.program.size()) + 1, "--frozen");
  if (run_installer(command, lock)) {
    notes.push_back(say("{} names the module now, but uv.lock could not be brought up to it: run `uv lock`",
                        path_join(project, "pyproject.toml")));
    return;
  }
  notes.push_back(
      say("uv did not take the module into {}: the next `uv sync` will take it out of the "
          "environment; run scankit fix after it",
          path_join(project, "pyproject.toml")));
}

}  // namespace scankit
