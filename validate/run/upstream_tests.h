// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "validate/run/harness_files.h"
#include "validate/run/run.h"

namespace scankit::validate {

// Runs `request.upstream_tests` by the pytest of the environment, which imports the
// installed module itself; one case among `seen`'s. It has `seconds`; where those end
// it, the tests that ran decide, and a note tells how many did not. With the commented
// values there are thousands: they come in an order that the run's seed shuffles.
void run_upstream_tests(const ValidateRequest& request, const Harness& harness, double seconds,
                        Validation& seen);

// `source`, a test file, with the values of each "# @pytest.mark.parametrize('name', [...])" of one line
// added to those of the decorator of the same name and the same function that is not a comment. Upstream's
// file keeps most of its values so (complex A, fp16 and bf16, odd lengths). `enabled` counts the comments
// that were taken.
std::string with_commented_parameters(std::string_view source, int& enabled);

}  // namespace scankit::validate
