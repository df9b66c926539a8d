// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/python/python_layout.h"

// sys.path as an interpreter would have it, and what an import of a top-level name would find on it, by the
// rules of Lib/site.py. sys_path_real_test.cc compares the result with every Python that it finds.
namespace scankit::probes {

// Fills sys_path, pth_code_lines, editable_finders and user_site_enabled of `python`: what getpath and
// site.py compute for `python -c`, under this process's environment. Code in .pth files is recorded, never
// run.
void compute_sys_path(const Host& host, const PythonLayout& layout, Python& python);

// The folders of site-packages among sys_path that could not be listed although they exist: "PATH: why".
std::vector<Message> unreadable_site_folders(const Host& host, const Python& python);

// What `import NAME` takes for a package or a single-file module, by sys.path and then by the editable
// finders. `name` is a top-level name. Nothing where there is no such file or directory; built-in modules
// have none.
struct FoundModule {
  std::string path;      // the package's folder, or the module's file
  bool package = false;  // has an __init__
  bool leftover =
      false;  // a folder without __init__: what an incomplete uninstall leaves (a namespace package)
  // Into Python::sys_path; -1 for what an editable finder brings.
  int sys_path_index = -1;
};
std::optional<FoundModule> find_python_module(const Host& host, const Python& python,
                                              const std::string& name);

// "FILE: package -> folder", the form of Python::editable_finders and of stored snapshots. The "folder" of a
// single-file module is its file, with or without ".py".
struct EditableMapping {
  std::string file, package, folder;
};
std::string to_text(const EditableMapping& mapping);
std::optional<EditableMapping> editable_mapping(const std::string& text);

struct PthLine {
  std::string file, path;
};  // path: absolute, not yet known to exist

// Reads .pth files as site.addpackage does, and the finders of editable installs that their code lines would
// install. One reader serves all site directories of an interpreter, and its lists cover them together.
class PthReader {
 public:
  PthReader(const Host& host, PthRules rules) : host_(host), rules_(rules) {}
  // The path lines of every .pth file of a folder, files by name.
  std::vector<PthLine> read_folder(const std::string& folder);
  const std::vector<std::string>& code_lines() const { return code_lines_; }
  const std::vector<std::string>& editable_finders() const { return finders_; }

 private:
  void read_file(const std::string& folder, const std::string& name, std::vector<PthLine>& lines);
  void note_code(const std::string& folder, const std::string& file, std::string_view line);
  const Host& host_;
  PthRules rules_;
  std::vector<std::string> code_lines_, finders_;
};

// What an editable finder's source says: `MAPPING: dict[str, str] = {'pkg': '/path'}` of setuptools, and
// `F.map_module('pkg', '/path')` of the `editables` library (hatchling, pdm). Only literals are read.
std::vector<EditableMapping> mappings_of_finder(std::string_view source, const std::string& file);

}  // namespace scankit::probes
