// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/knowledge/cuda_support.h"
#include "doctor/preflight/checks/build_queries.h"

namespace scankit::preflight {
namespace {

// Whether this nvcc makes code for compute_ARCH ("90"). nvcc's own list decides, else a table by release.
// Nothing if neither says.
std::optional<bool> knows(const BuildTools& tools, const std::string& arch) {
  if (!tools.nvcc_archs.empty()) return std::ranges::find(tools.nvcc_archs, arch) != tools.nvcc_archs.end();
  return knowledge::nvcc_knows_arch(tools.nvcc_version, arch);
}

std::string number_of(const std::string& arch) {  // "9.0a+PTX" -> "90"
  std::string digits;
  for (const char c : arch.substr(0, arch.find('+')))
    if (c >= '0' && c <= '9') digits += c;
  return digits;
}

// The entries of TORCH_CUDA_ARCH_LIST as torch's cpp_extension reads it: separated by blanks or
// semicolons, with the names of generations ("Volta") replaced by its table.
std::vector<std::string> listed(const BuildTools& tools) {
  std::string list = tools.arch_list;
  std::ranges::replace(list, ' ', ';');
  for (const std::string& named : tools.named_archs) {
    const auto equals = named.find('=');
    const std::string name = named.substr(0, equals), value = named.substr(equals + 1);
    for (auto at = list.find(name); !name.empty() && at != std::string::npos;
         at = list.find(name, at + value.size()))
      list.replace(at, name.size(), value);
  }
  std::vector<std::string> archs(1);
  for (const char c : list) c == ';' ? archs.emplace_back() : archs.back() += c;
  return archs;
}

unsigned as_number(const std::string& digits) {
  unsigned number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// The GPUs from which torch derives the architectures if there is no list. It builds for each of them,
// but for nothing newer than the newest architecture that torch itself has code for.
std::vector<std::size_t> derived_from_gpus(const Snapshot& snapshot) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < snapshot.gpus.value.size(); ++i)
    if (!snapshot.gpus.value[i].sm.empty()) found.push_back(i);
  return found;
}

// The newest architecture of torch's own machine code, 0 if it is not known.
unsigned newest_of_torch(const Snapshot& snapshot) {
  unsigned newest = 0;
  for (const DeviceImage& image : snapshot.torch.value.images)
    if (image.kind == "cubin") newest = std::max(newest, image.sm);
  return newest;
}

// Collects what nvcc refuses over all places that ask for an architecture, and makes one finding of it.
class Question {
 public:
  explicit Question(const Snapshot& snapshot)
      : snapshot_(snapshot), tree_(snapshot.sources.value), tools_(snapshot.build_tools.value) {}

  // The build file's flags, then TORCH_CUDA_ARCH_LIST, then the GPUs here: only one of the
  // last two applies.
  checks::CheckResult answer() {
    for (const std::size_t i : in_force(snapshot_, tree_.archs))
      look(tree_.archs[i].value, place(tree_.archs[i]), source_evidence("archs", i, tree_.archs[i].value));
    // torch ignores its own list if the build's flags contain "arch".
    const bool by_torch = !tree_.passes_archs && !tree_.sets_arch_list && tree_.build_file == "setup.py";
    if (by_torch && !tools_.arch_list.empty() && tools_.arch_list != "native") look_at_list();
    if (by_torch && tools_.arch_list.empty()) look_at_gpus();
    conclude();
    return std::move(result_);
  }

 private:
  void look(const std::string& arch, const std::string& where, Evidence evidence) {
    const auto known = knows(tools_, arch);
    const std::string name = "compute_" + arch;
    if (!known)
      result_.not_checked.push_back(message("whether nvcc {} supports {}", tools_.nvcc_version, name));
    if (known != false) return;
    if (std::ranges::find(refused_, name) == refused_.end()) refused_.push_back(name);
    if (std::ranges::find(places_, where) == places_.end()) places_.push_back(where);
    evidence_.push_back(std::move(evidence));
  }

  void look_at_list() {
    for (const std::string& arch : listed(tools_)) {
      std::string plain = arch;
      if (plain.ends_with("+PTX")) plain.resize(plain.size() - 4);
      const auto& known = tools_.torch_archs;
      if (!known.empty() && std::ranges::find(known, plain) == known.end()) {
        refuse_for_torch(arch);
      } else if (const std::string digits = number_of(plain); !digits.empty()) {
        look(digits, "TORCH_CUDA_ARCH_LIST", {"/build_tools/value/arch_list", tools_.arch_list});
      }
    }
  }

  void look_at_gpus() {
    const unsigned newest = newest_of_torch(snapshot_);
    for (const std::size_t i : derived_from_gpus(snapshot_)) {
      const Gpu& gpu = snapshot_.gpus.value[i];
      const unsigned arch = std::min(as_number(gpu.sm), newest == 0 ? as_number(gpu.sm) : newest);
      look(std::to_string(arch), gpu.name.empty() ? fmt::format("GPU {}", gpu.index) : gpu.name,
           {"/gpus/value/" + std::to_string(i) + "/sm", gpu.sm});
    }
  }

  // An entry that torch itself refuses: "ValueError: Unknown CUDA arch (...) or GPU not supported".
  void refuse_for_torch(const std::string& arch) {
    Finding finding =
        build_finding(snapshot_, Cause::NvccUnknownArch,
                      message("TORCH_CUDA_ARCH_LIST contains \"{}\", which torch {} does not know", arch,
                              snapshot_.torch.value.version));
    finding.evidence = {{"/build_tools/value/arch_list", tools_.arch_list},
                        {"/torch/value/version", snapshot_.torch.value.version}};
    finding.fixes = build_fixes(snapshot_, shorter_list());
    result_.findings.push_back(std::move(finding));
  }

  // Suggests a list with the GPU that is here; without one, an example.
  Fix shorter_list() const {
    for (const Gpu& gpu : snapshot_.gpus.value)
      if (!gpu.sm.empty() && knows(tools_, gpu.sm) == true)
        return checks::shell_advice(build_command(snapshot_, "TORCH_CUDA_ARCH_LIST=" + dotted(gpu.sm)),
                                    checks::export_line("TORCH_CUDA_ARCH_LIST", dotted(gpu.sm)));
    return checks::shell_advice(
        message("use only architectures that nvcc --list-gpu-arch prints, for example 9.0: {}",
                build_command(snapshot_, "TORCH_CUDA_ARCH_LIST=9.0")),
        "export TORCH_CUDA_ARCH_LIST=9.0");
  }

  // The architecture to write in place of a refused one: that of the GPU here, else the oldest that this
  // nvcc makes, whose code runs on no older GPU anyway.
  std::string arch_instead() const {
    for (const Gpu& gpu : snapshot_.gpus.value)
      if (!gpu.sm.empty() && knows(tools_, gpu.sm) == true) return gpu.sm;
    std::string oldest;
    for (const std::string& arch : tools_.nvcc_archs)
      if (oldest.empty() || as_number(arch) < as_number(oldest)) oldest = arch;
    return oldest;
  }

  // Suggests an edit of the flags. A sed command is possible only if every refused architecture is
  // written literally on a known line.
  Fix other_flags() const {
    const Message words = message("remove {} from the flags at {}, then: {}", join(refused_), join(places_),
                                  build_command(snapshot_));
    const std::string instead = arch_instead();
    std::vector<std::string> edits;
    for (const std::size_t i : in_force(snapshot_, tree_.archs)) {
      const SourceFact& fact = tree_.archs[i];
      if (knows(tools_, fact.value) != false) continue;
      if (fact.line == 0 || instead.empty()) return Advice{words};
      std::string edit =
          checks::edit_command(tree_, fact, "\\(compute\\|sm\\)_" + fact.value, "\\1_" + instead);
      if (std::ranges::find(edits, edit) == edits.end()) edits.push_back(std::move(edit));
    }
    return edits.empty() ? Fix(Advice{words}) : checks::shell_advice(words, join(edits, " && "));
  }

  void conclude() {
    if (refused_.empty()) return;
    Finding finding = build_finding(snapshot_, Cause::NvccUnknownArch,
                                    message("nvcc {} does not support {}, requested by {}",
                                            tools_.nvcc_version, join(refused_), join(places_)));
    finding.evidence = std::move(evidence_);
    finding.evidence.push_back({"/build_tools/value/nvcc_version", tools_.nvcc_version});
    finding.fixes = build_fixes(snapshot_, tree_.passes_archs ? other_flags() : shorter_list());
    result_.findings.push_back(std::move(finding));
  }

  const Snapshot& snapshot_;
  const SourceTree& tree_;
  const BuildTools& tools_;
  checks::CheckResult result_;
  std::vector<std::string> refused_, places_;
  std::vector<Evidence> evidence_;
};

checks::CheckResult nvcc_knows_archs(const Snapshot& snapshot) { return Question(snapshot).answer(); }

}  // namespace

extern const checks::Check kNvccKnowsArchs{.id = "nvcc-knows-archs",
                                           .question = "Does nvcc support every requested GPU architecture?",
                                           .needs = checks::kSources,
                                           .not_applicable = needs_no_nvcc,
                                           .run = nvcc_knows_archs,
                                           .asked = sources_are_here};

namespace {

Message nothing_to_ask(const Snapshot& snapshot) {
  if (snapshot.gpus.present()) return message("a GPU is available to the build");
  return builds_no_python_module(snapshot);
}

// The sources call a function that fails without a GPU.
checks::CheckResult asks_itself(const Snapshot& snapshot, const SourceFact& fact, std::size_t i) {
  Finding finding = build_finding(
      snapshot, Cause::NoGpuAtBuild,
      message("{} calls {}, which raises an error without a GPU, as here", place(fact), fact.value));
  finding.evidence = {source_evidence("asks_gpu", i, fact.value)};
  finding.fixes = build_fixes(
      snapshot, Advice{message(
                    "build where the GPU is, or replace the call at {} with its compute capability, then: {}",
                    place(fact), build_command(snapshot))});
  return {{std::move(finding)}};
}

// Whether torch derives the architectures from the GPUs in this build. Its cpp_extension then takes the
// last element of the list, which is an IndexError without a GPU.
bool torch_asks(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  return tools.arch_list_needs_gpu && needs_no_nvcc(snapshot).empty() && !tree.passes_archs &&
         !tree.sets_arch_list && (tools.arch_list.empty() || tools.arch_list == "native") &&
         !snapshot.torch.value.cuda.empty();
}

checks::CheckResult build_needs_no_gpu(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  if (snapshot.gpus.state != ProbeState::Absent)
    return {{}, {}, {message("whether a GPU is available to the build: {}", snapshot.gpus.note)}};
  for (const std::size_t i : in_force(snapshot, tree.asks_gpu))
    return asks_itself(snapshot, tree.asks_gpu[i], i);
  if (!torch_asks(snapshot)) return {};
  // A helper module may set the list, and helpers are not read.
  if (tree.own_helpers)
    return {{},
            {},
            {message("whether a module that {} imports from its directory sets the architectures",
                     tree.build_file)}};
  Finding finding =
      build_finding(snapshot, Cause::NoGpuAtBuild,
                    message("neither {} nor TORCH_CUDA_ARCH_LIST sets an architecture, so torch "
                            "asks the GPUs, and none was found",
                            tree.build_file));
  finding.evidence = {{"/build_tools/value/arch_list", tools.arch_list},
                      {"/build_tools/value/arch_list_needs_gpu", "true"}};
  finding.fixes = build_fixes(
      snapshot,
      checks::shell_advice(message("set the compute capability of the GPU that will run it, for example 9.0 "
                                   "for an H100: {}",
                                   build_command(snapshot, "TORCH_CUDA_ARCH_LIST=9.0")),
                           "export TORCH_CUDA_ARCH_LIST=9.0"));
  return {{std::move(finding)}};
}

}  // namespace

extern const checks::Check kBuildNeedsNoGpu{.id = "build-needs-no-gpu",
                                            .question = "Can the build run without a GPU?",
                                            .needs = checks::kSources,
                                            .not_applicable = nothing_to_ask,
                                            .run = build_needs_no_gpu,
                                            .asked = sources_are_here};

}  // namespace scankit::preflight
