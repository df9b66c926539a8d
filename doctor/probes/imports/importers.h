// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit::probes {

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

// For each line of `source` that imports one of `modules`: the first line that uses what the import binds
// although it may not be there; 0 for none. A use counts only outside every condition, `try` and `assert`,
// in a function that has not asked before, and of a name that nothing else binds: what this overlooks is
// safe, and what it claims fails.
std::map<unsigned, unsigned> unguarded_uses(std::string_view source, const std::vector<std::string>& modules);

// What the sources in the current directory import of compiled modules and of mamba_ssm. Nothing is run.
// Virtual environments, hidden directories and links to directories are passed over. Absent where the
// directory has no Python sources that do so, or is a home directory or the root of the file system, which
// are no projects.
Probed<Project> probe_project(const Host& host, const Python& python);

}  // namespace scankit::probes
