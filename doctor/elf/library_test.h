// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/host/host.h"

// For tests: libraries made by the real compiler when the test runs, and their bytes changed afterwards.
namespace scankit::test {

// An environment variable for as long as it lives; what it was before is not put back.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// A scratch directory with compilers, removed with the object. Names are relative to it; results are
// absolute paths.
class Workshop {
 public:
  Workshop() : directory_(TemporaryDirectory::create("scankit-elf").value()) {}
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  std::string write(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(make_directories(path_dirname(path(name))));
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  // Compiles `source` (C, or C++ where the compiler is "c++") into `name`; a failing compiler fails the test.
  std::string build(const std::string& name, const std::string& source, std::vector<std::string> flags,
                    const std::string& compiler = "cc") const {
    EXPECT_TRUE(make_directories(path_dirname(path(name))));
    const std::string file = write(path_basename(name) + (compiler == "cc" ? ".c" : ".cc"), source);
    std::vector<std::string> argv = {compiler, "-o", path(name), file};
    argv.insert(argv.end(), flags.begin(), flags.end());
    const auto run =
        run_process({.argv = argv, .environment = {}, .working_directory = {}, .standard_input = {}});
    EXPECT_TRUE(run && run->ok()) << (run ? run->err : english(run.error().message));
    return path(name);
  }
  // The same as a shared library, such as "lib/liba.so".
  std::string shared(const std::string& name, const std::string& source, std::vector<std::string> flags = {},
                     const std::string& compiler = "cc") const {
    flags.insert(flags.begin(), {"-shared", "-fPIC"});
    return build(name, source, std::move(flags), compiler);
  }

 private:
  TemporaryDirectory directory_;
};

// Bytes in memory as a file.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, void* into, std::size_t length) const override {
    if (offset > bytes_.size() || length > bytes_.size() - offset)
      return Error{Errc::Malformed, "past the end", ""};
    bytes_.copy(static_cast<char*>(into), length, offset);
    return {};
  }

 private:
  std::string bytes_;
};

inline std::shared_ptr<const ByteSource> in_memory(std::string bytes) {
  return std::make_shared<MemorySource>(std::move(bytes));
}

}  // namespace scankit::test
