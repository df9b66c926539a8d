// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processor that this scankit is built for, and with it the modules and the helper programs inside it. Of a
// Python or a file that is examined it says nothing: those name their own.
namespace scankit {
#ifdef __aarch64__
inline constexpr const char* kMachine = "aarch64";              // as uname prints it and wheels name it
inline constexpr const char* kMultiarch = "aarch64-linux-gnu";  // Debian's directory below /usr/lib
inline constexpr const char* kLoader = "ld-linux-aarch64.so.1";
#else
inline constexpr const char* kMachine = "x86_64";
inline constexpr const char* kMultiarch = "x86_64-linux-gnu";
inline constexpr const char* kLoader = "ld-linux-x86-64.so.2";
#endif
}  // namespace scankit
