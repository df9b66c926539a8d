// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

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

}  // namespace scankit
