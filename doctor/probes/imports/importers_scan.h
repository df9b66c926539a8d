// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

struct ImportLine {
  std::string module;  // one of those asked for
  unsigned line = 0;
  std::string caught;  // the `except` that guards it: "ImportError", "Exception", "everything"; "" for none
  std::string masked_value;  // what the handler makes of the name: "None"
  bool in_function = false;  // runs when that is called, not when the file is imported
};

// The lines of a Python source that import one of `modules`. Goes by indentation and strings, not by a
// grammar: code that puts an import behind a semicolon or into exec() is not seen.
std::vector<ImportLine> scan_imports(std::string_view source, const std::vector<std::string>& modules);

}  // namespace scankit
