// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "validate/run/child.h"
#include "validate/run/run.h"

namespace scankit::validate {

// Runs `request.upstream_tests` with the environment's pytest, which imports the installed module itself.
// The result is one case in `seen`. The run has `seconds`; if they are over, the tests that ran decide,
// and a note says how many did not. With the commented values there are thousands of tests, which come in
// an order that the run's seed shuffles.
void run_upstream_tests(const ValidateRequest& request, const Harness& harness, double seconds,
                        Validation& seen);

// `source`, a test file, with the values of commented decorators added to those in use. Upstream's file
// keeps most of its values in comments of one line, "# @pytest.mark.parametrize('name', [...])": complex
// A, fp16 and bf16, odd lengths. The values are added to the decorator of the same name at the same
// function. `enabled` counts the comments that were used.
std::string with_commented_parameters(std::string_view source, int& enabled);

}  // namespace scankit::validate
