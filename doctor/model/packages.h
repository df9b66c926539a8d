// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

// Facts about the Python packages around the modules under diagnosis. Nothing here is a judgement.
namespace scankit {

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

// What the read-only texts of a module's file say: how pybind11 exposes its functions, and where it was
// built.
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
  std::string why;      // for "no" and "unknown", in one line
  std::string target_package, target_version, target_path;
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
};

}  // namespace scankit
