// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/model/finding.h"

// What the checks of the packages around the modules ask of a snapshot.
namespace scankit::checks {

enum class Offer { Yes, No, Absent, Unknown };

// Whether the target of an import has what is imported from it. Known from, best first: an observed
// import, the module under diagnosis below the target, the files.
struct Offering {
  Offer offer = Offer::Unknown;
  Message why;         // for No, in a sentence's half
  std::string module;  // the module under diagnosis that fails below it
  std::vector<Evidence> evidence;
  std::string lacks =
      {};  // the package for want of which the import fails: python-dependencies-present names it
};
Offering offering(const Snapshot& snapshot, std::size_t import);

// The observed import of a package in a child; nullptr if there was none.
const Observation* seen_package(const Snapshot& snapshot, const std::string& package);

// The package that an import did not find: "tqdm". "" if it failed for another reason.
std::string missing_package(const Observation& seen);

std::string import_statement(const PackageImport& import);                 // "from a import b"
std::string import_place(const PackageImport& import);                     // "a.py:3"
std::string release(const std::string& name, const std::string& version);  // "mamba_ssm 2.3.1"
// The release of a package, and whether import takes the copy in the current directory.
Message which_copy(const Snapshot& snapshot, const std::string& package, const std::string& version);
// The module of the finding: one that the sibling brings, so that everything about both is grouped
// together, else the sibling itself.
std::string module_beside(const Snapshot& snapshot, const PackageImport& import);

}  // namespace scankit::checks
