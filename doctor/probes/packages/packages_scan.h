// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

// What one Python file imports, calls, uses and defines, by its tokens. packages.cc puts the files of a
// package together; importers.cc follows imports with the same scan.
namespace scankit {

struct ScannedImport {
  unsigned line = 0;
  std::string target, name, bound;  // `from TARGET import NAME as BOUND`; `import TARGET` has no name
  std::string when;                 // "import", "conditional", "call"
  std::string tested;               // "if", "assert": how the file asks whether the bound name is there
  unsigned called_at = 0;
  std::string written = {};  // the target as the source spells it: "..ops"
};
struct ScannedCall {
  unsigned line = 0;
  std::string callee;  // dotted, through the imports of the file
  int arguments = -1;
};
// A dotted name that begins with an imported one, the first place that no test guards.
struct ScannedUse {
  unsigned line = 0;
  std::string name;
};
struct ScannedFunction {
  unsigned line = 0;
  std::string name;
  // Keyword-only parameters count as well: a call is compared by the number of its arguments alone.
  int least = 0, most = 0;  // most: -1 for any number
};
struct PackageScan {
  std::vector<ScannedImport> imports;
  std::vector<ScannedCall> calls;
  std::vector<ScannedUse> uses;
  std::vector<ScannedFunction> functions;  // top level, defined once and undecorated
};

// Reads one file of a package. `module` is the file's own dotted name, for relative imports. A name that the
// file binds in more than one way is followed nowhere: a call through it is not recorded.
PackageScan scan_package_file(std::string_view source, const std::string& module, bool is_package);

}  // namespace scankit
