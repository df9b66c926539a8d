// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/base/version.h"

namespace scankit::envspec {

// Which versions will do: clauses as in PEP 440 with commas between them,
// each of which must hold. ">=2.11,<3", "==2.11.*", "~=2.11.1", "!=2.11.2";
// a bare "2.11.*" or "2.11.0" means "==". A range without clauses takes any.
class VersionRange {
 public:
  static Result<VersionRange> parse(std::string_view text);
  bool empty() const { return clauses_.empty(); }
  // As PEP 440 orders them: a pre-release comes before its release. The local part ("+cu130") counts only in
  // a clause that names one.
  bool contains(const Version& version) const;
  // Nothing where `version` is no version.
  std::optional<bool> contains(std::string_view version) const;
  // The oldest version that a clause names as one that may do, as it was written; "" where there is none.
  std::string least() const;
  const std::string& text() const { return text_; }  // as it was written
  bool operator==(const VersionRange& other) const { return text_ == other.text_; }

 private:
  struct Clause {
    std::string op;  // "==", "!=", ">=", "<=", ">", "<", "~="
    Version version;
    bool wildcard = false;  // "==2.11.*"
    std::string text;       // of the version, as it was written
  };
  static Result<Clause> parse_clause(std::string_view text);
  static bool holds(const Clause& clause, const Version& version);
  std::string text_;
  std::vector<Clause> clauses_;
};

// What an environment must be, as scankit.yaml says it. What the file does not name is not demanded: an empty
// string, list or range demands nothing. The fields, their forms and their texts: fields.cc.

inline constexpr int kSpecSchema = 1;
inline constexpr const char* kSpecFile = "scankit.yaml";

struct ExtensionSpec {
  std::string module;        // "selective_scan_cuda", "torchvision._C"
  std::string distribution;  // the package that brings it: "mamba-ssm"
  VersionRange version;      // of that package
  std::string from;          // how it is got: "scankit", "source", "wheel"; "": as the resolver decides
  std::string package;       // from scankit: the package that imports it, whose Python part is wanted too
  VersionRange package_version;
  std::string torch_abi;          // what of torch it is bound to: "none", "stable", "full"
  VersionRange torch;             // the releases of torch that it was built for
  std::string string_abi;         // "old", "new"
  VersionRange cuda;              // the CUDA that it is bound to
  std::string python_tag;         // "abi3", "cpython-311-x86_64-linux-gnu"
  std::vector<std::string> code;  // device code that the file must hold: "sm_90", "compute_75"
};

struct Spec {
  int schema = kSpecSchema;
  VersionRange driver;            // of the NVIDIA driver
  std::vector<std::string> gpus;  // "sm_90": the GPUs that the environment is for
  VersionRange cuda;              // that torch was built with
  std::string implementation;     // "cpython"
  VersionRange python;
  VersionRange torch;
  std::string string_abi;  // torch's: "old", "new"
  std::string compiler;    // "gcc", "clang": the host compiler
  VersionRange compiler_version;
  std::vector<ExtensionSpec> extensions;  // in the order of the file

  // Where a field stands in the file, 1-based, by its path: "torch.version", "extensions.mamba.code".
  std::string file;
  std::map<std::string, unsigned, std::less<>> lines;
  unsigned line_of(std::string_view path) const {
    const auto found = lines.find(path);
    return found == lines.end() ? 0 : found->second;
  }
};

// A stranger's file is data: nothing in it names a file to read or a command to run, and what reads it is
// bounded (yaml_tree.cc). Errc::Malformed with line and column; Errc::Unsupported for a schema newer than
// kSpecSchema. `name` is what messages call the file.
Result<Spec> parse_spec(std::string_view text, const std::string& name);
Result<Spec> read_spec(const std::string& path);

// What init says about a field beside the table's text: why this range, what was seen. For a field without a
// value: why it has none; it is then written as a comment with an example.
using SpecNotes = std::map<std::string, std::string, std::less<>>;

// The file, with a comment a line, in English on every machine: a team shares it. `schema` is the file that
// editors check it against, relative to it; "" for none.
std::string spec_to_yaml(const Spec& spec, const SpecNotes& notes, const std::string& schema);

}  // namespace scankit::envspec
