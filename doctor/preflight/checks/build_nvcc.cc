// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/preflight/checks/build_queries.h"

namespace scankit::preflight {
namespace {

// With a CPU build of torch, cpp_extension looks for no toolkit at all (CUDA_HOME stays unset).
Finding cpu_torch(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  Finding finding = build_finding(snapshot, Cause::CpuOnlyTorch,
                                  message("{} builds for CUDA, but torch {} is a CPU build, with which that "
                                          "build fails whatever toolkit is installed",
                                          tree.build_file, snapshot.torch.value.version));
  finding.evidence = {{"/torch/value/cuda", ""}, {"/torch/value/version", snapshot.torch.value.version}};
  finding.fixes = {Advice{message("install a CUDA build of torch, then: {}", build_command(snapshot))}};
  return finding;
}

checks::CheckResult nvcc_found(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  checks::CheckResult result;
  const bool setup = tree.build_file == "setup.py";
  if (setup && snapshot.torch.present() && snapshot.torch.value.cuda.empty()) {
    result.findings.push_back(cpu_torch(snapshot));
    return result;
  }
  // Without kernels, the toolkit's directory is enough: CUDAExtension joins paths to CUDA_HOME and raises
  // if that is unset.
  const bool home_is_enough = setup && !tools.cuda_home.empty() && !tree.has_kernels;
  if (!tools.nvcc.empty() || home_is_enough) return result;
  Finding finding = build_finding(snapshot, Cause::NvccMissing, "");
  finding.evidence = {{"/build_tools/value/nvcc", ""}, {"/build_tools/value/cuda_home", tools.cuda_home}};
  if (!setup)
    finding.summary = message(
        "{} enables the language CUDA, but nvcc was not found: CUDACXX is not set to one, and neither "
        "PATH nor /usr/local/cuda contains one",
        tree.build_file);
  else if (tools.cuda_home.empty())
    finding.summary = message(
        "{} builds for CUDA, but nvcc was not found: CUDA_HOME and CUDA_PATH are not set, it is not on "
        "PATH, and /usr/local/cuda does not exist",
        tree.build_file);
  else
    finding.summary = message(
        "{} builds for CUDA, and torch uses {} as the toolkit, because of {}; that directory contains "
        "no bin/nvcc",
        tree.build_file, tools.cuda_home, tools.cuda_home_from);
  finding.fixes = build_fixes(snapshot, toolkit_fix(snapshot, snapshot.torch.value.cuda, finding.evidence));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kNvccFound{.id = "nvcc-found",
                                      .question = "Is nvcc available to the build?",
                                      .needs = checks::kSources,
                                      .not_applicable = needs_no_cuda,
                                      .run = nvcc_found,
                                      .asked = sources_are_here};

namespace {

// The first CUDA release whose nvcc compiles a C++ standard (CUDA release notes: C++17 with 11.0, C++20
// with 12.0); "" for another standard.
std::string release_for(const std::string& standard) {
  if (standard == "17") return "11.0";
  return standard == "20" ? "12.0" : "";
}

checks::CheckResult nvcc_new_enough(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  const auto nvcc = Version::parse(tools.nvcc_version);
  checks::CheckResult result;
  if (!nvcc) {
    result.not_checked = {message("{} does not report its release", tools.nvcc)};
    return result;
  }
  // Makes the finding; `least` is the CUDA release to install if torch names none.
  const auto raise = [&](const std::string& least, Message summary, Evidence evidence) {
    Finding finding = build_finding(snapshot, Cause::OldCudaToolkit, std::move(summary));
    finding.evidence = {{"/build_tools/value/nvcc_version", tools.nvcc_version}, std::move(evidence)};
    const std::string& cuda = snapshot.torch.value.cuda;
    finding.fixes = build_fixes(snapshot, Advice{toolkit_advice(snapshot, cuda.empty() ? least : cuda)});
    result.findings.push_back(std::move(finding));
  };
  // What the build file demands is reported first: its own message ends the build before torch's
  // headers are compiled.
  for (const std::size_t i : in_force(snapshot, tree.minimum_cuda)) {
    const SourceFact& demand = tree.minimum_cuda[i];
    const auto least = Version::parse(demand.value);
    if (!least || *nvcc >= *least) continue;
    raise(demand.value,
          message("{} rejects CUDA older than {}; {} is from CUDA {}", place(demand), demand.value,
                  tools.nvcc, tools.nvcc_version),
          source_evidence("minimum_cuda", i, demand.value));
    return result;
  }
  const std::string& standard = snapshot.torch.value.cxx_standard;
  const auto least = Version::parse(release_for(standard));
  if (least && *nvcc < *least)
    raise(release_for(standard),
          message(
              "the headers of torch {} are C++{}, which nvcc supports from CUDA {} on; {} is from CUDA {}",
              snapshot.torch.value.version, standard, release_for(standard), tools.nvcc, tools.nvcc_version),
          {"/torch/value/cxx_standard", standard});
  return result;
}

}  // namespace

extern const checks::Check kNvccNewEnough{
    .id = "nvcc-new-enough",
    .question = "Is nvcc new enough for the sources and torch's headers?",
    .needs = checks::kSources,
    .not_applicable = needs_no_nvcc,
    .run = nvcc_new_enough,
    .asked = sources_are_here};

namespace {

// torch's CMake files do not compare versions, and what mixed major versions do is not known
// before the link.
Message nobody_compares(const Snapshot& snapshot) {
  if (Message why = needs_no_nvcc(snapshot); !why.empty()) return why;
  return builds_no_python_module(snapshot);
}

// torch.utils.cpp_extension refuses another major version of CUDA and only warns about another
// minor version.
checks::CheckResult nvcc_matches_torch(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  const std::string &nvcc = tools.nvcc_version, &cuda = snapshot.torch.value.cuda;
  checks::CheckResult result;
  if (cuda.empty() || major_of(nvcc) == major_of(cuda)) return result;
  if (nvcc.empty()) {
    result.not_checked = {message("{} does not report its release", tools.nvcc)};
    return result;
  }
  Finding finding = build_finding(
      snapshot, Cause::CudaVersionMismatchBuild,
      message("torch {} is built with CUDA {} and its build rejects an nvcc of another major version; {} is "
              "from CUDA {}",
              snapshot.torch.value.version, cuda, tools.nvcc, nvcc));
  finding.evidence = {{"/build_tools/value/nvcc_version", nvcc}, {"/torch/value/cuda", cuda}};
  finding.fixes = build_fixes(snapshot, toolkit_fix(snapshot, cuda, finding.evidence));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kNvccMatchesTorch{
    .id = "nvcc-matches-torch",
    .question = "Does nvcc have the CUDA major version that torch was built with?",
    .needs = checks::kSources | checks::kTorch,
    .not_applicable = nobody_compares,
    .run = nvcc_matches_torch,
    .asked = sources_are_here};

namespace {

Message no_toolkit(const Snapshot& snapshot) {
  if (Message why = needs_no_cuda(snapshot); !why.empty()) return why;
  return snapshot.build_tools.value.nvcc.empty() ? message("nvcc not found") : "";
}

// An nvcc package of conda or a distribution may come without the headers of cuBLAS and the other
// libraries, which torch's headers include.
checks::CheckResult cuda_headers_found(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  checks::CheckResult result;
  if (tools.headers.empty()) {
    result.not_checked = {
        message("which CUDA headers the sources include, because the build file does not list its files")};
    return result;
  }
  Finding finding = build_finding(snapshot, Cause::CudaHeadersMissing, "");
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < tools.headers.size(); ++i) {
    if (!tools.headers[i].path.empty()) continue;
    missing.push_back(tools.headers[i].name);
    finding.evidence.push_back({"/build_tools/value/headers/" + std::to_string(i) + "/name", missing.back()});
  }
  if (missing.empty()) return result;
  finding.evidence.push_back({"/build_tools/value/cuda_home", tools.cuda_home});
  finding.summary = message(
      "the toolkit {} has an nvcc but lacks headers that the sources include, directly or through "
      "torch's headers: {}",
      tools.cuda_home, join(missing));
  const std::string& version = tools.nvcc_version.empty() ? snapshot.torch.value.cuda : tools.nvcc_version;
  finding.fixes = build_fixes(snapshot, toolkit_fix(snapshot, version, finding.evidence));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const checks::Check kCudaHeadersFound{
    .id = "cuda-headers-found",
    .question = "Does the toolkit contain the CUDA headers that the sources include?",
    .needs = checks::kSources,
    .not_applicable = no_toolkit,
    .run = cuda_headers_found,
    .asked = sources_are_here};

}  // namespace scankit::preflight
