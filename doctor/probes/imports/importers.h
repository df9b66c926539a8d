// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

struct ImportLine {
  std::string module;  // one of those asked for
  unsigned line = 0;
  std::string caught;  // the `except` that guards it: "ImportError", "Exception", "everything"; "" for none
  std::string masked_value;  // what the handler makes of the name: "None"
  bool in_function = false;  // runs when that is called, not when the file is imported
};

// The lines of a Python source that import one of `modules`. Goes by indentation and strings, not by a
// grammar: code that puts an import behind a semicolon or into exec() is not seen.
std::vector<ImportLine> scan_imports(std::string_view source, const std::vector<std::string>& modules);

struct ImportPlace {
  std::string file;
  unsigned line = 0;
};

// Where `import ROOT` comes to one of the wanted packages, by imports without a guard, a condition and a
// function around them: the file that does it, for each that is reached. Follows the packages of `through`
// too. By the files alone, and bounded: what is not reached within it is not reached.
std::map<std::string, ImportPlace> hard_imports(const Host& host, const Python& python,
                                                const std::string& root, const std::set<std::string>& wanted,
                                                const std::set<std::string>& through);

// Where the modules under diagnosis are imported: in the packages known for it, in those that are installed
// with such a module, in single-file modules and in the current folder. Not all of site-packages is read;
// `note` says what was.
Probed<std::vector<Importer>> probe_importers(const Host& host, const Python& python,
                                              const std::vector<std::string>& modules);

// Where the programs in the current folder and in those of PYTHONPATH import mamba_ssm or causal_conv1d, as
// far as this Python does not have them. Reads the files of these folders themselves, none below them.
Probed<std::vector<Importer>> probe_package_importers(const Host& host, const Python& python);

}  // namespace scankit
