// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "doctor/report/document.h"

namespace scankit::report {

// The metrics of a document as an OTLP/HTTP request in JSON (ExportMetricsServiceRequest of opentelemetry-proto 1), which a
// collector accepts at /v1/metrics. Names and labels are those of prometheus_of(), so that one dashboard reads both.
// OTLP refuses a value without a time, so this is the one sink with a clock: `nanoseconds` since 1970.
std::string otlp_at(const Document& document, std::uint64_t nanoseconds);
// The same with the time at which it is written.
std::string otlp_of(const Document& document);

}  // namespace scankit::report
