// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/torch_abi/infer_release.h"
#include "doctor/torch_abi/release_sets.h"

// Facts beside the names that say which releases a file was made for. Each leaves `fits` alone where nothing
// would be left of it (the file may be a build of another channel), and says so in the evidence.
namespace scankit {

void narrow_by_headers(const SymbolIndex& symbol_index, const SymbolIndex& header_lines,
                       const BuiltForInput& input, Set& fits, BuiltFor& built_for);
void narrow_by_python(const SymbolIndex& symbol_index, const BuiltForInput& input, Set& fits,
                      BuiltFor& built_for);
void narrow_by_strings(const SymbolIndex& symbol_index, const BuiltForInput& input, Set& fits,
                       BuiltFor& built_for);
// The number of pybind11's internals is told and not used.
void tell_pybind(const SymbolIndex& symbol_index, const BuiltForInput& input, Set fits, BuiltFor& built_for);

}  // namespace scankit
