// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "doctor/base/message.h"
#include "doctor/logs/classify.h"
#include "doctor/logs/judging.h"

namespace scankit {
namespace {

// Compiled modules that projects build beside their Python package and that no index has under these names.
// A log holds nothing but the name.
bool is_built_by_a_project(std::string_view last) {
  constexpr std::array kNames{"dropout_layer_norm",
                              "fused_dense_lib",
                              "rotary_emb",
                              "xentropy_cuda_lib",
                              "ft_attention",
                              "MultiScaleDeformableAttention",
                              "amp_C",
                              "apex_C",
                              "syncbn",
                              "exllama_kernels",
                              "awq_inference_engine",
                              "pointops",
                              "libnatten",
                              "fused_weight_gradient_mlp_cuda",
                              "pointgroup_ops",
                              "core_cc"};
  return std::ranges::find(kNames, last) != kNames.end();
}

// Names that programs give to their own files. That one is not found says where the program was started, not
// what is installed.
bool is_of_a_program(std::string_view name) {
  constexpr std::array kNames{"utils",    "util",     "models", "model",  "config", "configs", "data",
                              "dataset",  "datasets", "src",    "lib",    "libs",   "common",  "network",
                              "networks", "modules",  "tools",  "core",   "engine", "options", "train",
                              "test",     "tests",    "layers", "losses", "loss",   "helpers", "scripts",
                              "main",     "trainer",  "eval",   "metrics"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// Names that projects give to their compiled modules: mamba's selective_scan_cuda, torchvision's _C, and
// so on. A missing module of such a name was not built; any other is a package to install.
bool looks_compiled(std::string_view module) {
  const auto dot = module.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? module : module.substr(dot + 1);
  return ends_with_any(last, {"_cuda", "_C", "_ext", "_kernels", "_cpp", "_gpu", "_ops_cuda"}) ||
         starts_with_any(last, {"_C", "_ext", "_cuda"}) || last.find("_cuda_") != std::string_view::npos ||
         is_built_by_a_project(last);
}

bool is_model_package(std::string_view name) { return name == "mamba_ssm" || name == "causal_conv1d"; }

}  // namespace

// Decides by the name of a module that Python did not find (ModuleNotFoundError).
Judged judge_module(const Captures& captures, const Surroundings& around) {
  const std::string name = capture(captures, "name");
  const auto top = name.substr(0, name.find('.'));
  Judged judged;
  if (name == "torch" && around.building)
    judged =
        verdict("torch_missing_at_build", "certain",
                message("the setup script imports torch, but the environment in which it runs has none"));
  else if (name == "torch" && around.program)
    judged = verdict("missing_python_dependency", "likely", message("this Python has no torch"),
                     message("which Python ran: sys.executable"), {"torch_missing_at_build"});
  else if (name == "torch")
    judged = verdict("torch_missing_at_build", "possible", message("this Python has no torch"),
                     message("whether it was a build, in which pip hides the installed torch, or a program"));
  else if (name == "torch._C" || name.starts_with("torch._C."))
    judged = verdict("torch_incomplete", "likely",
                     message("torch's Python files are installed but its compiled part is not"),
                     message("whether the current directory contains a directory named torch"));
  else if (top == "torch")
    judged = verdict("torch_api_removed_in_source", "likely", message("this torch has no {}", name),
                     message("the torch release that the program was written for"));
  else if (top == "triton")
    judged = verdict("triton_incompatible", "certain", message("{} is not installed", name));
  else if (top == "transformers")
    judged = verdict("transformers_incompatible", "likely", message("this transformers has no {}", name),
                     message("the release of transformers"));
  else if (name == "ninja")
    judged = verdict("ninja_missing", "certain", message("Python has no ninja"));
  else if (name == "causal_conv1d.cpp_functions")
    judged = verdict("silent_none_causal_conv1d", "likely",
                     message("this causal-conv1d is older than the mamba-ssm that calls it"),
                     message("the releases of both packages"));
  else if (name.starts_with("selective_scan_cuda_"))
    judged =
        // A top-level name that nothing above knows is a package that is missing; a dotted one is a part
        // that an installed package does not have.
        verdict("variant_name_mismatch", "likely",
                message("{} is a variant that another project builds; mamba-ssm has no module of that name",
                        name),
                message("which selective_scan_cuda* files are installed"), {"module_not_built"});
  else if (looks_compiled(name))
    judged = verdict("module_not_built", "likely",
                     message("this Python has no file of the compiled module {}", name),
                     message("the files of that name on sys.path, and their .cpython-3XY tags"),
                     {"python_abi_tag_mismatch", "variant_name_mismatch"});
  else if (is_of_a_program(top))
    judged = verdict("", "certain",
                     message("the program does not find its own {}: it was started in another directory, or "
                             "its directory is not on sys.path",
                             name),
                     message("the current directory, and PYTHONPATH"));
  else if (top == name && is_model_package(name))
    judged =
        verdict("package_not_installed", "certain", message("the Python package {} is not installed", name),
                message("which Python ran: sys.executable"));
  else if (top == name)
    judged = verdict("missing_python_dependency", "likely",
                     message("the Python package {} is not installed", name),
                     message("which Python ran: sys.executable"));
  else if (top == "mamba_ssm" || top == "timm" || top == "mmcv" || top == "mmdet" || top == "natten" ||
           top == "torchvision" || top == "flash_attn" || top == "diffusers" || top == "numpy")
    judged = verdict("package_releases_differ", "likely",
                     message("the installed {} has no part {}: the program needs another release", top, name),
                     message("the release of {}", top), {"fork_needed"});
  else
    judged = verdict("", "certain", message("the installed {} has no part {}", top, name),
                     message("the release of {}", top));
  judged.more["module"] = name;
  return judged;
}

}  // namespace scankit
