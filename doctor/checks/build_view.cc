// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/build_view.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/model/installers.h"

namespace scankit {
namespace {

bool is_installed(const Snapshot& snapshot, const std::string& module) {
  const auto copy = selected_copy(snapshot, module);
  return copy && static_obstacle(snapshot, **copy) == "";
}

// What the folder builds is there already, as far as anybody looked.
bool already_installed(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  bool looked_at = false;
  for (const std::string& module : tree.modules) {
    if (std::ranges::find(snapshot.modules, module) == snapshot.modules.end()) continue;
    if (!is_installed(snapshot, module)) return false;
    looked_at = true;
  }
  if (looked_at) return true;
  return std::ranges::any_of(snapshot.distributions.value, [&](const Distribution& distribution) {
    return package_key(distribution.name) == package_key(tree.name);
  });
}

}  // namespace

Finding build_finding(const Snapshot& snapshot, Cause cause, std::string summary) {
  const SourceTree& tree = snapshot.sources.value;
  Finding finding{.cause = cause,
                  .subject = path_join(tree.folder, tree.build_file),
                  .module = tree.modules.empty() ? tree.name : tree.modules.front(),
                  .summary = std::move(summary)};
  // Which libtorch CMake will find is not known before it runs.
  const bool of_this_torch = builds_no_python_module(snapshot).empty();
  if (!tree.asked && (!of_this_torch || already_installed(snapshot)))
    finding.severity_override = Severity::Warning;
  return finding;
}

bool sources_are_here(const Snapshot& snapshot) {
  return snapshot.sources.state != ProbeState::Absent && snapshot.sources.state != ProbeState::NotRun;
}

std::string needs_no_cuda(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  if (tree.cuda.empty()) return say("{} builds nothing for CUDA", tree.build_file);
  if (!snapshot.torch.value.hip.empty()) return say("torch is a ROCm build");
  if (in_force(snapshot, tree.cuda).empty())
    return say("whether {} builds for CUDA here depends on conditions that are not understood",
               place(tree.cuda[0]));
  return "";
}

std::string needs_no_nvcc(const Snapshot& snapshot) {
  if (std::string why = needs_no_cuda(snapshot); !why.empty()) return why;
  if (!snapshot.sources.value.has_kernels) return say("no .cu file is compiled");
  return snapshot.build_tools.value.nvcc.empty() ? say("there is no nvcc") : "";
}

std::string builds_no_python_module(const Snapshot& snapshot) {
  return snapshot.sources.value.build_file == "setup.py" ? "" : say("CMake builds no module of this Python");
}

Evidence source_evidence(const std::string& list, std::size_t i, std::string value) {
  return {"/sources/value/" + list + "/" + std::to_string(i) + "/value", std::move(value)};
}

std::string place(const SourceFact& fact) {
  return fact.line == 0 ? fact.file : fact.file + ":" + std::to_string(fact.line);
}

std::string word_for_shell(const std::string& word) {
  const bool plain = std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-+./=:,@").find(c) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string build_command(const Snapshot& snapshot, const std::string& variables) {
  const Python& python = snapshot.python.value;
  const SourceTree& tree = snapshot.sources.value;
  const std::string folder = word_for_shell(tree.folder);
  const std::string before = variables.empty() ? "" : variables + " ";
  if (tree.build_file != "setup.py")
    return before + "cmake -S " + folder + " -B " + word_for_shell(tree.folder + "/build");
  const std::string program = word_for_shell(python.requested.empty() ? python.executable : python.requested);
  const Installers here = installers_of(snapshot);
  const bool by_base = !python.has_pip && here.uv.empty() && !here.base_pip.empty();
  const std::string installer =
      python.has_pip ? program + " -m pip install"
      : by_base      ? join({word_for_shell(here.base_pip), "-m pip --python", program, "install"}, " ")
                     : "uv pip install --python " + program;
  const std::string prefix = python.has_pip || by_base ? pip_prefix(here, python) : "";
  return before + prefix + installer + " --no-build-isolation " + folder;
}

std::vector<Fix> build_fixes(const Snapshot& snapshot, Fix otherwise) {
  std::vector<Fix> fixes{std::move(otherwise)};
  for (const std::string& module : snapshot.sources.value.modules) {
    auto own = module_fixes(snapshot, module, "");
    if (std::holds_alternative<InstallModule>(own.front())) fixes.push_back(std::move(own.front()));
  }
  return fixes;
}

std::string toolkit_advice(const Snapshot& snapshot, const std::string& version) {
  const Python& python = snapshot.python.value;
  if (version.empty())
    return say("install a CUDA toolkit of torch's major version and set CUDA_HOME to its folder");
  if (python.kind == "conda")
    return say("conda install -p {} -c nvidia cuda-toolkit={}, then export CUDA_HOME={}",
               word_for_shell(python.prefix), version, word_for_shell(python.prefix));
  return say(
      "install the CUDA toolkit {} with its development headers, then export CUDA_HOME=/usr/local/cuda-{}",
      version, version);
}

Fix toolkit_fix(const Snapshot& snapshot, const std::string& version, std::vector<Evidence>& evidence) {
  const auto& toolkits = snapshot.toolkits.value;
  for (std::size_t i = 0; i < toolkits.size() && !version.empty(); ++i) {
    if (major_of(toolkits[i].version) != major_of(version) ||
        toolkits[i].root == snapshot.build_tools.value.cuda_home)
      continue;
    evidence.push_back({"/toolkits/value/" + std::to_string(i) + "/root", toolkits[i].root});
    return SetEnvironment{"CUDA_HOME", toolkits[i].root};
  }
  return Advice{toolkit_advice(snapshot, version)};
}

std::string major_of(const std::string& version) { return version.substr(0, version.find('.')); }

std::string dotted(const std::string& arch) {
  return arch.size() < 2 ? arch : arch.substr(0, arch.size() - 1) + "." + arch.back();
}

}  // namespace scankit
