// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/preflight/checks/build_queries.h"

namespace scankit::preflight {
namespace {

// One bound on the host compiler that is not met.
struct Limit {
  Message text;             // whose demand it is
  std::string fact, value;  // where that is written
  unsigned wanted = 0;      // a gcc that would do, 0 for none known
};

// -std=c++20 is gcc's from 10 on (gcc manual: before, it was c++2a).
constexpr unsigned kGccForCxx20 = 10;

Limit limit(Message text, const char* field, unsigned bound, unsigned wanted) {
  return {std::move(text), std::string("/build_tools/value/") + field, std::to_string(bound), wanted};
}

// The bound of torch's headers, which every compilation obeys.
std::optional<Limit> limit_of_torch(const Snapshot& snapshot, bool gcc, unsigned number) {
  const BuildTools& tools = snapshot.build_tools.value;
  if (gcc && number < tools.gcc_min)
    return limit(message("torch's headers need gcc {} or newer", tools.gcc_min), "gcc_min", tools.gcc_min,
                 tools.gcc_min);
  if (gcc && snapshot.torch.value.cxx_standard == "20" && number < kGccForCxx20)
    return Limit{message("torch's headers are C++20, which gcc supports from {} on", kGccForCxx20),
                 "/torch/value/cxx_standard", "20", kGccForCxx20};
  return std::nullopt;
}

// The bounds of nvcc are in a header that each of its compilations includes (crt/host_config.h). torch's
// own are in cpp_extension and are narrower for some releases; they apply to the C++ compiler if a .cu
// file is compiled.
std::optional<Limit> limit_of_nvcc(const Snapshot& snapshot, const HostCompiler& compiler, unsigned number) {
  const BuildTools& tools = snapshot.build_tools.value;
  if (!needs_no_nvcc(snapshot).empty()) return std::nullopt;
  const bool gcc = compiler.kind == "gcc";
  const unsigned below = gcc ? tools.torch_gcc_below : tools.torch_clang_below;
  const bool by_torch = compiler.role == "C++" && builds_no_python_module(snapshot).empty() &&
                        (gcc || path_basename(compiler.path).starts_with("clang"));
  // A bound of 0 is unknown. For clang there is no version to suggest.
  if (by_torch && below != 0 && number >= below)
    return limit(
        message("torch rejects {} {} and newer with CUDA {}", compiler.kind, below, tools.nvcc_version),
        gcc ? "torch_gcc_below" : "torch_clang_below", below, gcc ? below - 1 : 0);
  if (compiler.role != "nvcc" || tools.limits_waived) return std::nullopt;
  if (gcc && tools.gcc_max != 0 && number > tools.gcc_max)
    return limit(message("nvcc {} supports gcc up to {}", tools.nvcc_version, tools.gcc_max), "gcc_max",
                 tools.gcc_max, tools.gcc_max);
  if (!gcc && tools.clang_max != 0 && number > tools.clang_max)
    return limit(message("nvcc {} supports clang up to {}", tools.nvcc_version, tools.clang_max), "clang_max",
                 tools.clang_max, 0);
  if (!gcc && number < tools.clang_min)
    return limit(message("nvcc {} supports clang {} and newer", tools.nvcc_version, tools.clang_min),
                 "clang_min", tools.clang_min, 0);
  return std::nullopt;
}

// The newest g++ on this machine that is neither newer than `newest` nor too old for torch; nullptr if
// there is none.
const Compiler* installed_gcc(const Snapshot& snapshot, unsigned newest) {
  const Compiler* best = nullptr;
  unsigned best_major = snapshot.build_tools.value.gcc_min;
  for (const Compiler& compiler : snapshot.compilers.value) {
    const auto version = Version::parse(compiler.version);
    const bool cxx = path_basename(compiler.path).find("g++") != std::string::npos;
    if (compiler.kind != "gcc" || !cxx || !version || version->part(0) > newest) continue;
    if (version->part(0) < best_major) continue;
    best = &compiler;
    best_major = version->part(0);
  }
  return best;
}

// In this order: a compiler that is here, one of conda, one of the distribution.
Fix other_compiler(const Snapshot& snapshot, const Limit& limit) {
  if (limit.wanted == 0)
    return Advice{message("select a gcc that both accept: {}", build_command(snapshot, "CC=gcc CXX=g++"))};
  if (const Compiler* fits = installed_gcc(snapshot, limit.wanted))
    return checks::shell_advice(message("select a gcc that both accept: {}",
                                        build_command(snapshot, "CXX=" + shell_quoted(fits->path))),
                                checks::export_line("CXX", fits->path));
  const std::string variables = fmt::format("CC=gcc-{0} CXX=g++-{0}", limit.wanted);
  if (snapshot.python.value.kind == "conda")
    return Advice{
        message("{} install -p {} -c conda-forge gxx_linux-64={}, activate the environment again, then: {}",
                conda_word(installers_of(snapshot)), shell_quoted(snapshot.python.value.prefix), limit.wanted,
                build_command(snapshot))};
  return Advice{message("install g++ {}, then: {}", limit.wanted, build_command(snapshot, variables))};
}

Finding compiler_not_there(const Snapshot& snapshot, const HostCompiler& compiler, const std::string& at) {
  Finding finding = build_finding(
      snapshot, Cause::HostCompilerUnsupported,
      compiler.role == "nvcc" ? message("nvcc's host compiler is {}, selected by {}, which does not "
                                        "exist",
                                        compiler.path, compiler.chosen_by)
                              : message("the C++ compiler is {}, selected by {}, which does not exist",
                                        compiler.path, compiler.chosen_by));
  finding.evidence = {{at + "/path", compiler.path}, {at + "/kind", ""}};
  finding.fixes = {Advice{message(
      "install g++ (Debian, Ubuntu: build-essential; Fedora, RHEL: gcc-c++), or select an installed one: {}",
      build_command(snapshot, "CC=gcc CXX=g++"))}};
  return finding;
}

// The first compiler with a problem is reported and no other: the same compiler often has both roles.
checks::CheckResult host_compiler_accepted(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  checks::CheckResult result;
  for (std::size_t i = 0; i < tools.host_compilers.size() && result.findings.empty(); ++i) {
    const HostCompiler& compiler = tools.host_compilers[i];
    if (compiler.role == "nvcc" && !needs_no_nvcc(snapshot).empty()) continue;
    const std::string at = "/build_tools/value/host_compilers/" + std::to_string(i);
    if (compiler.kind.empty()) {
      result.findings.push_back(compiler_not_there(snapshot, compiler, at));
      break;
    }
    const auto version = Version::parse(compiler.version);
    if (!version) {
      result.not_checked.push_back(message("{} does not report its version", compiler.path));
      continue;
    }
    auto broken = limit_of_torch(snapshot, compiler.kind == "gcc", version->part(0));
    if (!broken) broken = limit_of_nvcc(snapshot, compiler, version->part(0));
    if (!broken) continue;
    Finding finding = build_finding(snapshot, Cause::HostCompilerUnsupported,
                                    message("{}; {}, selected by {}, is {} {}", broken->text, compiler.path,
                                            compiler.chosen_by, compiler.kind, compiler.version));
    finding.evidence = {{at + "/version", compiler.version}, {broken->fact, broken->value}};
    finding.fixes = build_fixes(snapshot, other_compiler(snapshot, *broken));
    result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

extern const checks::Check kHostCompilerAccepted{.id = "host-compiler-accepted",
                                                 .question = "Do nvcc and torch support the C++ compiler?",
                                                 .needs = checks::kSources,
                                                 .not_applicable = nullptr,
                                                 .run = host_compiler_accepted,
                                                 .asked = sources_are_here};

namespace {

Message where_headers_come_from(const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  const auto version = Version::parse(python.version);
  const std::string series = version ? version->major_minor() : python.version;
  if (python.base_prefix == "/usr")
    return message(
        "install the headers of the distribution's Python: python{}-dev (Debian, Ubuntu), python3-devel "
        "(Fedora, RHEL)",
        series);
  if (python.kind == "conda")
    return message("{} install -p {} --force-reinstall python={}", conda_word(installers_of(snapshot)),
                   shell_quoted(python.prefix), series);
  return message(
      "recreate the environment with a Python that has its headers, for example with uv python install {}",
      series);
}

checks::CheckResult python_headers_found(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  checks::CheckResult result;
  if (tools.python_header) return result;
  if (tools.python_include.empty()) {
    result.not_checked = {message("where the headers of this Python should be")};
    return result;
  }
  const Python& python = snapshot.python.value;
  Finding finding = build_finding(
      snapshot, Cause::PythonHeadersMissing,
      message("every extension includes Python.h, and {}, the directory for Python {}, does not contain it",
              tools.python_include, python.version));
  finding.evidence = {{"/build_tools/value/python_header", "false"},
                      {"/build_tools/value/python_include", tools.python_include}};
  finding.fixes = build_fixes(snapshot, Advice{where_headers_come_from(snapshot)});
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kPythonHeadersFound{.id = "python-headers-found",
                                               .question = "Are the headers of this Python installed?",
                                               .needs = checks::kSources | checks::kPython,
                                               .not_applicable = builds_no_python_module,
                                               .run = python_headers_found,
                                               .asked = sources_are_here};

namespace {

// Why ninja is of no interest here: the build does not use it, or an isolated build brings it.
Message asks_for_none(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  if (!tree.wants_ninja) return message("the build does not use ninja");
  const bool brought = std::ranges::any_of(tree.build_requires, [](const std::string& requirement) {
    return normalized_name(requirement.substr(0, requirement.find_first_of(" <>=!~;[(@"))) == "ninja";
  });
  return brought ? message("pyproject.toml lists ninja as a build requirement") : "";
}

checks::CheckResult ninja_found(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  checks::CheckResult result;
  if (!snapshot.build_tools.value.ninja.empty()) return result;
  Finding finding = build_finding(snapshot, Cause::NinjaMissing,
                                  tree.sources.empty()
                                      ? message("ninja is neither on PATH nor in the environment, so torch "
                                                "compiles one file after the other")
                                      : message("ninja is neither on PATH nor in the environment, so torch "
                                                "compiles the files of {} one after the other: {}",
                                                tree.build_file, tree.sources.size()));
  finding.evidence = {{"/build_tools/value/ninja", ""}};
  finding.fixes = {InstallPackages{{"ninja"}}};
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kNinjaFound{.id = "ninja-found",
                                       .question = "Is ninja available to the build?",
                                       .needs = checks::kSources | checks::kPython,
                                       .not_applicable = asks_for_none,
                                       .run = ninja_found,
                                       .asked = sources_are_here};

}  // namespace scankit::preflight
