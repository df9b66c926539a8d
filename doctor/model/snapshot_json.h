// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

namespace scankit {

inline constexpr int kSnapshotSchema = 1;
// Same snapshot, same bytes: keys in a fixed order, two-space indentation, a newline at the end. Bytes that
// are not UTF-8 (file names) come out as U+FFFD.
std::string snapshot_to_json(const Snapshot& snapshot);
// Errc::Malformed with line and column; Errc::Unsupported for a schema newer than kSnapshotSchema.
Result<Snapshot> snapshot_from_json(std::string_view text);
// The value at a JSON pointer ("/torch/value/version") as text; Errc::NotFound where there is none.
Result<std::string> snapshot_fact(const Snapshot& snapshot, const std::string& pointer);

}  // namespace scankit
