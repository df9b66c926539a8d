// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {

struct PthLine {
  std::string file, path;
};  // path: absolute, not yet known to exist

// Reads .pth files as site.addpackage does, and the finders of editable installs that their code lines would
// install.
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

}  // namespace scankit
