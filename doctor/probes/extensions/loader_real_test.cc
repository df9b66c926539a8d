// SPDX-License-Identifier: Apache-2.0
// Which file the loader takes for each need, and which library it binds each name to, as it says itself
// (LD_DEBUG=files,bindings), beside ours: for a real Python that imports real modules, and for libraries that
// hold one rule each. What it is asked to dlopen, and by whom, is taken from its own lines; everything else
// is ours. No difference is accepted.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "doctor/elf/library_test.h"
#include "doctor/elf/process_image.h"
#include "doctor/probes/python/python.h"

namespace scankit::probes {
namespace {

using test::Variable;
using test::Workshop;

// From `text` between two markers; "" where they are not there.
std::string between(const std::string& text, const std::string& left, const std::string& right) {
  const auto start = text.find(left);
  if (start == std::string::npos) return "";
  const auto from = start + left.size(), end = text.find(right, from);
  return end == std::string::npos ? "" : text.substr(from, end - from);
}

struct Opened {
  std::string name, caller;
};
using Name = std::pair<std::string, std::string>;  // who needs it, and what
struct Truth {
  std::vector<Opened> opened;  // by dlopen, in order; what was there already is not said again
  std::map<Name, std::set<std::string>> bound;  // to which files; "name" or "name@version"
  std::set<std::string> files;
};

class RealLoader : public testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("SCANKIT_TEST_PYTHON");
    python_ = given != nullptr ? given : std::string(SCANKIT_BINARY_DIR) + "/fixtures/env/bin/python";
    if (::access(python_.c_str(), X_OK) != 0) GTEST_SKIP() << "SCANKIT_TEST_PYTHON names no Python";
    host_ = make_real_host();
    const auto python = probe_python(*host_, python_);
    ASSERT_TRUE(python.present()) << python.note;
    program_ = python.value.executable;
  }

  Truth truth_of(const std::string& python, const std::string& code) {
    std::vector<std::string> environment = {"LD_DEBUG=files,bindings",
                                            "LD_DEBUG_OUTPUT=" + shop_.path("trace"), "LD_BIND_NOW=1",
                                            "PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"};
    if (const char* path = std::getenv("LD_LIBRARY_PATH"))
      environment.push_back(std::string("LD_LIBRARY_PATH=") + path);
    ProcessRequest request;
    request.argv = {python, "-c", code + "\nimport os\nprint('pid', os.getpid())"};
    request.environment = environment;
    request.timeout = std::chrono::milliseconds(500000);
    const auto run = run_process(request);
    EXPECT_TRUE(run && run->ok()) << (run ? run->err : english(run.error().message));
    Truth truth;
    if (!run) return truth;
    const std::string pid = between(run->out, "pid ", "\n");
    std::ifstream lines(shop_.path("trace." + pid));  // children of it write files of their own
    for (std::string line; std::getline(lines, line);) take(line, python, truth);
    return truth;
  }

  // The loader names the program as it was called.
  std::string file_of(const std::string& text, const std::string& python) const {
    return text == python ? path_normalize(program_) : path_normalize(text);
  }

  void take(const std::string& line, const std::string& python, Truth& truth) const {
    if (line.find("dynamically loaded by ") != std::string::npos) {
      truth.opened.push_back({between(line, "file=", " [0];"),
                              file_of(between(line, "dynamically loaded by ", " [0]"), python)});
      return;
    }
    const std::string who = between(line, "binding file ", " [0] to ");
    if (who.empty()) return;
    const std::string to = file_of(between(line, " [0] to ", " [0]: "), python),
                      version = between(line, "' [", "]");
    const std::string name = between(line, "symbol `", "'");
    truth.files.insert(file_of(who, python));
    truth.files.insert(to);
    truth.bound[{file_of(who, python), version.empty() ? name : name + "@" + version}].insert(to);
  }

  // Everything as we follow it: who is bound to what at the moment of its load.
  struct Ours {
    std::map<Name, std::string> bound;
    std::set<std::string> files, not_found;
    std::size_t strong_without_provider = 0;
  };
  Ours ours_of(const Truth& truth, const std::set<std::string>& global) {
    Ours ours;
    elf::LibraryCache libraries(*host_);
    auto started = elf::ProcessImage::start(libraries, program_);
    EXPECT_TRUE(started) << (started ? "" : english(started.error().message));
    if (!started) return ours;
    elf::ProcessImage process = *std::move(started);
    for (int i = 0; i < process.object_count(); ++i) bind(process, i, {}, ours);
    for (const Opened& opened : truth.opened) {
      elf::ProcessImage before = process;
      int caller = process.find(opened.caller);
      if (opened.caller == path_normalize(program_)) caller = 0;
      for (int i = 0; caller < 0 && i < process.object_count(); ++i)
        if (path_normalize(process.object(i).path) == opened.caller) caller = i;
      EXPECT_GE(caller, 0) << opened.caller << " calls dlopen, and we never loaded it";
      const elf::LoadResult loaded =
          process.load(opened.name, std::max(caller, 0), global.contains(opened.name));
      if (loaded.object < 0 || !loaded.missing.empty()) {  // a dlopen that fails leaves nothing behind
        ours.not_found.insert(opened.name);
        process = std::move(before);
        continue;
      }
      for (const int i : loaded.added) bind(process, i, loaded.list, ours);
    }
    return ours;
  }
  void bind(const elf::ProcessImage& process, int object, const std::vector<int>& list, Ours& ours) {
    const std::string who = path_normalize(process.object(object).path);
    ours.files.insert(who);
    const auto resolved = process.resolve(object, list);
    ASSERT_TRUE(resolved) << english(resolved.error().message);
    for (const elf::ResolvedSymbol& r : *resolved) {
      const std::string& version = r.symbol.version;
      const Name name{who, version.empty() ? r.symbol.name : r.symbol.name + "@" + version};
      ours.bound[name] = r.provider < 0 ? "" : path_normalize(process.object(r.provider).path);
      if (r.provider < 0 && !r.symbol.weak) ++ours.strong_without_provider;
    }
  }

  // NAME or NAME@VERSION of functions whose address a program takes that is not position-independent, as
  // Debian 13's python3.13 is: they stay undefined in it and get the address of its own PLT entry, which
  // every taken address is then, and which jumps to the definition (x86-64 psABI, "Function Addresses").
  static std::set<std::string> forwarded_by(const std::string& program) {
    ProcessRequest request;
    request.argv = {"readelf", "-W", "--dyn-syms", program};
    const auto listed = run_process(request);
    std::set<std::string> names;
    std::istringstream lines(listed ? listed->out : "");
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string number, value, size, type, binding, visibility, section, name;
      fields >> number >> value >> size >> type >> binding >> visibility >> section >> name;
      if (section == "UND" && value.find_first_not_of('0') != std::string::npos) names.insert(name);
    }
    return names;
  }

  void compare(const std::string& python, const std::string& code, const std::set<std::string>& global,
               std::size_t at_least, bool fixtures = false) {
    const Truth truth = truth_of(python, code);
    const Ours ours = ours_of(truth, global);
    for (const std::string& file : truth.files)
      EXPECT_TRUE(ours.files.contains(file) || file == "linux-vdso.so.1") << "the loader loaded " << file;
    const std::set<std::string> forwarded = forwarded_by(program_);
    std::size_t compared = 0, own = 0, differences = 0, of_fixtures = 0;
    for (const auto& [name, files] : truth.bound) {
      const auto mine = ours.bound.find(name);
      if (mine == ours.bound.end()) {  // not undefined there: its own definition, or a dlsym() of its code
        ++own;
        continue;
      }
      ++compared;
      of_fixtures += name.first.starts_with(shop_.path("")) ? 1u : 0u;
      if (files.contains(mine->second)) continue;
      if (files.contains(path_normalize(program_)) && forwarded.contains(name.second)) continue;
      if (++differences <= 20)
        ADD_FAILURE() << name.first << " needs " << name.second << ": the loader took " << *files.begin()
                      << ", we " << (mine->second.empty() ? "nothing" : mine->second);
    }
    EXPECT_EQ(differences, 0u);
    EXPECT_EQ(ours.strong_without_provider, 0u);
    EXPECT_GE(compared, at_least);
    EXPECT_EQ(of_fixtures > 0, fixtures);
    std::cout << "files " << ours.files.size() << ", names " << compared << " compared, " << differences
              << " differ; " << own << " own definitions not compared; dlopen failed for "
              << ours.not_found.size() << "\n";
  }

  std::string python_, program_;
  std::unique_ptr<Host> host_;
  Workshop shop_;
};

TEST_F(RealLoader, BindsTorchAndNumpyAsWeSay) {
  const auto torch =
      between(run_process({.argv = {python_, "-c",
                                    "import importlib.util as u; s = u.find_spec('torch'); "
                                    "print('at', s.submodule_search_locations[0] if s else '')"},
                           .environment = {},
                           .working_directory = {},
                           .standard_input = {}})
                  ->out,
              "at ", "\n");
  if (torch.empty()) GTEST_SKIP() << python_ << " has no torch";
  compare(python_, "import torch, numpy", {torch + "/lib/libtorch_global_deps.so"}, 10000);
}

// SCANKIT_LOADER_PYTHON and _CODE: any environment and any imports, for the matrix.
TEST_F(RealLoader, BindsWhatTheCallerNames) {
  const char *python = std::getenv("SCANKIT_LOADER_PYTHON"), *code = std::getenv("SCANKIT_LOADER_CODE");
  if (python == nullptr || code == nullptr)
    GTEST_SKIP() << "SCANKIT_LOADER_PYTHON and SCANKIT_LOADER_CODE name nothing";
  program_ = host_->realpath(python).value();
  const char* torch = std::getenv("SCANKIT_LOADER_GLOBAL");
  compare(python, code, {torch == nullptr ? "" : torch}, 1000);
}

class LoaderRules : public RealLoader {
 protected:
  // lib/NAME.so returning `value` from `function`.
  std::string end(const std::string& folder, const std::string& value, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), "-Wl,-soname,libend.so");
    return shop_.shared(folder + "/libend.so", "int end(void) { return " + value + "; }\n", std::move(flags));
  }
  std::string mid(const std::string& folder, const std::string& linked, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"-Wl,-soname,libmid.so", "-Wl,--no-as-needed", linked});
    return shop_.shared(folder + "/libmid.so", "int end(void); int mid(void) { return end(); }\n",
                        std::move(flags));
  }
  static std::string rpath(const std::string& folder) { return "-Wl,--disable-new-dtags,-rpath," + folder; }
  static std::string runpath(const std::string& folder) { return "-Wl,--enable-new-dtags,-rpath," + folder; }
  static std::string open(const std::string& path, const char* mode = "os.RTLD_LOCAL") {
    return "ctypes.CDLL(" + ("\"" + path) + "\", mode=" + mode + ")\n";
  }
  void same(const std::string& code, const std::set<std::string>& global = {}) {
    compare(python_, "import ctypes, os\n" + code, global, 500, true);
  }
};

TEST_F(LoaderRules, RpathBeatsTheVariable) {
  const std::string a = end("a", "1");
  end("b", "2");
  const Variable variable("LD_LIBRARY_PATH", shop_.path("b"));
  same(open(mid("mid", a, {rpath("$ORIGIN/../a")})));
}
TEST_F(LoaderRules, TheVariableBeatsRunpath) {
  const std::string a = end("a", "1");
  end("b", "2");
  const Variable variable("LD_LIBRARY_PATH", shop_.path("nowhere") + ":" + shop_.path("b") + "/");
  same(open(mid("mid", a, {runpath("$ORIGIN/../a")})));
}
TEST_F(LoaderRules, RpathIsInheritedAndRunpathIsNot) {
  const std::string a = end("a", "1");
  const std::string m = mid("mid", a, {});
  same(open(shop_.shared("top/libtop.so", "int mid(void); int top(void) { return mid(); }\n",
                         {rpath("$ORIGIN/../mid:${ORIGIN}/../a"), m})));
}
TEST_F(LoaderRules, ASonameThatIsLoadedIsNotLookedForAgain) {
  const std::string a = end("a", "1"), b = end("b", "2");
  same(open(b) + open(mid("mid", a, {runpath("$ORIGIN/../a")})));
}
TEST_F(LoaderRules, TheSameFileByALinkIsTheSameObject) {
  const std::string a = end("a", "1");
  ASSERT_EQ(::symlink(a.c_str(), shop_.path("other.so").c_str()), 0);
  same(open(shop_.path("other.so")) + open(mid("mid", a, {runpath("$ORIGIN/../a")})));
}
TEST_F(LoaderRules, AGlobalLibraryComesBeforeTheOwnNeed) {
  const std::string a = end("a", "1");
  const std::string other = shop_.shared("g/libglobal.so", "int end(void) { return 3; }\n");
  same(open(other, "os.RTLD_GLOBAL") + open(mid("mid", a, {runpath("$ORIGIN/../a")})), {other});
}
TEST_F(LoaderRules, ALocalLibraryServesNobodyElse) {
  const std::string a = end("a", "1");
  const std::string other = shop_.shared("l/liblocal.so", "int end(void) { return 3; }\n");
  same(open(other) + open(mid("mid", a, {runpath("$ORIGIN/../a")})));
}
TEST_F(LoaderRules, WeakNamesMayStayUnbound) {
  same(open(
      shop_.shared("w/libweak.so",
                   "extern int nobody(void) __attribute__((weak)); extern int getpid(void) "
                   "__attribute__((weak)); int w(void) { return (nobody ? nobody() : 0) + getpid(); }\n")));
}
TEST_F(LoaderRules, VersionsChooseAmongDefinitions) {
  shop_.write("v.map", "ONE { global: vee; };\nTWO { global: vee; } ONE;\n");
  const std::string versioned =
      shop_.shared("v/libv.so",
                   "__asm__(\".symver one,vee@ONE\"); __asm__(\".symver two,vee@@TWO\");\n"
                   "int one(void) { return 1; } int two(void) { return 2; }\n",
                   {"-Wl,-soname,libv.so", "-Wl,--version-script," + shop_.path("v.map")});
  // A library without versions that defines the name first does not satisfy a need that names a file... glibc
  // takes it all the same: only a library with versions is asked for the right one.
  const std::string plain = shop_.shared("p/libp.so", "int vee(void) { return 0; }\n");
  const std::string user = shop_.shared("u/libu.so", "int vee(void); int u(void) { return vee(); }\n",
                                        {"-Wl,--no-as-needed", versioned, runpath("$ORIGIN/../v")});
  same(open(plain, "os.RTLD_GLOBAL") + open(user), {plain});
}

}  // namespace
}  // namespace scankit::probes
