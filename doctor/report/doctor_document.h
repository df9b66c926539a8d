// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/report/document.h"
#include "doctor/report/sinks.h"

// What doctor, env check and ci run show: their answer is a Report.
namespace scankit {

// `exit_status`: with which this run of scankit ends, as far as the findings decide.
Document doctor_document(const Report& report, int exit_status);
// The parts of it for CI servers and collectors. A suite holds the checks of one family; one more holds the extensions, if they
// were audited, so that a dashboard shows a file that failed yesterday and loads today.
std::vector<Suite> doctor_suites(const Report& report);
std::vector<Metric> doctor_metrics(const Report& report, int exit_status);

// `report` must outlive the views.
Views doctor_views(const Report& report, int exit_status);

}  // namespace scankit
