// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>

#include "doctor/base/result.h"
#include "envspec/check/facts.h"
#include "envspec/lock/lock.h"
#include "envspec/spec/spec.h"

// The sides of `scankit env diff`: a spec, a lock, a stored snapshot or an environment, as values
// with common names.
namespace scankit {

struct DiffOperand {
  std::string text;         // "2.11.0+cu130"; "" where there is none
  VersionRange range;       // of a spec: what will do
  bool whole = true;        // false: a list of which the other side may have more
  std::string why_unknown;  // it should be readable, and was not
  std::string extension;    // whose field it is; "" for none
};
struct Side {
  std::string name;                              // as the user named it
  std::string kind;                              // "spec", "lock", "snapshot", "environment"
  std::set<std::string> looked_for, extensions;  // modules; `extensions` are here, or demanded
  std::map<std::string, DiffOperand> values;     // by name: "torch.version", "packages.numpy"
  bool tells_files = false;                      // every compiled file is among the values: "files.a/b.so"
  std::shared_ptr<const Subject> here;           // of an environment: whose files may be read
};

Side operand_of_spec(const Spec& spec);
Side operand_of_lock(const EnvironmentLock& lock);
Side operand_of_facts(const EnvironmentFacts& facts);

// Told apart by what it is: a folder or a program is an environment, a file its content tells.
Result<Side> read_operand(const std::string& path);

// Of an environment: the hashes of its compiled files, as a lock has them. Those that `env lock` and `env
// check` have kept are not read again. `cache_dir`: "" for the user's.
void put_files(Side& side, const std::string& cache_dir);

}  // namespace scankit
