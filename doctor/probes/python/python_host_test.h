// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

#include "doctor/base/files.h"
#include "doctor/host/host.h"

// For tests only.
namespace scankit::probes {

// The running machine with other environment variables, and with folders that say EACCES: as root, chmod 000
// does not.
class TestHost : public Host {
 public:
  std::map<std::string, std::string> variables;
  std::set<std::string> denied;

  Result<std::string> read_file(const std::string& path, std::size_t limit) const override {
    if (is_denied(path)) return refusal(path);
    return real_->read_file(path, limit);
  }
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) const override {
    if (is_denied(path)) return refusal(path);
    return real_->open(path);
  }
  Result<std::vector<DirEntry>> list(const std::string& path) const override {
    if (is_denied(path)) return refusal(path);
    return real_->list(path);
  }
  Result<FileInfo> stat(const std::string& path) const override {
    if (is_denied(path_dirname(path))) return refusal(path);
    return real_->stat(path);
  }
  Result<FileInfo> lstat(const std::string& path) const override {
    if (is_denied(path_dirname(path))) return refusal(path);
    return real_->lstat(path);
  }
  Result<std::string> readlink(const std::string& path) const override { return real_->readlink(path); }
  Result<std::string> realpath(const std::string& path) const override { return real_->realpath(path); }
  std::optional<std::string> env(std::string_view name) const override {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  }
  bool is_live() const override { return true; }

 private:
  bool is_denied(const std::string& path) const {
    for (const std::string& folder : denied)
      if (path == folder || path.starts_with(folder + "/")) return true;
    return false;
  }
  static Error refusal(const std::string& path) {
    return {Errc::PermissionDenied, "cannot open " + path + ": Permission denied", ""};
  }
  std::unique_ptr<Host> real_ = make_real_host();
};

// A folder of its own for each test, and ways to fill it.
class PythonTree : public ::testing::Test {
 protected:
  PythonTree() : scratch_(std::move(TemporaryDirectory::create("scankit-python")).value()) {
    root_ = make_real_host()->realpath(scratch_.path()).value();
    host_.variables = {{"HOME", at("home")}, {"PATH", at("path")}};
  }
  std::string at(const std::string& path) const { return path_join(root_, path); }
  std::string write(const std::string& path, std::string_view text, unsigned mode = 0644) {
    EXPECT_TRUE(make_directories(path_dirname(at(path))));
    ::unlink(at(path).c_str());
    std::ofstream(at(path), std::ios::binary) << text;  // no fsync: some tests write a thousand files
    EXPECT_EQ(::chmod(at(path).c_str(), mode), 0);
    return at(path);
  }
  std::string folder(const std::string& path) {
    EXPECT_TRUE(make_directories(at(path)));
    return at(path);
  }
  std::string link(const std::string& target, const std::string& path) {
    EXPECT_TRUE(make_directories(path_dirname(at(path))));
    ::unlink(at(path).c_str());
    EXPECT_EQ(::symlink(target.c_str(), at(path).c_str()), 0);
    return at(path);
  }
  // Bytes in which the probes see an interpreter: an ELF header
  // for x86_64 and the names that CPython 3.8+ brings.
  static std::string interpreter_bytes(std::string_view release = "") {
    std::string bytes(
        "\x7f"
        "ELF\x02\x01\x01",
        7);
    bytes.resize(64);
    bytes[16] = 2;
    bytes[18] = 62;
    bytes += std::string("\0Py_BytesMain\0", 14) + std::string(release);
    return bytes + std::string(64, '\0');
  }
  // An installation PREFIX/bin/python3.11 with its standard library.
  std::string install(const std::string& prefix, const std::string& series = "3.11",
                      const std::string& release = "3.11.7") {
    const std::string library = prefix + "/lib/python" + series;
    write(library + "/os.py", "");
    write(library + "/site.py", "# upstream\n");
    folder(library + "/lib-dynload");
    folder(library + "/site-packages");
    write(prefix + "/include/python" + series + "/patchlevel.h",
          "#define PY_VERSION      \"" + release + "\"\n");
    link("python" + series, prefix + "/bin/python");
    return write(prefix + "/bin/python" + series, interpreter_bytes(), 0755);
  }
  // A venv of that installation; returns its bin/python.
  std::string make_venv(const std::string& venv, const std::string& interpreter,
                        const std::string& series = "3.11") {
    write(venv + "/pyvenv.cfg", "home = " + path_dirname(interpreter) +
                                    "\ninclude-system-site-packages = false\nversion = 3.11.7\n");
    folder(venv + "/lib/python" + series + "/site-packages");
    return link(interpreter, venv + "/bin/python");
  }

  TemporaryDirectory scratch_;
  std::string root_;
  TestHost host_;
};

}  // namespace scankit::probes
