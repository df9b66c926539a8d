// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/torch_abi/date.h"
#include "doctor/torch_abi/release_sets.h"

// Facts beside the names that say which releases a file was made for. Each leaves `fits` alone where nothing
// would be left of it (the file may be a build of another channel), and says so in the evidence.
namespace scankit {

void narrow_by_headers(const Atlas& atlas, const Atlas& header_lines, const DatingInput& input, Set& fits,
                       Dating& dating);
void narrow_by_python(const Atlas& atlas, const DatingInput& input, Set& fits, Dating& dating);
void narrow_by_strings(const Atlas& atlas, const DatingInput& input, Set& fits, Dating& dating);
// The number of pybind11's internals is told and not used.
void tell_pybind(const Atlas& atlas, const DatingInput& input, Set fits, Dating& dating);

}  // namespace scankit
