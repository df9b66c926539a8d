// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace scankit {

// The oldest torch on which the modules that scankit carries run, and the oldest Python.
inline constexpr const char* kOldestTorch = "1.13";
inline constexpr const char* kOldestPython = "3.8";

}  // namespace scankit
