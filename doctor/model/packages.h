// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

// Facts about the Python packages around the modules under diagnosis. Nothing here is a judgement.
namespace scankit {

// A Requires-Dist line that applies to this Python, of a distribution that torch or a package around the
// modules needs: what it asks for is not installed, and no folder of sys.path holds a package of its name
// either.
struct MissingRequirement {
  std::string distribution, version;  // who asks: "transformers", "4.45.2"
  std::string root;                   // the package for whose sake it is installed: "mamba_ssm", "torch"
  std::string requirement;            // "tqdm>=4.27", without extras and marker
  std::string name, package;          // the distribution asked for, and what is imported of it
  bool guessed = false;               // `package` is the name of the distribution: no table has it
  // The line on which `import ROOT` comes to it, without a guard and a condition on the way; "" where there
  // is none.
  std::string file;
  unsigned line = 0;
};

// A name given by --module that import takes for Python files:
// what is compiled lies inside it, or nothing is.
struct AskedPackage {
  std::string name, path;  // "torchvision", its folder; the file where it is a single one
};

// A change of the environment by `scankit fix` that did not come to its end: a journal of builder/README.md's
// layout whose state is neither "committed" nor "undone".
struct UnfinishedRepair {
  std::string journal;   // the file
  std::string state;     // "applying", "undoing"; "" where the file cannot be read as a journal
  std::string module;    // what was being installed
  bool running = false;  // the process that the lock file names lives
};

// A package whose sources were read: one that imports a module under diagnosis, or is known for it.
struct PackageFound {
  std::string name, version, path;  // path: its folder
  bool current_folder = false;      // it is taken from the folder in which scankit was started
};

// A call of a function that comes from a module under diagnosis or from a sibling package.
struct PackageCall {
  std::string package, version, file;
  unsigned line = 0;
  std::string callee;  // "causal_conv1d_cuda.causal_conv1d_fwd"
  int arguments = -1;  // positional and keyword ones together; -1 where *args or the like hides the number
};

// A function as a Python source defines it: `def` at the top level of the file, once, undecorated.
struct PythonFunction {
  std::string name, file;  // "causal_conv1d.cpp_functions.causal_conv1d_fwd_function"
  unsigned line = 0;
  int least = 0, most = 0;  // arguments; most is -1 with *args or **kwargs
};

// What the read-only texts of a module's file say: how
// pybind11 exposes its functions, and where it was built.
struct ModuleTexts {
  std::string module, path;
  bool read = false;  // the rest is meaningless otherwise
  std::vector<unsigned>
      arguments;            // how many the functions take, without their names: sorted, each number once
  bool defaults = false;    // some argument may be left out
  bool open_ended = false;  // some function takes *args or **kwargs
  std::string build_trace;  // a path in the folder of an isolated build, which pip throws away; "" for none
  std::int64_t installed = 0;  // when the file was installed, in seconds since 1970
};

// `from TARGET import NAME`, `import TARGET` (NAME is ""), or a use of TARGET.NAME in the code (when: "use").
struct PackageImport {
  std::string package, version, file;
  unsigned line = 0;
  std::string target, name;
  std::string
      when;  // "import": whenever the file is imported; "conditional"; "call": inside a function; "use"
  bool reached = false;  // `import PACKAGE` comes to this file by imports without condition and guard
  bool loaded = false;   // the same, guarded imports too
  std::string caught, masked_value;  // the guarding `except`, and what it makes of the name
  std::string tested;  // "if", "assert": how the file asks for None before it uses the name; "" not at all
  unsigned called_at = 0;  // first line that calls the name, 0 for none
  std::string offered;  // "yes", "no": the installed package has no such module or name; "absent": it is not
                        // installed; "module": it is one under diagnosis; "unknown"
  Message why;          // for "no" and "unknown", in one line
  std::string target_package, target_version, target_path;
};

// How a package that has a compiled module of its own was built, by its metadata and its sources.
struct PackageBuild {
  std::string package, distribution, version;  // "mamba_ssm", "mamba-ssm", "2.3.2.post1"
  std::string module;                          // "selective_scan_cuda"
  std::string wheel;                           // the WHEEL file
  std::vector<std::string> tags;               // its tags: "py3-none-any"
  bool lists_module = false;                   // RECORD names a file of the module
  // The variable with which the package itself asks to be built, where its sources name one, and where they do.
  std::string opt_in, file;
  unsigned line = 0;
};

// A requirement of a package or of one of its neighbours that the installed release does not meet.
struct UnmetRequirement {
  std::string distribution, version;  // who asks: "tilelang", "0.1.8"
  std::string root;                   // the package for whose sake it is installed: "mamba_ssm"
  std::string requirement;            // "apache-tvm-ffi<=0.1.12", without extras and marker
  std::string name, installed;        // the distribution asked for, and its release
};

// A top-level package that is there twice. Either two distributions list one file as theirs, and the one that
// was installed last has written over the other, or a folder of sys.path hides the copy in a later one.
struct SharedPackage {
  std::string package, file;         // "triton", the __init__.py that import takes
  std::vector<std::string> owners;   // the distributions that list that file
  std::vector<std::string> records;  // the RECORD of each
  std::string hidden;                // the __init__.py of the copy behind it; "" for none
};

struct Packages {
  std::vector<PackageFound> found;
  std::vector<PackageCall> calls;
  std::vector<PackageImport> imports;
  std::vector<PythonFunction> functions;
  std::vector<ModuleTexts> texts;
  std::int64_t torch_installed = 0;  // when pip wrote torch's RECORD
  std::string torch_record;          // that file
  // pip marks what its user named (PEP 376, REQUESTED). Where torch was not named: what was, in the same run.
  std::string torch_brought_by;
  std::string triton_pin;  // torch's own Requires-Dist line about triton, "" for none
  std::vector<PackageBuild> builds;
  std::vector<UnmetRequirement> unmet;
  std::vector<SharedPackage> shared;
};

// A wheel under diagnosis (--so x.whl), by its own words. An installer goes by the tags alone.
struct Wheel {
  std::string path, name, version;
  std::vector<std::string> python_tags, abi_tags, platform_tags;  // "cp311", "abi3", "manylinux_2_28_x86_64"
  std::string tags_from;  // "file name", or "WHEEL" where the file name holds none; "" where neither does
  std::uint64_t members = 0;
};

}  // namespace scankit
