// SPDX-License-Identifier: Apache-2.0
// What we say the loader will do, against what it does, with a real torch in a real Python.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "doctor/elf/library_test.h"
#include "doctor/elf/mangling.h"
#include "doctor/elf/process_image.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"

namespace scankit::probes {
namespace {

using test::Workshop;

std::string test_python() {
  if (const char* given = std::getenv("SCANKIT_TEST_PYTHON")) return given;
  const std::string fixture = std::string(SCANKIT_BINARY_DIR) + "/fixtures/env/bin/python";
  return ::access(fixture.c_str(), X_OK) == 0 ? fixture : "";
}

class RealClosure : public testing::Test {
 protected:
  void SetUp() override {
    python_ = test_python();
    if (python_.empty()) GTEST_SKIP() << "SCANKIT_TEST_PYTHON names no Python with torch";
    host_ = make_real_host();
    snapshot_.python = probe_python(*host_, python_);
    ASSERT_TRUE(snapshot_.python.present()) << snapshot_.python.note;
    snapshot_.distributions = probe_distributions(*host_, snapshot_.python.value);
    snapshot_.torch = probe_torch(*host_, snapshot_.python.value, snapshot_.distributions.value);
    if (!snapshot_.torch.present()) GTEST_SKIP() << python_ << " has no torch: " << snapshot_.torch.note;
  }

  // Runs Python under LD_DEBUG; the loader's own lines.
  std::vector<std::string> trace(const std::string& topics, const std::string& program) {
    ProcessRequest request;
    request.argv = {python_, "-c", program};
    request.environment = std::vector<std::string>{"LD_DEBUG=" + topics,
                                                   "LD_DEBUG_OUTPUT=" + shop_.path("trace"), "LD_BIND_NOW=1"};
    request.timeout = std::chrono::milliseconds(300000);
    const auto run = run_process(request);
    EXPECT_TRUE(run && run->ok()) << (run ? run->err : english(run.error().message));
    std::vector<std::string> lines;
    const auto entries = host_->list(path_dirname(shop_.path("trace")));
    for (const DirEntry& entry : *entries) {
      if (!entry.name.starts_with("trace.")) continue;
      std::ifstream file(shop_.path(entry.name));
      for (std::string line; std::getline(file, line);) lines.push_back(line);
    }
    return lines;
  }

  elf::TorchLoadRequest torch_request() const {
    elf::TorchLoadRequest request;
    request.location = snapshot_.torch.value.location;
    request.cuda_major = snapshot_.torch.value.cuda.substr(0, snapshot_.torch.value.cuda.find('.'));
    request.extension_suffixes = snapshot_.python.value.extension_suffixes;
    for (const PathEntry& entry : snapshot_.python.value.sys_path) request.sys_path.push_back(entry.path);
    return request;
  }

  std::string python_;
  std::unique_ptr<Host> host_;
  Snapshot snapshot_;
  Workshop shop_;
};

TEST_F(RealClosure, TorchLoadsTheFilesThatWeName) {
  elf::LibraryCache libraries(*host_);
  auto process = elf::ProcessImage::start(libraries, snapshot_.python.value.executable).value();
  const elf::TorchLoad torch = elf::load_torch(process, *host_, torch_request());
  ASSERT_TRUE(torch.loaded) << torch.note;
  EXPECT_TRUE(torch.missing.empty());
  std::set<std::string> ours, needed, theirs;
  for (int i = 1; i < process.object_count(); ++i) {
    ours.insert(path_normalize(process.object(i).path));
    for (const std::string& name : process.object(i).library->dynamic.needed) needed.insert(name);
  }
  static const std::regex init(R"(calling init: (\S+))");
  std::smatch match;
  for (const std::string& line : trace("libs", "import torch"))
    if (std::regex_search(line, match, init)) theirs.insert(path_normalize(match[1].str()));
  for (const std::string& path : ours)
    EXPECT_TRUE(theirs.contains(path)) << "the loader did not load " << path;
  // Python loads more modules of its own; of what our objects
  // need, the loader must have chosen the same files.
  for (const std::string& path : theirs) {
    const bool torchs = path.starts_with(snapshot_.torch.value.location + "/lib/");
    EXPECT_TRUE(ours.contains(path) || !(torchs || needed.contains(path_basename(path)))) << path;
  }
  RecordProperty("files", static_cast<int>(ours.size()));
}

TEST_F(RealClosure, EveryNameOfTorchsPythonLibraryIsBoundWhereWeSay) {
  elf::LibraryCache libraries(*host_);
  auto process = elf::ProcessImage::start(libraries, snapshot_.python.value.executable).value();
  ASSERT_TRUE(elf::load_torch(process, *host_, torch_request()).loaded);
  const std::string path = snapshot_.torch.value.location + "/lib/libtorch_python.so";
  const int object = process.find(path);
  ASSERT_GE(object, 0);
  // It came with _C, whose list is its scope.
  const elf::LoadResult again =
      process.load(process.object(process.object(object).loader).path, process.python_object(), false);
  const auto resolved = process.resolve(object, again.list);
  ASSERT_TRUE(resolved);
  std::map<std::string, std::string> ours, theirs;
  for (const elf::ResolvedSymbol& r : *resolved) {
    EXPECT_TRUE(r.symbol.weak || r.provider >= 0) << r.symbol.name;
    if (r.provider >= 0)
      ours[r.symbol.name] = r.provider == 0 ? python_ : path_normalize(process.object(r.provider).path);
  }
  static const std::regex binding(R"(binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `([^']+)')");
  std::smatch match;
  for (const std::string& line : trace("bindings", "import torch"))
    if (line.find("binding file " + path) != std::string::npos && std::regex_search(line, match, binding))
      theirs[match[3].str()] = path_normalize(match[2].str());
  ASSERT_GT(theirs.size(), 1000u);
  std::size_t compared = 0;
  for (const auto& [name, file] : theirs) {
    const auto found = ours.find(name);
    if (found == ours.end()) continue;  // its own definition, which another object may override
    ++compared;
    EXPECT_EQ(path_basename(found->second), path_basename(file)) << name;
  }
  EXPECT_GT(compared, 1000u);
  RecordProperty("compared", static_cast<int>(compared));
}

// The same list of missing names as the loader's own warnings, less what the interpreter exports.
TEST_F(RealClosure, MissingNamesAreThoseTheLoaderWarnsOf) {
  const std::string lib = snapshot_.torch.value.location + "/lib/";
  const bool is_new = snapshot_.torch.value.string_abi == "new";
  const std::string head = "_ZN3c105ErrorC1ENS_14SourceLocationE",
                    modern = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
  const std::string present = head + (is_new ? modern : "Ss"), flipped = head + (is_new ? "Ss" : modern);
  std::string source = "extern char PyLong_FromLong, THPVariableClass;\n";
  const std::vector<std::string> names = {present, flipped, "_ZN3c104cuda9SetDeviceEl",
                                          "_Z12never_linkedRKN2at6TensorE"};
  std::string table = "void* keep[] = {&PyLong_FromLong, &THPVariableClass";
  for (std::size_t i = 0; i < names.size(); ++i) {
    source += "extern char n" + std::to_string(i) + " __asm__(\"" + names[i] + "\");\n";
    table += ", &n" + std::to_string(i);
  }
  source += table + "};\nint PyInit_mod(void) { return 0; }\n";
  const std::string path = shop_.shared(
      "mod.so", source,
      {"-Wl,--no-as-needed", lib + "libc10.so", lib + "libc10_cuda.so", lib + "libtorch_python.so"});

  snapshot_.python.value.sys_path.insert(snapshot_.python.value.sys_path.begin(),
                                         PathEntry{path_dirname(path), "pythonpath", true});
  std::vector<TorchNeed> torch_missing;
  const auto found = probe_extensions(*host_, snapshot_, {"mod"}, torch_missing);
  ASSERT_EQ(found.value.size(), 1u);
  const Extension& copy = found.value.front();
  ASSERT_TRUE(copy.resolved) << copy.resolution_note;
  EXPECT_TRUE(torch_missing.empty());
  EXPECT_TRUE(copy.missing_libraries.empty());
  EXPECT_FALSE(copy.needs_torch_first.empty());
  std::set<std::string> ours, theirs;
  for (const MissingSymbol& symbol : copy.missing_symbols) {
    ours.insert(symbol.name);
    if (symbol.name == flipped) {
      EXPECT_EQ(path_basename(symbol.flipped_exported_by), "libc10.so");
    }
    EXPECT_EQ(symbol.near.empty(), symbol.name != names[2]) << symbol.name;
    EXPECT_EQ(symbol.owner == "own", symbol.name == names[3]) << symbol.name;
  }
  ProcessRequest request;
  request.argv = {path};
  elf::LibraryCache libraries(*host_);
  const auto process = elf::ProcessImage::start(libraries, snapshot_.python.value.executable).value();
  request.argv = {process.context().interpreter, "--library-path", lib, path};
  request.environment =
      std::vector<std::string>{"LD_TRACE_LOADED_OBJECTS=1", "LD_WARN=yes", "LD_BIND_NOW=yes"};
  const auto run = run_process(request);
  ASSERT_TRUE(run) << english(run.error().message);
  static const std::regex undefined(R"(undefined symbol: ([^\s,]+)[^\n]*\()");
  const std::string text = run->out + run->err;
  for (std::sregex_iterator it(text.begin(), text.end(), undefined), end; it != end; ++it) {
    if (it->str().find("undefined") == std::string::npos) continue;
    const std::string name = (*it)[1].str();
    if (process.provider_of(elf::SymbolQuery(name), {}) < 0) theirs.insert(name);
  }
  EXPECT_EQ(ours, theirs) << text.substr(0, 2000);
  EXPECT_EQ(ours, (std::set<std::string>{flipped, names[2], names[3]}));
}

}  // namespace
}  // namespace scankit::probes
