// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/python/python_shim.h"

// The probe of the interpreter: identity, version, suffixes and sys.path, all from files. python_shim.h
// finds the file, python_layout.h its installation, sys_path.h its import path; python.cc joins them.
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

// The interpreter and its import path, from files: nothing is started. `requested` is an interpreter, or
// anything that find_interpreter() leads to one. Failed, with the reason, where it is not a CPython 3 that
// could start.
Probed<Python> probe_python(const Host& host, const std::string& requested);
// The same interpreter, and an Error where probe_python() would fail.
Result<Interpreter> find_usable_interpreter(const Host& host, const std::string& requested);

}  // namespace scankit
