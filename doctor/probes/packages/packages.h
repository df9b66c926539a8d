// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// What one Python file imports, calls, uses and defines, by its tokens. packages.cc puts the files of a
// package together; importers.cc follows imports with the same scan.

namespace scankit::probes {

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

// "yes": the files offer it. "no": they do not, for the reason `why`. "absent": the top-level package is not
// on the path. "unknown": the files do not decide, for the reason `why`.
struct NameOffer {
  std::string answer;  // "yes", "no", "absent", "unknown"
  Message why;
  std::string package_path;  // of the top-level package
};

// Does `from TARGET import NAME` find what it asks for, by the files? "no" only where the name occurs in no
// file that could define it: a name that is made at run time is written somewhere as text, if only in a table
// of lazy imports.
class NameSearch {
 public:
  NameSearch(const Host& host, const Python& python) : host_(host), python_(python) {}
  NameOffer ask(const std::string& target, const std::string& name);
  bool is_module(const std::string& target) { return ask(target, "").answer == "yes"; }

 private:
  NameOffer find_target(const std::string& target, const std::string& top, std::string& file,
                        std::string& folder);
  NameOffer search_folder(const std::string& folder, const std::string& name, const std::string& where);
  bool has_child(const std::string& folder, const std::string& name) const;

  const Host& host_;
  const Python& python_;
  // By "TARGET:NAME". Packages ask the same question from many files.
  std::map<std::string, NameOffer> known_;
};

// As a word of its own: not a part of a longer name.
bool has_word(std::string_view text, std::string_view word);

// How the modules and torch came into the environment, and what a module's file says of its functions. The
// texts are leftovers of compilers and pip, not interfaces that anybody promises.

struct BinaryTexts {
  std::vector<unsigned> arguments;  // of each function that pybind11 exposes; sorted, each number once
  bool defaults = false, open_ended = false;
  std::string build_trace;  // a path of pip's isolated build, "" for none
};

// The texts of a compiled file's read-only data that tell how it is called and where it was built.
std::optional<BinaryTexts> read_binary_texts(const Host& host, const std::string& path);
// `data`: the read-only sections one after the other, each ended by a NUL.
BinaryTexts binary_texts(std::string_view data);

// How the modules and torch came here: the texts of the modules' files, when each was installed, and what pip
// noted about torch.
void read_installation(const Host& host, const Snapshot& so_far, Packages& packages);

// What the packages' own records say: `builds`, `unmet` and `shared`. Reads `found` of the packages.
void read_records(const Host& host, const Snapshot& so_far, Packages& packages);

// The Python packages that import the modules under diagnosis: what they call and import, and whether the
// installed files offer that. Reads `modules`, `python`, `distributions`, `importers` and `extensions` of the
// snapshot. Absent where no such package is installed.
Probed<Packages> probe_packages(const Host& host, const Snapshot& so_far);

}  // namespace scankit::probes
