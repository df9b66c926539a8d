// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

// Python extension modules made byte by byte: what selftest plants must not need a compiler.
namespace scankit {

// The description of one module; the defaults make one that works.
struct HandmadeModule {
  struct Name {
    // The loader must find it while it loads the file: the relocation is not lazy.
    std::string symbol;            // left undefined, and wanted while the file is loaded
    std::string library, version;  // "libc.so.6", "GLIBC_2.99"; both "" for a name without version
  };
  enum class Start : std::uint8_t { Works, Crashes, Hangs };  // what PyInit_ does

  std::string module;               // exports PyInit_MODULE
  std::vector<std::string> needed;  // DT_NEEDED
  std::vector<Name> names;
  Start start = Start::Works;
  std::uint16_t machine = 62;  // EM_X86_64
};

// The bytes of a whole x86-64 shared library that CPython (not the free-threaded one) imports, where the
// loader finds what it needs.
std::string module_bytes(const HandmadeModule& file);

// What selftest plants: real faults, each in a small virtual environment of its own, which is made
// without running anything.

inline constexpr const char* kSelftestModule = "scankit_selftest";

// The virtual environment in which a fault is planted.
struct Scratch {
  // The paths are absolute; `site` is its site-packages, `suffix` the file name suffix of an extension
  // module of this Python: ".cpython-311-x86_64-linux-gnu.so".
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
  // The statement that the interpreter runs to show that the fault is real.
  std::string import = std::string("import ") + kSelftestModule;
  // Added to the doctor's command line.
  std::vector<std::string> doctor_options;
  // Writes the files of the fault. It runs no program and changes nothing outside the Scratch.
  Result<void> (*plant)(const Scratch&) = nullptr;
};
const std::vector<SelftestFault>& selftest_faults();

// Why this fault cannot be planted for this Python, as a sentence; "" if it can.
std::string cannot_plant(const SelftestFault& fault, const Snapshot& facts);

// Makes a virtual environment of the interpreter that `facts` describe. With `torch`, it can import the
// torch of that interpreter.
Result<Scratch> make_scratch(const Snapshot& facts, const std::string& folder, bool torch);

}  // namespace scankit
