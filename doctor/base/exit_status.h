// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace scankit {

// The exit statuses of every command; the manual page explains them to users. They are part of scankit's
// interface: a number never changes its meaning. If several apply, the order of precedence is 3, 2, the
// first failed step's 1, 5, 6 or 7, then 4, then 0.
inline constexpr int kExitClean = 0;         // done, and nothing that counts was found
inline constexpr int kExitFindings = 1;      // at or above --fail-on
inline constexpr int kExitUsage = 2;         // the command line, or a file that it names, cannot be used
inline constexpr int kExitInternal = 3;      // an error of scankit itself, or its output could not be written
inline constexpr int kExitInconclusive = 4;  // a fact that the answer needs is not known
inline constexpr int kExitBuildFailed = 5;   // the build or the installation failed and changed nothing
inline constexpr int kExitValidationFailed = 6;  // wrong results, or slower than the baseline allows
inline constexpr int kExitDrift = 7;             // the environment differs from its spec or lock

}  // namespace scankit
