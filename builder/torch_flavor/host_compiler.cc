// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "builder/torch_flavor/torch_flavor.h"
#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/probes/python/python.h"

namespace scankit::torch_flavor {
namespace {

// A name with a slash is a path; any other is looked up on PATH. "" if there is no such program.
std::string which(const Host& host, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    std::string file = path_normalize(path_join(current_directory(), name));
    return host.is_program(file) ? file : "";
  }
  for (const std::string& folder :
       split_nonempty(host.env("PATH").value_or("/usr/local/bin:/usr/bin:/bin"), ":"))
    if (std::string file = path_join(folder, name); host.is_program(file)) return file;
  return "";
}

// The value of `#define NAME value`; "" if the macro is not defined.
std::string macro(std::string_view macros, std::string_view name) {
  const std::string line = std::string("#define ").append(name).append(" ");
  const auto at = macros.find(line);
  if (at == std::string_view::npos) return "";
  const auto begin = at + line.size();
  return std::string(macros.substr(begin, std::min(macros.find('\n', begin), macros.size()) - begin));
}

unsigned long number(std::string_view macros, std::string_view name) {
  return std::strtoul(macro(macros, name).c_str(), nullptr, 10);
}

std::string macro_version(std::string_view macros, const char* major, const char* minor, const char* patch) {
  return macro(macros, major) + "." + macro(macros, minor) + "." + macro(macros, patch);
}

// The value of __cplusplus for each ISO C++ standard. A compiler that knows the flag but not all of the
// language defines a smaller one: gcc 10 has 201709 for -std=c++20, and torch's headers refuse it.
unsigned long cplusplus_of(const std::string& standard) {
  return standard == "17" ? 201703 : standard == "20" ? 202002 : standard == "23" ? 202302 : 201402;
}

std::string first_error_line(const std::string& log) {
  std::istringstream lines(log);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (first.empty()) first = line;
    if (line.find("error") != std::string::npos) return line;
  }
  return first;
}

// Preprocesses one include with the flags of the build. <cstddef> is there to find the standard library's
// headers: clang, or a gcc without libstdc++-dev, starts well and has none.
Result<ProcessResult> ask_compiler(const CxxCompiler& compiler, const CxxDemand& demand) {
  ProcessRequest request;
  request.argv = compiler.argv;
  for (const char* word : {"-dM", "-E", "-x", "c++", "-"}) request.argv.emplace_back(word);
  request.argv.push_back("-std=c++" + demand.standard);
  request.argv.emplace_back(string_abi_flag(demand.string_abi));
  request.standard_input = "#include <cstddef>\n";
  request.timeout = std::chrono::seconds(20);
  return run_process(request);
}

// Runs the compiler and judges its answer; as root, another user's compiler is not run.
Result<void> examine(const Host& host, const CxxDemand& demand, CxxCompiler& compiler) {
  const std::string& path = compiler.argv.front();
  if (const auto foreign = probes::foreign_to_root(host, path))
    return Error{
        Errc::PermissionDenied,
        message("{} belongs to user {}, and root would run that user's code", foreign->path, foreign->uid),
        ""};
  SCANKIT_TRY(const ProcessResult answer, ask_compiler(compiler, demand));
  if (answer.timed_out)
    return Error{Errc::Timeout, message("{} did not respond within 20 seconds", join(compiler.argv, " ")),
                 ""};
  if (!answer.ok())
    return Error{Errc::Unsupported,
                 message("{} cannot compile C++{}: {}", join(compiler.argv, " "), demand.standard,
                         first_error_line(answer.err)),
                 ""};
  SCANKIT_CHECK(judge_cxx_compiler(answer.out, demand, compiler));
  SCANKIT_TRY(const std::string program, sha256_file(path));
  compiler.sha256 = sha256_hex(answer.out + program);
  return {};
}

std::string condas_compiler() { return std::string(kMachine) + "-conda-linux-gnu-c++"; }

std::vector<std::string> usual_names() {
  std::vector<std::string> names = {"g++", "c++", condas_compiler(), "clang++"};
  for (const char* kind : {"g++-", "clang++-"})
    for (unsigned release = 24; release >= 9; --release) names.push_back(kind + std::to_string(release));
  return names;
}

std::string how_to_get_one(const CxxDemand& demand) {
  const unsigned gcc = demand.standard == "17" ? std::max(demand.gcc_min, 9U) : std::max(demand.gcc_min, 11U);
  return say(
      "install g++ {} or newer (Debian, Ubuntu: build-essential; Fedora, RHEL: gcc-c++; conda: "
      "gxx_linux-64), or choose one: CXX=g++-{}; without --flavor torch no compiler is needed",
      gcc, gcc);
}

// $CXX may have several words, "ccache g++"; the first is the program. If it does not fit, no other is taken
// in its place: the user has named one.
Result<CxxCompiler> named_by_user(const Host& host, const std::string& cxx, const CxxDemand& demand) {
  CxxCompiler compiler;
  compiler.argv = split_nonempty(cxx, " ");
  compiler.chosen_by = "CXX";
  const std::string name = compiler.argv.empty() ? cxx : compiler.argv.front();
  const std::string path = which(host, name);
  if (path.empty())
    return Error{Errc::NotFound, message("CXX selects the compiler {}, which does not exist", name),
                 how_to_get_one(demand)};
  compiler.argv.front() = path;
  if (auto fits = examine(host, demand, compiler); !fits)
    return Error{fits.error().code, message("CXX selects an unsuitable compiler: {}", fits.error().message),
                 how_to_get_one(demand)};
  return compiler;
}

}  // namespace

std::string string_abi_flag(const std::string& string_abi) {
  return std::string("-D_GLIBCXX_USE_CXX11_ABI=") + (string_abi == "new" ? "1" : "0");
}

Result<void> judge_cxx_compiler(std::string_view macros, const CxxDemand& demand, CxxCompiler& compiler) {
  // clang defines __GNUC__ as well, as gcc 4.2, so that gcc's floor does not apply to it.
  const bool clang = !macro(macros, "__clang_major__").empty();
  compiler.kind = clang ? "clang" : "gcc";
  compiler.version = clang
                         ? macro_version(macros, "__clang_major__", "__clang_minor__", "__clang_patchlevel__")
                         : macro_version(macros, "__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__");
  const std::string what = say("{} is {} {}", join(compiler.argv, " "), compiler.kind, compiler.version);
  const auto lacks = [&](std::string why) { return Error{Errc::Unsupported, std::move(why), ""}; };
  if (!clang && number(macros, "__GNUC__") < demand.gcc_min)
    return lacks(say("{}, and torch's headers need gcc {} or newer", what, demand.gcc_min));
  if (number(macros, "__cplusplus") < cplusplus_of(demand.standard))
    return lacks(
        say("{}, and torch's headers need C++{}, which it does not fully support", what, demand.standard));
  if (macro(macros, "__" + std::string(kMachine) + "__").empty() || !macro(macros, "__ILP32__").empty())
    return lacks(say("{}, which compiles for another processor: {} is needed", what, kMachine));
  if (!macro(macros, "_LIBCPP_VERSION").empty())
    return lacks(say("{} uses libc++, and torch is built with libstdc++", what));
  // A libstdc++ without both (devtoolset on RHEL 7) takes the flag and keeps to the old one.
  if (number(macros, "_GLIBCXX_USE_CXX11_ABI") != (demand.string_abi == "new" ? 1 : 0))
    return lacks(say("{}, which does not support the {} that torch is built with", what,
                     demand.string_abi == "new" ? "CXX11 ABI" : "pre-CXX11 ABI"));
  return {};
}

Result<CxxCompiler> choose_cxx_compiler(const Host& host, const Snapshot& snapshot, const CxxDemand& demand) {
  if (const std::string cxx = host.env("CXX").value_or(""); !cxx.empty())
    return named_by_user(host, cxx, demand);
  std::vector<std::string> names = usual_names();
  if (!snapshot.python.value.prefix.empty())  // conda's, where the environment is not activated
    names.push_back(path_join(snapshot.python.value.prefix, "bin/" + condas_compiler()));
  Message lacking;
  std::vector<std::string> seen;
  for (const std::string& name : names) {
    const std::string path = which(host, name);
    const std::string real = host.realpath(path).value_or("");
    if (path.empty() || std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    CxxCompiler compiler;
    compiler.argv = {path};
    compiler.chosen_by = "PATH";
    const auto fits = examine(host, demand, compiler);
    if (fits) return compiler;
    lacking = clauses_of({lacking, fits.error().message});
  }
  if (lacking.empty())
    return Error{Errc::NotFound,
                 message("the torch flavor is compiled with your C++ compiler, and PATH contains neither g++ "
                         "nor clang++"),
                 how_to_get_one(demand)};
  return Error{Errc::Unsupported, message("no suitable C++ compiler on PATH: {}", lacking),
               how_to_get_one(demand)};
}

}  // namespace scankit::torch_flavor
