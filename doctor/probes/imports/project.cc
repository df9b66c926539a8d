// SPDX-License-Identifier: Apache-2.0
// Four steps: the Python files below the current directory, the names of compiled modules (the table, and
// the extensions of the setup.py files among them), the lines that import one, and which program comes to
// these lines. Most directories name none, and the last step is left out.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/preflight/probes/sources.h"
#include "doctor/probes/imports/importers.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

// The largest repositories around mamba have 300 Python files; a data set may have a million others.
constexpr unsigned kMostFiles = 800, kMostFollowed = 1500, kMostSetups = 8;
constexpr std::size_t kMostEntries = 20000, kMostFacts = 60;
constexpr std::uint64_t kLongestFile = 1u << 19, kMostBytes = 16u << 20;
constexpr int kDeepest = 6;

bool is_test(const std::string& path) {
  const std::string name = path_basename(path);
  return name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py" ||
         path.find("/tests/") != std::string::npos;
}

// One directory and what is read of it.
class ProjectSearch {
 public:
  ProjectSearch(const Host& host, const Python& python, const std::string& folder)
      : host_(host), python_(python) {
    project_.folder = folder;
  }

  Project run() {
    list();
    read_setups();
    for (const std::string& file : files_) scan(file);
    if (!project_.imports.empty()) find_programs();
    for (ProjectModule& module : project_.modules) module.path = path_of(module.module);
    return std::move(project_);
  }

 private:
  // Breadth first, so that a bound cuts off the deepest files.
  void list() {
    std::deque<std::pair<std::string, int>> folders{{project_.folder, 0}};
    std::size_t seen = 0;
    while (!folders.empty()) {
      const auto [folder, depth] = folders.front();
      folders.pop_front();
      const auto entries = host_.list(folder);
      if (!entries || host_.exists(path_join(folder, "pyvenv.cfg")) ||
          host_.is_directory(path_join(folder, "conda-meta")))
        continue;
      seen += entries->size();
      if (seen > kMostEntries) break;
      for (const DirEntry& entry : *entries) {
        const std::string path = path_join(folder, entry.name);
        if (entry.kind == FileKind::Regular && entry.name.ends_with(".py")) files_.push_back(path);
        if (entry.kind == FileKind::Regular && entry.name.ends_with(".so")) compiled_.push_back(path);
        const bool no_source = entry.name.starts_with('.') || entry.name == "__pycache__" ||
                               entry.name == "node_modules" || entry.name == "site-packages";
        if (entry.kind != FileKind::Directory || no_source) continue;
        if (depth < kDeepest)
          folders.emplace_back(path, depth + 1);
        else
          project_.whole = false;
      }
    }
    if (!folders.empty() || files_.size() > kMostFiles) project_.whole = false;
    files_.resize(std::min<std::size_t>(files_.size(), kMostFiles));
  }

  void read_setups() {
    for (const knowledge::CompiledModule& row : knowledge::built_modules())
      known_.emplace(row.module, ProjectModule{row.module, row.project, "", 0, ""});
    unsigned read = 0;
    for (const std::string& file : files_) {
      if (path_basename(file) != "setup.py" || ++read > kMostSetups) continue;
      const auto text = host_.read_file(file, kLongestFile);
      if (text && text->find("Extension") != std::string::npos) read_setup(file, *text);
    }
    for (const auto& [name, module] : known_) names_.push_back(name);
  }

  // The literal names of its extensions, and literals that can be nothing else: VMamba's is a table of them.
  void read_setup(const std::string& file, std::string_view text) {
    SourceTree tree{.folder = path_dirname(file), .build_file = "setup.py"};
    preflight::read_setup_py(text, tree);
    for (const preflight::PythonLiteral& literal : preflight::read_python_text(text).literals) {
      const bool named = std::ranges::find(tree.modules, literal.value) != tree.modules.end();
      const bool cuda = literal.value.find("_cuda") != std::string::npos && !tree.cuda.empty();
      if (literal.formatted || (!named && !cuda) || literal.value.empty() ||
          !std::ranges::all_of(literal.value, is_identifier_char))
        continue;
      ProjectModule& module = known_[literal.value];
      module.module = literal.value;
      if (!module.setup.empty()) continue;
      module.setup = file;
      module.setup_line = literal.line;
    }
  }

  const std::string* text_of(const std::string& file) {
    const auto known = texts_.find(file);
    if (known != texts_.end()) return &known->second;
    if (bytes_ >= kMostBytes) {
      project_.whole = false;
      return nullptr;
    }
    auto text = host_.read_file(file, kLongestFile);
    if (!text) return nullptr;
    bytes_ += text->size();
    ++project_.files;
    return &texts_.emplace(file, *std::move(text)).first->second;
  }

  void scan(const std::string& file) {
    if (path_basename(file) == "setup.py" || is_test(file)) return;
    const std::string* text = text_of(file);
    if (text == nullptr) return;
    if (text->find("mamba_ssm") != std::string::npos) scan_layers(file, *text);
    const auto lines = scan_imports(*text, names_);
    if (lines.empty()) return;
    const auto uses = unguarded_uses(*text, names_);
    for (const ImportLine& line : lines) {
      if (project_.imports.size() >= kMostFacts) break;
      note_module(line.module);
      const auto use = uses.find(line.line);
      const unsigned used_at = use == uses.end() || line.caught.empty() ? 0 : use->second;
      project_.imports.push_back(
          {line.module, file, line.line, line.caught, line.masked_value, line.in_function, "", used_at});
    }
  }

  void note_module(const std::string& name) {
    if (std::ranges::find(project_.modules, name, &ProjectModule::module) == project_.modules.end())
      project_.modules.push_back(known_.at(name));
  }

  // A copy of mamba_ssm inside the project is not the project's own use of it.
  void scan_layers(const std::string& file, const std::string& text) {
    if (file.find("/mamba_ssm/") != std::string::npos) return;
    const PackageScan scan = scan_package_file(text, path_basename(file.substr(0, file.size() - 3)), false);
    const auto add = [&](unsigned line, const std::string& target, const std::string& name) {
      if (project_.layers.size() < kMostFacts)
        project_.layers.push_back({file, line, name, what_it_needs(target, name)});
    };
    for (const ScannedImport& import : scan.imports)
      if (top_package(import.target) == "mamba_ssm")
        add(import.line, import.target, import.name.empty() ? import.target : import.name);
  }

  // By upstream's own sources (commit f577286d): Mamba's layer and the functions below it call
  // selective_scan_cuda; Mamba2, Mamba3 and triton's kernels do not.
  static std::string what_it_needs(const std::string& target, const std::string& name) {
    static const std::set<std::string> kModule{"Mamba", "selective_scan_fn", "mamba_inner_fn",
                                               "bimamba_inner_fn", "mamba_inner_fn_no_out_proj"};
    if (kModule.contains(name)) return "module";
    const bool newer = name.starts_with("Mamba2") || name.starts_with("Mamba3") ||
                       target.find(".mamba2") != std::string::npos ||
                       target.find(".mamba3") != std::string::npos;
    if (newer || name.ends_with("_ref") || target.find(".triton") != std::string::npos) return "nothing";
    return "unknown";
  }

  // A file in the directory itself is a program if anything is; below it, one that says so.
  bool is_program(const std::string& file) {
    if (path_basename(file) == "setup.py" || is_test(file)) return false;
    if (path_dirname(file) == project_.folder) return true;
    const std::string* text = text_of(file);
    return text != nullptr && text->find("__main__") != std::string::npos;
  }

  void find_programs() {
    known_files_.insert(files_.begin(), files_.end());
    for (const std::string& file : files_)
      if (is_program(file)) follow(file);
    if (followed_ >= kMostFollowed) project_.whole = false;
  }

  // The files to which the program comes by its imports, guarded ones and those of functions too. Its own
  // directory is the first of its path.
  void follow(const std::string& program) {
    const std::string folder = path_dirname(program);
    std::deque<std::pair<std::string, std::string>> queue{{program, ""}};  // a file, its dotted name
    std::set<std::string> seen{program};
    // Of all programs together: many small ones may share the same files.
    while (!queue.empty() && followed_ < kMostFollowed) {
      ++followed_;
      const auto [file, module] = queue.front();
      queue.pop_front();
      for (ProjectImport& import : project_.imports)
        if (import.file == file && import.program.empty()) import.program = program;
      const std::string* text = text_of(file);
      if (text == nullptr) continue;
      const PackageScan scan = scan_package_file(*text, module, file.ends_with("/__init__.py"));
      for (const ScannedImport& import : scan.imports)
        for (const std::string& target : {import.target, import.target + "." + import.name})
          add_module(folder, target, seen, queue);
    }
  }

  // `import a.b` runs a/__init__.py and a/b.py.
  void add_module(const std::string& folder, const std::string& dotted, std::set<std::string>& seen,
                  std::deque<std::pair<std::string, std::string>>& queue) const {
    std::string path = folder;
    for (std::size_t from = 0; from < dotted.size();) {
      const auto end = std::min(dotted.find('.', from), dotted.size());
      path = path_join(path, dotted.substr(from, end - from));
      from = end + 1;
      for (const std::string& file : {path_join(path, "__init__.py"), path + ".py"})
        if (known_files_.contains(file) && seen.insert(file).second)
          queue.emplace_back(file, dotted.substr(0, end));
    }
  }

  // A file of it in the directory counts: a build in place is found by programs that extend their path.
  std::string path_of(const std::string& module) const {
    if (const auto found = find_python_module(host_, python_, module); found && !found->leftover)
      return found->path;
    for (const PathEntry& entry : python_.sys_path)
      for (const std::string& suffix : python_.extension_suffixes)
        if (const std::string file = path_join(entry.path, module + suffix);
            entry.exists && is_regular_file(host_, file))
          return file;
    for (const std::string& file : compiled_)
      if (path_basename(file).starts_with(module + ".")) return file;
    return "";
  }

  const Host& host_;
  const Python& python_;
  Project project_;
  std::vector<std::string> files_, compiled_, names_;
  std::set<std::string> known_files_;
  unsigned followed_ = 0;
  std::map<std::string, ProjectModule> known_;
  std::map<std::string, std::string> texts_;
  std::uint64_t bytes_ = 0;
};

// The folder that Python puts first on the path of a program; "" where there is none.
std::string project_folder(const Host& host, const Python& python) {
  for (const PathEntry& entry : python.sys_path)
    if (entry.origin == "cwd" && entry.exists)
      return entry.path == "/" || entry.path == host.env("HOME").value_or("") ? "" : entry.path;
  return "";
}

}  // namespace

Probed<Project> probe_project(const Host& host, const Python& python) {
  const std::string folder = project_folder(host, python);
  if (folder.empty()) return Probed<Project>::absent(message("no project in the current directory"));
  Project project = ProjectSearch(host, python, folder).run();
  const Message read = message(
      "{} files below the current directory were read, and none imports a compiled module or mamba_ssm",
      project.files);
  if (project.imports.empty() && project.layers.empty()) return Probed<Project>::absent(read);
  return Probed<Project>::of(std::move(project));
}

}  // namespace scankit::probes
