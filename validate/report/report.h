// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/report/document.h"
#include "validate/report/validation.h"

namespace scankit::validate {

// What a validation shows; nothing here judges. For people: what was run, how near each result comes to its bound, and every
// failure with the command that reproduces it. With style.quiet, the verdict alone.
std::string text_report(const Validation& validation, const report::TextStyle& style);
// The part of it that tells how fast the module is.
std::string speed_text(const Validation& validation);
// For programs; schema/validate-1.json describes it.
std::string json_report(const Validation& validation);
// For everything else.
report::Document validation_document(const Validation& validation, int exit_status);
// `validation` must outlive the views.
report::Views validation_views(const Validation& validation, int exit_status);

// Whether it is of a maintainer's own test (run_test_file()), which `module` then names.
bool is_of_a_test(const Validation& validation);

// "PASSED: the results of selective_scan_cuda are correct (quick, 8.2 s)".
std::string verdict_line(const Validation& validation);

// "NVIDIA H200", "2 x NVIDIA H200", or each with its device where they differ; "" without one.
std::string gpus_in_words(const Validation& validation);

// "fwd bf16 B8 D2048 L2048 N16 cold", and the same behind its device.
std::string shape_name(const Timing& timing);
std::string name_of(const Timing& timing);
double milliseconds(const Timing& timing);  // the module's median; NaN where it was not timed

// One point for each case: the share of its bound that its worst result used.
report::Plot error_plot(const Validation& validation);
// Rooflines, bars of all shapes, and time by length; empty where nothing was timed.
std::vector<report::Block> speed_figures(const Validation& validation);

}  // namespace scankit::validate
