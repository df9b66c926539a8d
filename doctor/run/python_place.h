// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace scankit {

// Where Python was when it failed, as a traceback or the dump of faulthandler in the output tells.
struct PythonPlace {
  std::string file;
  unsigned line = 0;
  std::string function;    // "<module>" for the code of the file itself
  std::string source;      // that line of the file; "" where it is not printed
  bool importing = false;  // within an import
  std::string module;      // what was imported, where the source line or a file of packages names it
};

// The innermost place that is not Python's own code for imports, of the last traceback before the line
// `before` (from 1; 0 for the end of the output). What torchrun prints of its own death is left out.
std::optional<PythonPlace> python_place(std::string_view output, std::uint64_t before = 0);

}  // namespace scankit
