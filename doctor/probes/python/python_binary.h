// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"

namespace scankit {

// What the bytes of an interpreter, or of its libpython, say by themselves.
struct PythonBinary {
  bool elf = false;
  bool python = false;  // starts or holds a CPython
  std::string machine;  // "x86_64"; empty for one that no torch exists for
};
Result<PythonBinary> read_python_binary(const Host& host, const std::string& path);

// Release numbers of `series` ("3.11") that stand in the file as strings of their own: "3.11.7", "3.13.0rc2".
// The copyright and library versions that stand there too are of other series.
std::vector<std::string> release_strings(const Host& host, const std::string& path, std::string_view series);
// True where the file holds the bytes between two NULs.
bool holds_string(const Host& host, const std::string& path, std::string_view text);

}  // namespace scankit
