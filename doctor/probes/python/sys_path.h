// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/python/python_layout.h"

namespace scankit {

// Fills sys_path, pth_code_lines, editable_finders and user_site_enabled of `python`: what getpath and
// site.py compute for `python -c`, under this process's environment. Code in .pth files is recorded, never
// run.
void compute_sys_path(const Host& host, const PythonLayout& layout, Python& python);

// The folders of site-packages among sys_path that could not be listed although they exist: "PATH: why".
std::vector<std::string> unreadable_site_folders(const Host& host, const Python& python);

// What `import NAME` takes for a package or a single-file module, by sys.path and then by the editable
// finders.
struct FoundModule {
  std::string path;      // the package's folder, or the module's file
  bool package = false;  // has an __init__
  bool leftover =
      false;  // a folder without __init__: what an incomplete uninstall leaves (a namespace package)
  int sys_path_index = -1;
};
std::optional<FoundModule> find_python_module(const Host& host, const Python& python,
                                              const std::string& name);

// "FILE: package -> folder", the form of Python::editable_finders.
struct EditableMapping {
  std::string file, package, folder;
};
std::string to_text(const EditableMapping& mapping);
std::optional<EditableMapping> editable_mapping(const std::string& text);

}  // namespace scankit
