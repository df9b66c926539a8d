// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "doctor/logs/classify.h"
#include "doctor/model/built_for.h"

// Which torch releases know the symbols that a log names.
namespace scankit {

// Some release of torch exports the name, and none the one that only its strings make different: then it is
// the release that does not fit, whatever the strings.
bool is_of_one_spelling(const std::string& symbol);

// Adds to `judged` which releases export this torch name, as it is and with the other string ABI.
void add_exporters(const std::string& symbol, Judged& judged);

// The missing torch names of a log, by the file that needs them: together they date it. A loader stops at the
// first, a linker names them all.
class NamesOfLog {
 public:
  void take(const std::string& file, const std::string& symbol);
  std::vector<BuiltFor> built_for() const;

 private:
  std::map<std::string, std::vector<std::string>> by_file_;
};

}  // namespace scankit
