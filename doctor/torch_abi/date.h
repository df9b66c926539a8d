// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/symbols.h"
#include "doctor/model/dating.h"
#include "doctor/torch_abi/atlas.h"

namespace scankit {

struct DatingInput {
  std::string file;
  std::vector<UndefinedSymbol> undefined;  // everything that the file wants from elsewhere
  std::string string_abi;                  // "old", "new", "neutral"
  std::string pybind_internals;            // "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__"
  std::string tag;                         // "cpython-311-x86_64-linux-gnu", "abi3", ""
  std::string cuda_major, glibc_min;
  std::string
      compilers;  // of its .comment: "GCC: (GNU) 9.3.1 20200408 (Red Hat 9.3.1-2)"; several may stand there
  std::vector<std::string> header_lines;  // "c10/core/TensorImpl.h:1723" of its assertions (names.h)
};
// Both tables have the same releases.
Dating date_file(const Atlas& atlas, const DatingInput& input,
                 const Atlas& header_lines = Atlas::header_lines());

// Files that were built together (a wheel, a folder, a distribution): what fits all of them.
Dating date_together(const Atlas& atlas, const std::string& name, const std::vector<Dating>& files);

inline constexpr std::string_view kEveryRelease = "every known release";

// kEveryRelease, "2.1-2.3", "2.7 or newer", "2.0 or older", "1.11-1.13, 2.4": the releases that export the
// name as it is, and those that export it with the other std::string; "" where no known one does.
struct Exporters {
  std::string as_named, other_strings;
};
Exporters exporters(const Atlas& atlas, const std::string& mangled);

// "2.3-2.6", "2.12 or newer", "between 2.4 and 2.5"; "" where not dated. For sentences.
std::string dating_words(const Dating& dating);

}  // namespace scankit
