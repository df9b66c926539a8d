// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/process.h"

// A small environment for transaction_probe, and the loop that kills it at every system call.
namespace scankit {

using Tree = std::map<std::string, std::string>;

// What the two verbs of transaction_probe leave.
inline const Tree kFixed = {{"bystander.py", "kept"},     {"lines.pth", "/some\n"},
                            {"ours.abi3.so", "new"},      {"ours.dist-info/RECORD", "record"},
                            {"package/__init__.py", "1"}, {"package/link.py", "-> __init__.py"},
                            {"package/old.py", "1"},      {"package-1.dist-info/RECORD", "1"}};
inline const Tree kInstalled = {{"bystander.py", "kept"},       {"lines.pth", "/some\n/more\n"},
                                {"ours.abi3.so", "new"},        {"package/__init__.py", "2"},
                                {"package/parts/more.py", "2"}, {"package-2.dist-info/RECORD", "2"}};

// An import folder as a user may have it: a winning stale
// file, and in one of the two cases an older one of ours.
class Environment {
 public:
  explicit Environment(bool has_older) {
    std::filesystem::create_directories(site());
    put("ours.cpython.so", "stale");
    put("bystander.py", "kept");
    put("lines.pth", "/some\n");
    std::filesystem::create_directories(site() + "/package");
    std::filesystem::create_directories(site() + "/package-1.dist-info");
    put("package/__init__.py", "1");
    put("package/old.py", "1");
    put("package-1.dist-info/RECORD", "1");
    std::filesystem::create_symlink("__init__.py", site() + "/package/link.py");
    if (has_older) put("ours.abi3.so", "older");
  }
  std::string base() const { return folder_.path(); }
  std::string site() const { return folder_.path() + "/site"; }
  void put(const std::string& name, const std::string& bytes) { std::ofstream(site() + "/" + name) << bytes; }
  Tree tree() const {
    Tree files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(site()))
      if (entry.is_symlink())
        files[std::filesystem::relative(entry.path().parent_path(), site()) / entry.path().filename()] =
            "-> " + std::filesystem::read_symlink(entry.path()).string();
      else if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), site())] = read_whole_file(entry.path()).value();
    return files;
  }
  // What Python would import: the version-specific suffix comes first.
  std::string imported() const {
    const Tree files = tree();
    for (const char* name : {"ours.cpython.so", "ours.abi3.so"})
      if (files.count(name) != 0) return files.at(name);
    return "nothing";
  }
  ProcessResult run(const std::string& verb, std::vector<std::string> before = {}) const {
    ProcessRequest request;
    request.argv = std::move(before);
    request.argv.insert(request.argv.end(), {SCANKIT_TRANSACTION_PROBE, verb, base()});
    auto ran = run_process(request);
    return ran ? *ran : ProcessResult{};
  }

 private:
  // In memory where that can be had: these tests wait for a disk otherwise, minutes of fsync.
  static TemporaryDirectory make_folder() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
    return TemporaryDirectory::create("environment").value();
  }
  TemporaryDirectory folder_ = make_folder();
};

inline bool strace_works() {
  ProcessRequest request;
  request.argv = {"strace", "-o", "/dev/null", "true"};
  const auto ran = run_process(request);
  return ran && ran->ok();
}

// SIGKILL on entry of the n-th `call` of `verb`, after `first` where that is a verb, for every n there is:
// how often it was killed before it ran to its end. Before the next run what Python imports is the old module
// or the new one; after it the whole folder is as before or as after.
inline int kill_everywhere(const std::string& call, const std::string& first, const std::string& verb,
                           bool older, const Tree& after_fix) {
  constexpr int kEnough = 300;
  for (int n = 1; n < kEnough; ++n) {
    Environment env(older);
    const Tree before = env.tree();
    if (!first.empty()) {
      EXPECT_EQ(env.run(first).exit_code, 0);
    }
    const std::string inject = "inject=" + call + ":signal=KILL:when=" + std::to_string(n);
    // LeakSanitizer cannot run in a traced process, and says so by its exit status.
    const auto ran =
        env.run(verb, {"strace", "-E", "ASAN_OPTIONS=detect_leaks=0", "-o", "/dev/null", "-e", inject});
    const std::string now = env.imported();
    EXPECT_TRUE(now == "stale" || now == "new") << call << " " << n << ": imports " << now;
    if (ran.exit_code == 0 && ran.signal == 0) return n - 1;
    const auto recovered = env.run("recover");
    EXPECT_EQ(recovered.exit_code, 0) << call << " " << n << ": " << recovered.err;
    const Tree after = env.tree();
    EXPECT_TRUE(after == before || after == after_fix)
        << verb << " " << call << " " << n << ": " << testing::PrintToString(after);
    // And the way on is open: the same command now does all of it, unless it had already been done.
    if (first.empty() && after != after_fix) {
      EXPECT_EQ(env.run(verb).exit_code, 0);
      EXPECT_EQ(env.tree(), after_fix);
    }
  }
  ADD_FAILURE() << call << ": more than " << kEnough << " calls";
  return kEnough;
}

}  // namespace scankit
