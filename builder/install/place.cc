// SPDX-License-Identifier: Apache-2.0
#include "builder/install/place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

std::string elsewhere() {
  return say("install elsewhere with --target user (your user site) or --target DIR");
}

const PathEntry* entry_of(const Python& python, const std::string& origin) {
  for (const PathEntry& entry : python.sys_path)
    if (entry.origin == origin && entry.path.ends_with("-packages")) return &entry;
  return nullptr;
}

Result<InstallPlace> own_site(const Python& python) {
  if (python.externally_managed)
    return Error{
        Errc::PermissionDenied,
        say("{} is managed by the operating system's package manager (EXTERNALLY-MANAGED)", python.prefix),
        say("use a venv, or install elsewhere with --target user (your user site) or --target DIR")};
  const PathEntry* site = entry_of(python, "site");
  if (site == nullptr)
    return Error{Errc::NotFound, say("no site-packages folder on the path of {}", interpreter_of(python)),
                 elsewhere()};
  return InstallPlace{python.prefix, site->path, ""};
}

Result<InstallPlace> user_site(const Host& host, const Python& python) {
  if (!python.user_site_enabled)
    return Error{Errc::Unsupported,
                 say("this Python does not use the user site (a venv, or PYTHONNOUSERSITE)"),
                 say("install into the environment itself, or with --target DIR")};
  std::string base = host.env("PYTHONUSERBASE").value_or("");
  if (base.empty()) base = host.env("HOME").value_or("") + "/.local";
  if (base[0] != '/')
    return Error{Errc::InvalidArgument, say("--target user: HOME is not set"), say("use --target DIR")};
  const std::string minor = python.version.substr(0, python.version.find('.', python.version.find('.') + 1));
  return InstallPlace{base, base + "/lib/python" + minor + "/site-packages", ""};
}

InstallPlace folder(const Python& python, const std::string& target) {
  const std::string path = path_normalize(path_join(current_directory(), target));
  for (const PathEntry& entry : python.sys_path)
    if (entry.path == path) return {path, path, ""};
  std::string command("export PYTHONPATH=");
  command += path;
  command += "${PYTHONPATH:+:$PYTHONPATH}";
  return {path, path, std::move(command)};
}

// The deepest folder of the path that exists: what decides whether the rest can be made.
std::string existing_part(std::string path) {
  struct stat info;
  while (path.size() > 1 && ::stat(path.c_str(), &info) != 0) path = path_dirname(path);
  return path;
}

}  // namespace

std::string interpreter_of(const Python& python) {
  for (const char* name : {"/bin/python", "/bin/python3"})
    if (const std::string path = python.prefix + name; ::access(path.c_str(), X_OK) == 0) return path;
  return python.requested.empty() ? python.executable : python.requested;
}

Result<InstallPlace> choose_place(const Host& host, const Python& python, const std::string& target) {
  if (target.empty()) return own_site(python);
  if (target == "user") return user_site(host, python);
  return folder(python, target);
}

Error foreign_place(const ForeignCode& foreign) {
  return {Errc::PermissionDenied,
          say("{} belongs to user {}, and verifying a fix would run that user's code as root", foreign.path,
              foreign.uid),
          say("run scankit fix as that user")};
}

Error foreign_journal(const ForeignCode& foreign) {
  return {Errc::PermissionDenied,
          say("{} belongs to user {}, and what that user wrote there would move files as root", foreign.path,
              foreign.uid),
          say("run scankit as that user")};
}

Result<void> check_place(const InstallPlace& place) {
  const std::string site = existing_part(place.site), base = existing_part(place.base);
  struct stat site_info, base_info;
  if (::stat(site.c_str(), &site_info) != 0 || ::stat(base.c_str(), &base_info) != 0)
    return Error{Errc::Io, say("cannot look at {}: {}", site, std::strerror(errno)), ""};
  if (!S_ISDIR(site_info.st_mode)) return Error{Errc::InvalidArgument, say("{} is no folder", site), ""};
  for (const std::string& path : {site, base})
    if (::access(path.c_str(), W_OK) != 0)
      return Error{Errc::PermissionDenied, say("cannot write to {}: {}", path, std::strerror(errno)),
                   elsewhere()};
  if (::geteuid() == 0 && site_info.st_uid != 0) return foreign_place({site, site_info.st_uid});
  if (site_info.st_dev != base_info.st_dev)
    return Error{Errc::Unsupported,
                 say("{} and {} lie on different file systems, so that nothing can be renamed between them",
                     site, base),
                 say("use --target DIR")};
  return {};
}

Result<void> may_move(const Host& host, const std::string& file) {
  const std::string folder = path_dirname(file);
  if (::access(folder.c_str(), W_OK) != 0)
    return Error{Errc::PermissionDenied, say("cannot move {} away: {}", file, std::strerror(errno)),
                 say("it hides the module: move it away yourself, then run scankit fix again")};
  if (const auto foreign = foreign_to_root(host, folder))
    return Error{Errc::PermissionDenied,
                 say("{} hides the module and belongs to user {}", file, foreign->uid),
                 say("run scankit fix as that user")};
  return {};
}

}  // namespace scankit
