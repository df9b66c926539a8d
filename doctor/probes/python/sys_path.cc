// SPDX-License-Identifier: Apache-2.0
// Four parts: .pth files and editable finders, the import of a top-level name, the directories that site.py
// adds, and SysPath, which puts them in order. All text comes from files that a stranger may have written,
// so each reader has a bound.
#include "doctor/probes/python/sys_path.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::probes {
namespace {

// An easy-install.pth of years has a hundred lines. What is longer than this is somebody's accident, and
// reading it would cost the diagnosis its time.
constexpr std::size_t kLongestPth = 1u << 20;
// Lines of one directory, code lines of one interpreter, and bytes of a code line that are stored.
constexpr std::size_t kMostLines = 20000, kMostCodeLines = 200, kLongestCodeLine = 400;

void skip_blanks(std::string_view text, std::size_t& at) {
  at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

// 'key': 'value' pairs from the opening brace at text[at] to its end. Stops at the first key or value that
// is not a plain literal; the pairs before it count.
void read_dict(std::string_view text, std::size_t at, const std::string& file,
               std::vector<EditableMapping>& into) {
  ++at;
  while (into.size() < 1000) {
    skip_blanks(text, at);
    const auto key = python_string_literal(text, at);
    if (!key) return;
    skip_blanks(text, at);
    if (at >= text.size() || text[at] != ':') return;
    skip_blanks(text, ++at);
    const auto value = python_string_literal(text, at);
    if (!value) return;
    into.push_back({file, *key, *value});
    skip_blanks(text, at);
    if (at >= text.size() || text[at] != ',') return;
    ++at;
  }
}

}  // namespace

std::vector<EditableMapping> mappings_of_finder(std::string_view source, const std::string& file) {
  std::vector<EditableMapping> mappings;
  for (auto at = source.find("MAPPING"); at != std::string_view::npos; at = source.find("MAPPING", at + 1)) {
    // Not in a comment or an indented line: setuptools assigns MAPPING at the top level of its finder.
    const bool starts_line = at == 0 || source[at - 1] == '\n';
    const auto equals = source.find('=', at);
    const auto end = source.find('\n', at);
    if (!starts_line || equals == std::string_view::npos || equals > end) continue;
    std::size_t value = equals + 1;
    skip_blanks(source, value);
    if (value < source.size() && source[value] == '{') read_dict(source, value, file, mappings);
  }
  constexpr std::string_view kMap = ".map_module(";
  for (auto at = source.find(kMap); at != std::string_view::npos; at = source.find(kMap, at + 1)) {
    std::size_t value = at + kMap.size();
    const auto package = python_string_literal(source, value);
    if (!package || value >= source.size() || source[value] != ',') continue;
    skip_blanks(source, ++value);
    if (auto folder = python_string_literal(source, value)) {
      if (folder->ends_with("/__init__.py")) folder->erase(folder->size() - 12);
      mappings.push_back({file, *package, *folder});
    }
  }
  return mappings;
}

// host_.list() sorts by name, and so does site.addsitedir: the order decides which path comes first.
std::vector<PthLine> PthReader::read_folder(const std::string& folder) {
  std::vector<PthLine> lines;
  const auto entries = host_.list(folder);
  if (!entries) return lines;
  for (const DirEntry& entry : *entries) {
    if (!entry.name.ends_with(".pth") || (rules_.skips_hidden && entry.name.starts_with('.'))) continue;
    read_file(folder, entry.name, lines);
  }
  return lines;
}

void PthReader::read_file(const std::string& folder, const std::string& name, std::vector<PthLine>& lines) {
  const std::string file = path_join(folder, name);
  const auto text = host_.read_file(file, kLongestPth);
  if (!text) {
    if (text.error().code == Errc::Unsupported)
      code_lines_.push_back(english(message("{}: not read: {}", file, text.error().message)));
    return;  // site.py goes on without it, too
  }
  std::string_view rest = *text;
  if (rules_.drops_mark && rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  for (std::string_view line : lines_of(rest)) {
    if (line.starts_with('#') || trimmed(line).empty()) continue;
    if (line.starts_with("import ") || line.starts_with("import\t")) {
      note_code(folder, file, line);
      continue;
    }
    // os.stat of a name with a NUL raises, and addpackage leaves the rest of the file unread.
    if (line.find('\0') != std::string_view::npos || lines.size() >= kMostLines) return;
    while (!line.empty() && trimmed(line.substr(line.size() - 1)).empty()) line.remove_suffix(1);
    const std::string path = line.starts_with('/') ? std::string(line) : path_join(folder, line);
    lines.push_back({file, path_normalize(path)});
  }
}

// Records the line, which is shown but never run. Where it imports a module that an editable install has
// generated, that module is read for the directories that it maps.
void PthReader::note_code(const std::string& folder, const std::string& file, std::string_view line) {
  if (code_lines_.size() < kMostCodeLines)
    code_lines_.push_back(file + ": " + printable(line.substr(0, kLongestCodeLine)));
  std::string_view module = trimmed(line.substr(6));
  const auto end = std::ranges::find_if_not(module, is_identifier_char);
  module = module.substr(0, static_cast<std::size_t>(end - module.begin()));
  const bool finder = module.starts_with("__editable__") || module.starts_with("_editable_impl_") ||
                      module.starts_with("__editables_");
  if (!finder) return;
  const std::string source_file = path_join(folder, std::string(module) + ".py");
  const auto source = host_.read_file(source_file, kLongestPth);
  if (!source) return;
  for (const EditableMapping& mapping : mappings_of_finder(*source, source_file)) {
    std::string text = to_text(mapping);
    if (std::ranges::find(finders_, text) == finders_.end()) finders_.push_back(std::move(text));
  }
}

namespace {

constexpr std::string_view kArrow = " -> ";

// One directory of sys.path, in the order of importlib's FileFinder: package, extension suffixes, source. A
// module of which only the bytecode (NAME.pyc) is installed is not seen.
std::optional<FoundModule> look_in(const Host& host, const Python& python, const std::string& folder,
                                   const std::string& name) {
  const std::string path = path_join(folder, name);
  if (host.is_directory(path)) {
    if (is_regular_file(host, path_join(path, "__init__.py"))) return FoundModule{path, true, false, -1};
    for (const std::string& suffix : python.extension_suffixes)
      if (is_regular_file(host, path_join(path, "__init__" + suffix)))
        return FoundModule{path, true, false, -1};
  }
  for (const std::string& suffix : python.extension_suffixes)
    if (is_regular_file(host, path + suffix)) return FoundModule{path + suffix, false, false, -1};
  if (is_regular_file(host, path + ".py")) return FoundModule{path + ".py", false, false, -1};
  return std::nullopt;
}

// The mappings of editable finders. setuptools appends its finder to sys.meta_path, behind the one that
// searches sys.path, so that this comes second.
std::optional<FoundModule> look_in_finders(const Host& host, const Python& python, const std::string& name) {
  for (const std::string& text : python.editable_finders) {
    const auto mapping = editable_mapping(text);
    if (!mapping || mapping->package != name) continue;
    if (is_regular_file(host, mapping->folder)) return FoundModule{mapping->folder, false, false, -1};
    if (is_regular_file(host, mapping->folder + ".py"))
      return FoundModule{mapping->folder + ".py", false, false, -1};
    if (is_regular_file(host, path_join(mapping->folder, "__init__.py")))
      return FoundModule{mapping->folder, true, false, -1};
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundModule> find_python_module(const Host& host, const Python& python,
                                              const std::string& name) {
  // PEP 420: a directory without __init__ becomes a namespace package only where no later entry of the path
  // has a regular package or module of that name. So the search goes on behind it.
  std::optional<FoundModule> leftover;
  for (std::size_t i = 0; i < python.sys_path.size(); ++i) {
    const PathEntry& entry = python.sys_path[i];
    if (!entry.exists) continue;
    auto found = look_in(host, python, entry.path, name);
    if (!found && !leftover && host.is_directory(path_join(entry.path, name)))
      leftover = FoundModule{path_join(entry.path, name), false, true, static_cast<int>(i)};
    if (!found) continue;
    found->sys_path_index = static_cast<int>(i);
    return found;
  }
  // The finder of sys.path comes first in sys.meta_path and takes the namespace package.
  return leftover ? leftover : look_in_finders(host, python, name);
}

std::string to_text(const EditableMapping& mapping) {
  return mapping.file + ": " + mapping.package + std::string(kArrow) + mapping.folder;
}

std::optional<EditableMapping> editable_mapping(const std::string& text) {
  const auto arrow = text.find(kArrow);
  // The last ": " before the arrow, because the path of the file may contain one.
  const auto colon = arrow == std::string::npos ? arrow : text.rfind(": ", arrow);
  if (colon == std::string::npos) return std::nullopt;
  return EditableMapping{text.substr(0, colon), text.substr(colon + 2, arrow - colon - 2),
                         text.substr(arrow + kArrow.size())};
}

namespace {

// _Py_get_env_flag, from Python 3.7 on: a number that is 0 is off, any other number or text is on.
// Python 3.6 asks only whether there is text.
bool environment_flag(const Host& host, std::string_view name, unsigned minor) {
  const auto value = host.env(name);
  if (!value || value->empty()) return false;
  char* end = nullptr;
  const long number = std::strtol(value->c_str(), &end, 10);
  return minor < 7 || *end != '\0' || number != 0;
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

// site.getsitepackages for one prefix, as upstream or as Debian patched it. Upstream has sys.platlibdir
// first and then "lib". Debian keeps site-packages for venvs alone.
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

// Builds Python::sys_path in the order of site.main(): what getpath left, the venv's own site-packages, the
// user's, then those of the prefixes. A directory that comes twice keeps its first place and origin.
class SysPath {
 public:
  SysPath(const Host& host, const PythonLayout& layout, Python& python)
      : host_(host), layout_(layout), python_(python), pth_(host, layout.pth_rules()) {}

  void compute() {
    before_site();
    const std::string prefix = layout_.prefix();
    if (layout_.venv) add_site(prefix, "site");
    // include-system-site-packages decides on the user's directory as well: site.venv() sets
    // ENABLE_USER_SITE to False without it.
    const bool system_site = !layout_.venv || layout_.venv->system_site;
    python_.user_site_enabled = system_site && !environment_flag(host_, "PYTHONNOUSERSITE", layout_.minor);
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
  // What getpath leaves, after site.removeduppaths: PYTHONPATH (an empty entry is the current directory),
  // the zip of the standard library, its directory and lib-dynload. These entries need not exist.
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
  // Absolute paths: known_ are on sys.path, processed_ had their .pth files read. A .pth line can put a site
  // directory on the path before site.py comes to it, so the two differ.
  std::set<std::string> known_, processed_;
};

}  // namespace

void compute_sys_path(const Host& host, const PythonLayout& layout, Python& python) {
  SysPath(host, layout, python).compute();
}

std::vector<Message> unreadable_site_folders(const Host& host, const Python& python) {
  std::vector<Message> folders;
  for (const PathEntry& entry : python.sys_path) {
    const bool site = entry.origin == "site" || entry.origin == "user-site" || entry.origin == "system-site";
    if (!site) continue;
    const auto entries = host.list(entry.path);
    if (!entries && entries.error().code != Errc::NotFound) folders.push_back(entries.error().message);
  }
  return folders;
}

}  // namespace scankit::probes
