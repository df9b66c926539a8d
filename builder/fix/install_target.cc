// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/install_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "builder/compile/build.h"
#include "builder/fix/distribution.h"
#include "builder/fix/execute.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"

namespace scankit::fix {
namespace {

// The first entry of that origin: site-packages, or Debian's dist-packages.
const PathEntry* path_entry_of(const Python& python, const std::string& origin) {
  for (const PathEntry& entry : python.sys_path)
    if (entry.origin == origin && entry.path.ends_with("-packages")) return &entry;
  return nullptr;
}

// By the effective user, whose rights the process acts with; access(2) asks for the real user.
bool may_write(const std::string& path) { return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0; }

std::string managed_by_the_system(const Python& python) {
  return say("{} is managed by the operating system's package manager (EXTERNALLY-MANAGED)", python.prefix);
}

// The environment's own site-packages. Sets `unusable` to the reason if it cannot be used.
Result<InstallTarget> own_site(const Python& python, std::string& unusable) {
  const PathEntry* site = path_entry_of(python, "site");
  if (python.externally_managed) unusable = managed_by_the_system(python);
  if (site == nullptr && unusable.empty())
    return Error{Errc::NotFound,
                 message("no site-packages directory on the path of {}", interpreter_of(python)),
                 message("use --target DIR")};
  if (!unusable.empty()) return InstallTarget{};
  for (const std::string& path : {compile::existing_part(site->path), compile::existing_part(python.prefix)})
    if (unusable.empty() && !may_write(path))
      unusable = say("cannot write to {}: {}", path, std::strerror(errno));
  return InstallTarget{python.prefix, site->path, ""};
}

// site.py's rule on Linux: $PYTHONUSERBASE or ~/.local, and below it lib/pythonX.Y/site-packages.
Result<InstallTarget> user_site(const Host& host, const Python& python) {
  if (!python.user_site_enabled)
    return Error{Errc::Unsupported,
                 message("this Python does not use the user site (a venv, or PYTHONNOUSERSITE)"),
                 message("omit --target: scankit then chooses a suitable directory")};
  std::string base = host.env("PYTHONUSERBASE").value_or("");
  const std::string home = host.env("HOME").value_or("");
  if (base.empty() && !home.empty()) base = home + "/.local";
  if (!base.starts_with('/'))
    return Error{Errc::InvalidArgument, message("--target user: HOME is not set"),
                 message("use --target DIR")};
  const std::string minor = python.version.substr(0, python.version.find('.', python.version.find('.') + 1));
  return InstallTarget{
      .base = base, .site = base + "/lib/python" + minor + "/site-packages", .elsewhere = true};
}

// A directory that the user named. `how_to_reach` is set if this Python does not look there.
InstallTarget folder(const Host& host, const Python& python, const std::string& target) {
  const std::string path = path_normalize(path_join(current_directory(), target));
  InstallTarget place{.base = path, .site = path, .elsewhere = true};
  for (const PathEntry& entry : python.sys_path)
    if (entry.path == path) return place;
  const std::string shell = path_basename(host.env("SHELL").value_or(""));
  place.how_to_reach = path_line(shell, path);
  place.for_good = start_line(shell, place.how_to_reach);
  return place;
}

// One directory for each environment: ~/.local/share/scankit/envs/NAME-HASH (XDG base directories). The name
// is for people, and the hash of the whole path and of the ABI distinguishes environments of the same name.
Result<InstallTarget> folder_for(const Host& host, const Python& python) {
  std::string data = host.env("XDG_DATA_HOME").value_or("");
  const std::string home = host.env("HOME").value_or("");
  if (!data.starts_with('/') && home.starts_with('/')) data = home + "/.local/share";
  if (!data.starts_with('/'))
    return Error{Errc::InvalidArgument, message("neither XDG_DATA_HOME nor HOME is set"),
                 message("use --target DIR")};
  constexpr std::size_t kDigits = 8;
  std::string name = path_basename(python.prefix);
  // ".venv" of "project" says less than "project".
  if (name == ".venv" || name == "venv") name = path_basename(path_dirname(python.prefix));
  return folder(host, python,
                data + "/scankit/envs/" + name + "-" +
                    sha256_hex(python.prefix + "\n" + python.soabi).substr(0, kDigits));
}

}  // namespace

std::string interpreter_of(const Python& python) {
  for (const char* name : {"/bin/python", "/bin/python3"})
    if (const std::string path = python.prefix + name; ::access(path.c_str(), X_OK) == 0) return path;
  return python.requested.empty() ? python.executable : python.requested;
}

Result<InstallTarget> choose_place(const Host& host, const Python& python, const std::string& target) {
  if (target == "user") return user_site(host, python);
  if (!target.empty()) return folder(host, python, target);
  std::string unusable;
  SCANKIT_TRY(InstallTarget own, own_site(python, unusable));
  if (unusable.empty()) return own;
  SCANKIT_TRY(InstallTarget place,
              python.user_site_enabled ? user_site(host, python) : folder_for(host, python));
  place.why = unusable;
  return place;
}

std::string path_line(const std::string& shell, const std::string& folder) {
  const bool fish = shell == "fish";
  std::string line(fish ? "set -gx PYTHONPATH " : "export PYTHONPATH=");
  line.append(shell_quoted(folder)).append(fish ? " $PYTHONPATH" : "${PYTHONPATH:+:$PYTHONPATH}");
  return line;
}

std::string start_line(const std::string& shell, const std::string& line) {
  std::string file("~/.profile"), command("echo ");
  if (shell == "bash") file = "~/.bashrc";
  if (shell == "zsh") file = "\"${ZDOTDIR:-$HOME}\"/.zshrc";
  if (shell == "fish") file = "~/.config/fish/config.fish";
  return command.append(shell_quoted(line)).append(" >> ").append(file);
}

Error foreign_place(const probes::ForeignCode& foreign) {
  return {Errc::PermissionDenied,
          message("{} belongs to user {}, and verifying a fix would run that user's code as root",
                  foreign.path, foreign.uid),
          message("run scankit fix as that user")};
}

Error foreign_journal(const probes::ForeignCode& foreign) {
  return {Errc::PermissionDenied,
          message("{} belongs to user {}, and its contents would make root move files", foreign.path,
                  foreign.uid),
          message("run scankit as that user")};
}

Result<void> check_place(const InstallTarget& place) {
  const std::string site = compile::existing_part(place.site), base = compile::existing_part(place.base);
  // Both may not exist yet; the deepest directory that does exist decides.
  struct stat site_info, base_info;
  if (::stat(site.c_str(), &site_info) != 0 || ::stat(base.c_str(), &base_info) != 0)
    return Error{Errc::Io, message("cannot access {}: {}", site, std::strerror(errno)), ""};
  if (!S_ISDIR(site_info.st_mode))
    return Error{Errc::InvalidArgument, message("{} is not a directory", site), ""};
  for (const std::string& path : {site, base})
    if (!may_write(path))
      return Error{Errc::PermissionDenied, message("cannot write to {}: {}", path, std::strerror(errno)),
                   message("choose another directory with --target DIR")};
  if (::geteuid() == 0 && site_info.st_uid != 0) return foreign_place({site, site_info.st_uid});
  if (site_info.st_dev != base_info.st_dev)
    return Error{Errc::Unsupported,
                 message("{} and {} are on different file systems, so files cannot be renamed between them",
                         site, base),
                 message("use --target DIR")};
  return {};
}

Result<void> may_move(const Host& host, const std::string& file) {
  const std::string folder = path_dirname(file);
  if (!may_write(folder))
    return Error{Errc::PermissionDenied, message("cannot move {} away: {}", file, std::strerror(errno)),
                 message("it hides the module: move it away yourself, then run scankit fix again")};
  if (const auto foreign = probes::foreign_to_root(host, folder))
    return Error{Errc::PermissionDenied,
                 message("{} hides the module and belongs to user {}", file, foreign->uid),
                 message("run scankit fix as that user")};
  return {};
}

std::string wheel_bytes(const compile::BuiltModule& built) {
  std::vector<InstalledFile> files = {{built.file, built.bytes}};
  for (InstalledFile& file : wheel_info_files(built)) files.push_back(std::move(file));
  return stored_zip(files);
}

std::string project_wheel(const std::string& project, const compile::BuiltModule& built) {
  return path_join(project, ".scankit/wheels/" + distribution_stem(built.module) + "-" + kToolVersion + "-" +
                                wheel_tag(built) + ".whl");
}

void add_to_project(const installer::Installer& uv, const std::string& project,
                    const std::vector<std::string>& wheels, int lock, std::vector<std::string>& notes) {
  installer::InstallerCommand command;
  command.argv = uv.program;
  command.folder = project;
  // --no-sync: the environment has the module already, and uv must not put back what the fix took away.
  for (const char* word : {"add", "--no-sync"}) command.argv.emplace_back(word);
  // As the user would write it: the entry then holds on every machine that has the project.
  for (const std::string& wheel : wheels) command.argv.push_back("./" + wheel.substr(project.size() + 1));
  if (run_installer(command, lock)) return;
  // Locking needs the package index, and the entry alone does not: --frozen leaves uv.lock out.
  command.argv.insert(command.argv.begin() + static_cast<std::ptrdiff_t>(uv.program.size()) + 1, "--frozen");
  if (run_installer(command, lock)) {
    notes.push_back(say("{} now lists the module, but uv.lock could not be updated: run `uv lock`",
                        path_join(project, "pyproject.toml")));
    return;
  }
  notes.push_back(
      say("uv could not add the module to {}: the next `uv sync` will remove it from the environment; run "
          "scankit fix after it",
          path_join(project, "pyproject.toml")));
}

}  // namespace scankit::fix
