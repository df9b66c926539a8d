// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace scankit
