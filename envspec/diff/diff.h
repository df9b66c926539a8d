// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/redact.h"
#include "envspec/check/check.h"
#include "envspec/create/create.h"
#include "envspec/lock/lock.h"
#include "envspec/spec/spec.h"

// The sides of `scankit env diff`: a spec, a lock, a record, a stored snapshot or an environment, as values
// with common names.

namespace scankit::envspec {

struct DiffOperand {
  std::string text;       // "2.11.0+cu130"; "" where there is none
  VersionRange range;     // of a spec: what will do
  bool whole = true;      // false: a list of which the other side may have more
  Message why_unknown;    // it should be readable, and was not
  std::string extension;  // whose field it is; "" for none
};
struct Side {
  std::string name;                              // as the user named it
  std::string kind;                              // "spec", "lock", "record", "snapshot", "environment"
  std::set<std::string> looked_for, extensions;  // modules; `extensions` are here, or demanded
  std::map<std::string, DiffOperand> values;     // by name: "torch.version", "packages.numpy"
  bool tells_files = false;                      // every compiled file is among the values: "files.a/b.so"
  bool tells_packages = true;                    // every package is among the values: "packages.numpy"
  std::shared_ptr<const Subject> here;           // of an environment: whose files may be read
};

Side operand_of_spec(const Spec& spec);
Side operand_of_lock(const EnvironmentLock& lock);
// What `env create` or `env sync` made: versions, content and compiled files, nothing of the machine.
Side operand_of_record(const EnvironmentRecord& record);
Side operand_of_facts(const EnvironmentFacts& facts);

// Told apart by what it is: a folder or a program is an environment, a file its content tells.
Result<Side> read_operand(const std::string& path);

// The same of a file's content.
Result<Side> operand_of_text(const std::string& text, const std::string& path);

// Of an environment: the hashes of its compiled files, as a lock has them. Those that `env lock` and `env
// check` have kept are not read again. `cache_dir`: "" for the user's.
void put_files(Side& side, const std::string& cache_dir);

// One row of the output. `field` is a name of Side::values.
struct Difference {
  std::string field, left, right;  // "" where that side has none
  Message why_unknown;             // it could not be compared
};
// Fields by name. A spec says nothing of what it does not name, and takes what its ranges take. Packages that
// only one side has differ, and so do compiled files where both sides tell of all of theirs; of extensions
// those are compared that both sides tell of.
std::vector<Difference> differences(const Side& left, const Side& right);

// Removes names of people, machines and directories from names, values and reasons.
void redact(const Owner& owner, Side& left, Side& right, std::vector<Difference>& all);

std::string diff_text(const Side& left, const Side& right, const std::vector<Difference>& all);
std::string diff_json(const Side& left, const Side& right, const std::vector<Difference>& all);

}  // namespace scankit::envspec
