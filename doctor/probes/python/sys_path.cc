// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/sys_path.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "doctor/base/files.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path_pth.h"

namespace scankit {
namespace {

// _Py_get_env_flag: "0" is off, any other number or text is on.
bool environment_flag(const Host& host, std::string_view name) {
  const auto value = host.env(name);
  return value && !value->empty() && (*value)[0] != '-' && value->find_first_not_of('0') != std::string::npos;
}

// os.path.expanduser("~") without getpwuid, in which a static program may die.
std::string home_folder(const Host& host) {
  if (auto home = host.env("HOME")) return *home;
  const auto users =
      host.is_live() ? host.read_file("/etc/passwd", 1u << 20) : Result<std::string>(std::string());
  if (!users) return {};
  const std::string uid = std::to_string(::getuid());
  for (const std::string_view line : lines_of(*users)) {
    std::vector<std::string_view> fields;
    for (std::size_t from = 0; from <= line.size();) {
      const auto end = std::min(line.find(':', from), line.size());
      fields.push_back(line.substr(from, end - from));
      from = end + 1;
    }
    if (fields.size() >= 6 && fields[2] == uid) return std::string(fields[5]);
  }
  return {};
}

// site.getusersitepackages; always "lib", also where the installation has lib64.
std::string user_site(const Host& host, const PythonLayout& layout) {
  std::string base = host.env("PYTHONUSERBASE").value_or("");
  if (base.empty()) {
    const std::string home = home_folder(host);
    if (home.empty()) return {};
    base = path_join(home, ".local");
  }
  return path_join(base, "lib/python" + layout.tag() + "/site-packages");
}

// site.getsitepackages for one prefix, as upstream or as Debian patched it.
std::vector<std::string> site_folders(const PythonLayout& layout, const std::string& prefix) {
  std::vector<std::string> libraries{layout.library_folder};
  if (layout.library_folder != "lib") libraries.emplace_back("lib");
  std::vector<std::string> folders;
  const std::string python = "/python" + layout.tag();
  if (!layout.debian() || layout.venv)
    for (const std::string& library : libraries)
      folders.push_back(path_join(prefix, library + python + "/site-packages"));
  if (!layout.debian()) return folders;
  folders.push_back(path_join(prefix, "local/lib/python" + layout.series() + "/dist-packages"));
  folders.push_back(path_join(prefix, "lib/python3/dist-packages"));
  for (const std::string& library : libraries)
    folders.push_back(path_join(prefix, library + "/python" + layout.series() + "/dist-packages"));
  return folders;
}

class SysPath {
 public:
  SysPath(const Host& host, const PythonLayout& layout, Python& python)
      : host_(host), layout_(layout), python_(python), pth_(host, layout.pth_rules()) {}

  void compute() {
    before_site();
    const std::string prefix = layout_.prefix();
    if (layout_.venv) add_site(prefix, "site");
    const bool system_site = !layout_.venv || layout_.venv->system_site;
    python_.user_site_enabled = system_site && !environment_flag(host_, "PYTHONNOUSERSITE");
    if (python_.user_site_enabled) {
      const std::string folder = user_site(host_, layout_);
      if (!folder.empty() && host_.is_directory(folder)) add_site_folder(folder, "user-site");
    }
    if (!layout_.venv) add_site(layout_.base_prefix, "site");
    if (layout_.venv && system_site) add_site(layout_.base_prefix, "system-site");
    if (system_site && layout_.exec_prefix != layout_.base_prefix)
      add_site(layout_.exec_prefix, layout_.venv ? "system-site" : "site");
    // -c puts "" in front when all of this is done; 3.11 and newer can be told not to.
    const bool safe = layout_.minor >= 11 && !host_.env("PYTHONSAFEPATH").value_or("").empty();
    const std::string current = working_directory(host_);
    if (!safe && !current.empty()) python_.sys_path.insert(python_.sys_path.begin(), {current, "cwd", true});
    python_.pth_code_lines = pth_.code_lines();
    python_.editable_finders = pth_.editable_finders();
  }

 private:
  // What getpath leaves, after site.removeduppaths: it need not exist.
  void before_site() {
    const std::string search = host_.env("PYTHONPATH").value_or("");
    for (std::size_t from = 0; !search.empty() && from <= search.size();) {
      const auto end = std::min(search.find(':', from), search.size());
      add_once(search.substr(from, end - from), "pythonpath");
      from = end + 1;
    }
    std::string zip = "python" + layout_.tag() + ".zip";
    zip.erase(zip.find('.'), 1);
    add_once(path_join(layout_.base_prefix, layout_.library_folder + "/" + zip), "stdlib");
    add_once(layout_.stdlib, "stdlib");
    add_once(layout_.dynload, "lib-dynload");
  }

  bool add_once(const std::string& path, const std::string& origin) {
    const std::string absolute = absolute_path(host_, path);
    if (!known_.insert(absolute).second) return false;
    python_.sys_path.push_back({absolute, origin, host_.exists(absolute)});
    return true;
  }

  void add_site(const std::string& prefix, const std::string& origin) {
    for (const std::string& folder : site_folders(layout_, prefix))
      if (host_.is_directory(folder)) add_site_folder(folder, origin);
  }

  // site.addsitedir: the folder first, then its .pth files by name. A folder that comes a second time has its
  // .pth files read again, which adds nothing; we do not.
  void add_site_folder(const std::string& folder, const std::string& origin) {
    const std::string absolute = absolute_path(host_, folder);
    add_once(absolute, origin);
    if (!processed_.insert(absolute).second) return;
    for (const PthLine& line : pth_.read_folder(absolute))
      if (host_.exists(line.path)) add_once(line.path, "pth:" + line.file);
  }

  const Host& host_;
  const PythonLayout& layout_;
  Python& python_;
  PthReader pth_;
  std::set<std::string> known_, processed_;
};

}  // namespace

void compute_sys_path(const Host& host, const PythonLayout& layout, Python& python) {
  SysPath(host, layout, python).compute();
}

std::vector<std::string> unreadable_site_folders(const Host& host, const Python& python) {
  std::vector<std::string> folders;
  for (const PathEntry& entry : python.sys_path) {
    const bool site = entry.origin == "site" || entry.origin == "user-site" || entry.origin == "system-site";
    if (!site) continue;
    const auto entries = host.list(entry.path);
    if (!entries && entries.error().code != Errc::NotFound) folders.push_back(entries.error().message);
  }
  return folders;
}

}  // namespace scankit
