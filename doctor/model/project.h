// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

// What the sources in the current directory want of compiled modules and of mamba_ssm. Nothing here is a
// judgement.

namespace scankit {

// A compiled module that a file of the project imports. That it is one is known from a project that builds
// it, from an extension in a setup.py of the directory, or from both.
struct ProjectModule {
  std::string module;       // "selective_scan_cuda_oflex"
  std::string built_by;     // "MzeroMiko/VMamba"; "" where the table does not know it
  std::string setup;        // the setup.py of the directory that names it; "" for none
  unsigned setup_line = 0;  // of that name
  std::string path;         // what import takes for it, or a file of it in the directory; "" for none
};

struct ProjectImport {
  std::string module, file;
  unsigned line = 0;
  std::string caught, masked_value;  // the guarding `except`, and what it makes of the name
  bool in_function = false;          // runs when that is called, not when the file is imported
  std::string program;               // one that comes to this file by its imports; "" for none
  unsigned used_at = 0;  // guarded: the first line that uses the module without asking whether it is there
};

// What a file of the project takes from mamba_ssm.
struct LayerImport {
  std::string file;
  unsigned line = 0;
  std::string name;   // "Mamba2"
  std::string needs;  // "module": it calls selective_scan_cuda; "nothing": it does not; "unknown"
};

struct Project {
  std::string folder;
  std::vector<ProjectModule> modules;
  std::vector<ProjectImport> imports;
  std::vector<LayerImport> layers;
  unsigned files = 0;  // that were read
  bool whole = true;   // false: the limits were met, so there may be more
};

}  // namespace scankit
