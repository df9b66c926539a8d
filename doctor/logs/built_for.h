// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "doctor/logs/classify.h"
#include "doctor/model/examined_files.h"

// Which torch releases know the symbols that a log names.
namespace scankit {

// Whether some release of torch exports this very name, and none exports the name that differs from it
// only in the string ABI. Such a name shows a release that does not fit; its string ABI shows nothing.
bool is_of_one_spelling(const std::string& symbol);

// Adds to `judged` which releases of torch export this name, exactly and with the other string ABI.
void add_exporters(const std::string& symbol, Judged& judged);

// The torch names that files of the log miss, by file; together they tell for which torch a file was
// built. A loader stops at the first one, a linker names them all.
class NamesOfLog {
 public:
  void take(const std::string& file, const std::string& symbol);
  std::vector<BuiltFor> built_for() const;

 private:
  std::map<std::string, std::vector<std::string>> by_file_;
};

}  // namespace scankit
