// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

// What the user writes for one axis of the matrix: values and ranges of them, separated by commas.
namespace scankit {

// "2.4..2.11", "2.4,2.6", "2.4..", "..2.6" and "all": the values of `known`, which are in ascending order, that are meant. A
// patch release means its minor: "2.6.1" is 2.6. An Error names `option`, what is wrong with it, and what is known.
Result<std::vector<std::string>> values_of_axis(std::string_view option, const std::string& text,
                                                const std::vector<std::string>& known);

// Whether --python names versions rather than an interpreter: "3.9..3.13", "3.11", "all".
bool is_python_axis(std::string_view text);

// The values that the options know. Of torch: the releases of the symbol index; of Python: what any of them has wheels for; of
// CUDA: what torch's own wheels were built with; of glibc: 2.5 (manylinux1) and newer; GPUs with their "sm_".
std::vector<std::string> known_torch_releases(), known_pythons(), known_cuda_releases(), known_glibcs(),
    known_gpus();

}  // namespace scankit
