// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/symbols.h"
#include "doctor/model/examined_files.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit::torch_abi {

// The facts about one file from which its release is inferred; "" where the file does not say.
struct BuiltForInput {
  std::string file;
  std::vector<elf::UndefinedSymbol> undefined;  // everything that the file wants from elsewhere
  std::string string_abi;                       // "old", "new", "neutral"
  std::string pybind_internals;                 // "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__"
  std::string tag;                              // "cpython-311-x86_64-linux-gnu", "abi3", ""
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

// For infer_release.cc and narrow.cc: sets of releases, bit i for release i of the symbol index.

using Set = std::uint64_t;

inline Set all_releases(const SymbolIndex& symbol_index) {
  const std::size_t count = symbol_index.releases().size();
  return count >= 64 ? ~Set{0} : (Set{1} << count) - 1;
}
// Positions in SymbolIndex::releases(). The set must not be empty.
inline std::size_t oldest(Set set) { return static_cast<std::size_t>(std::countr_zero(set)); }
inline std::size_t newest(Set set) { return 63 - static_cast<std::size_t>(std::countl_zero(set)); }

// The lowest releases of a set that follow one another: adding the lowest bit carries through that run.
inline Set lowest_run(Set set) { return set & ~(set + (set & (~set + 1))); }

// "2.1-2.3", open where it touches the oldest or the newest release that we know.
std::string range_words(const SymbolIndex& symbol_index, Set set);
// The same of each run: a name may have gone and come back.
std::string runs_in_words(const SymbolIndex& symbol_index, Set set);

template <class Predicate>
Set releases_where(const SymbolIndex& symbol_index, Predicate fits) {
  Set set = 0;
  for (std::size_t i = 0; i < symbol_index.releases().size(); ++i)
    if (fits(symbol_index.releases()[i])) set |= Set{1} << i;
  return set;
}

// Fills torch_min, torch_max, releases and `dated` of the answer. An end that touches the oldest or the
// newest known release stays unset: unknown releases beyond it may fit as well.
void take_bounds(const SymbolIndex& symbol_index, Set fits, BuiltFor& built_for);
Message why_not_narrower(const BuiltFor& built_for);

// Facts beside the names that say which releases a file was made for. Each leaves `fits` alone where nothing
// would be left of it (the file may be a build of another channel), and says so in the evidence.

void narrow_by_headers(const SymbolIndex& symbol_index, const SymbolIndex& header_lines,
                       const BuiltForInput& input, Set& fits, BuiltFor& built_for);
void narrow_by_python(const SymbolIndex& symbol_index, const BuiltForInput& input, Set& fits,
                      BuiltFor& built_for);
void narrow_by_strings(const SymbolIndex& symbol_index, const BuiltForInput& input, Set& fits,
                       BuiltFor& built_for);
// The number of pybind11's internals is told and not used.
void tell_pybind(const SymbolIndex& symbol_index, const BuiltForInput& input, Set fits, BuiltFor& built_for);

}  // namespace scankit::torch_abi
