// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

// What selftest plants: real faults, each in a small virtual
// environment of its own, made without running anything.
namespace scankit {

inline constexpr const char* kSelftestModule = "scankit_selftest";

// The virtual environment that a fault is planted in.
struct Scratch {
  std::string folder, python, site, suffix;  // suffix: ".cpython-311-x86_64-linux-gnu.so"
  unsigned minor = 0;                        // of Python 3
  std::string string_abi;                    // of torch: "old", "new"; "" without torch
};

struct SelftestFault {
  std::string name;
  std::string planted;  // how, one sentence
  std::string cause;    // slug that must be the root; "" where nothing is wrong and nothing may be named
  bool needs_torch = false;
  bool hides = false;  // the program that imports it sees no error: a package swallows it
  std::string import = std::string("import ") + kSelftestModule;
  std::vector<std::string> doctor_options;
  Result<void> (*plant)(const Scratch&) = nullptr;
};
const std::vector<SelftestFault>& selftest_faults();

// Why this fault cannot be planted for this Python; "" where it can.
std::string cannot_plant(const SelftestFault& fault, const Snapshot& facts);

// A virtual environment of the interpreter that `facts` describe; with `torch`, one that reaches its torch.
Result<Scratch> make_scratch(const Snapshot& facts, const std::string& folder, bool torch);

}  // namespace scankit
