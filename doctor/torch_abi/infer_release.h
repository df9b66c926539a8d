// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/symbols.h"
#include "doctor/model/examined_files.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit {

// The facts about one file from which its release is inferred; "" where the file does not say.
struct BuiltForInput {
  std::string file;
  std::vector<UndefinedSymbol> undefined;  // everything that the file wants from elsewhere
  std::string string_abi;                  // "old", "new", "neutral"
  std::string pybind_internals;            // "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__"
  std::string tag;                         // "cpython-311-x86_64-linux-gnu", "abi3", ""
  std::string cuda_major, glibc_min;
  std::string
      compilers;  // of its .comment: "GCC: (GNU) 9.3.1 20200408 (Red Hat 9.3.1-2)"; several may stand there
  std::vector<std::string> header_lines;  // "c10/core/TensorImpl.h:1723" of its assertions (symbol_index.h)
};
// Both tables have the same releases in the same order.
BuiltFor date_file(const SymbolIndex& symbol_index, const BuiltForInput& input,
                   const SymbolIndex& header_lines = SymbolIndex::header_lines());

// Files that were built together (a wheel, a folder, a distribution): what fits all of them.
BuiltFor date_together(const SymbolIndex& symbol_index, const std::string& name,
                       const std::vector<BuiltFor>& files);

inline constexpr std::string_view kEveryRelease = "every known release";

// kEveryRelease, "2.1-2.3", "2.7 or newer", "2.0 or older", "1.11-1.13, 2.4": the releases that export the
// name as it is, and those that export it with the other std::string; "" where no known one does.
struct Exporters {
  std::string as_named, other_strings;
};
Exporters exporters(const SymbolIndex& symbol_index, const std::string& mangled);

// "2.3-2.6", "2.12 or newer", "between 2.4 and 2.5"; "" where not dated. For sentences.
std::string built_for_words(const BuiltFor& built_for);

}  // namespace scankit
