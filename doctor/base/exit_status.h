// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace scankit {

// Precedence where several hold: 3, 2, the first failed step's 1/5/6/7, 4, 0.
inline constexpr int kExitClean = 0;
inline constexpr int kExitFindings = 1;  // at or above --fail-on
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInternal = 3;
inline constexpr int kExitInconclusive = 4;
inline constexpr int kExitBuildFailed = 5;
inline constexpr int kExitValidationFailed = 6;
inline constexpr int kExitDrift = 7;

}  // namespace scankit
