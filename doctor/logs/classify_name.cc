// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "doctor/base/message.h"
#include "doctor/logs/classify.h"
#include "doctor/logs/known_names.h"

namespace scankit::logs {
namespace {

// Compiled modules that projects build beside their Python package and that no index has under these names.
// A log holds nothing but the name.
bool is_built_by_a_project(std::string_view last) {
  constexpr std::array kNames{"dropout_layer_norm",
                              "fused_dense_lib",
                              "rotary_emb",
                              "xentropy_cuda_lib",
                              "common_ops",
                              "ft_attention",
                              "MultiScaleDeformableAttention",
                              "amp_C",
                              "apex_C",
                              "syncbn",
                              "exllama_kernels",
                              "awq_inference_engine",
                              "pointops",
                              "libnatten",
                              "_mask",
                              "gpu_nms",
                              "cpu_nms",
                              "cython_nms",
                              "cython_bbox",
                              "fused_weight_gradient_mlp_cuda",
                              "pointgroup_ops",
                              "core_cc",
                              "tinycudann_bindings",
                              "exllamav2_ext",
                              "gptqmodel_exllama_kernels",
                              "transformer_engine_torch"};
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
  // Packages of an index.
  for (const std::string_view package : {"llama_cpp", "stable_diffusion_cpp", "whisper_cpp", "cuda_python",
                                         "cuda_bindings", "cuda_core", "cuda_pathfinder", "_cffi_backend"})
    if (module == package) return false;
  const auto dot = module.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? module : module.substr(dot + 1);
  return ends_with_any(last, {"_cuda", "_C", "_ext", "_kernels", "_cpp", "_gpu", "_cpu", "_backend",
                              "_backends", "Backend", "_plugin", "_bindings"}) ||
         starts_with_any(last, {"_C", "_ext", "_cuda", "cuda_", "DCN"}) ||
         last.find("_cuda_") != std::string_view::npos || is_built_by_a_project(last);
}

// A top-level name of one underscore is a compiled module beside a package, unless it is one of Python's own.
bool is_private_module(std::string_view name) {
  return name.starts_with('_') && name.find('.') == std::string_view::npos &&
         !starts_with_any(name, {"_ctypes",     "_sqlite3",        "_lzma",        "_bz2",
                                 "_tkinter",    "_curses",         "_ssl",         "_hashlib",
                                 "_posixshmem", "_distutils_hack", "_gdbm",        "_dbm",
                                 "_uuid",       "_winapi",         "_overlapped",  "_socket",
                                 "_struct",     "_decimal",        "_elementtree", "_bootlocale",
                                 "_pytest",     "_cffi_backend",   "_yaml",        "__"});
}

// The innermost frame is a file of an installed package, and nothing is being built.
bool is_called_by_a_package(const Surroundings& around) {
  return !around.building && around.caller.find("-packages/") != std::string::npos;
}

// The file of the program's own sources lies in the directory that should have the module: those are whole but for
// what a compiler makes.
bool is_next_to(const std::string& file, std::string name) {
  name.resize(name.rfind('.'));
  std::ranges::replace(name, '.', '/');
  const std::string directory = file.substr(0, file.rfind('/'));
  return file.find("-packages/") == std::string::npos && directory.ends_with('/' + name);
}

bool is_model_package(std::string_view name) { return name == "mamba_ssm" || name == "causal_conv1d"; }

// Packages with CUDA code of their own. Imported by a program, it is the package itself that is not installed; imported
// by an installed package, it is something that this one depends on.
bool is_extension_package(std::string_view name) {
  constexpr std::array kNames{"flash_attn",
                              "flash_attn_interface",
                              "xformers",
                              "apex",
                              "pointnet2_ops",
                              "spconv",
                              "detectron2",
                              "mmcv",
                              "torch_scatter",
                              "torch_sparse",
                              "torch_cluster",
                              "pytorch3d",
                              "MinkowskiEngine",
                              "tinycudann",
                              "gsplat",
                              "nvdiffrast",
                              "kaolin",
                              "sageattention",
                              "torchsparse",
                              "det3d",
                              "diff_gaussian_rasterization",
                              "simple_knn",
                              "diff_surfel_rasterization",
                              "fused_ssim",
                              "diff_gauss",
                              "lietorch",
                              "fast_hadamard_transform",
                              "block_sparse_attn",
                              "transformer_engine",
                              "flashinfer",
                              "sgl_kernel",
                              "vllm",
                              "deepspeed",
                              "bitsandbytes",
                              "dgl",
                              "torch_spline_conv",
                              "pyg_lib",
                              "torchmcubes",
                              "chamferdist",
                              "cumm",
                              "auto_gptq",
                              "exllamav2",
                              "dcnv3",
                              "DCNv3",
                              "DCNv4",
                              "nerfacc"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// Packages of Python itself, of which names were removed over the years: a package that still uses one is older
// than the interpreter.
bool is_of_python(std::string_view top) {
  constexpr std::array kNames{"collections", "typing",    "inspect",      "asyncio",   "fractions",
                              "math",        "importlib", "configparser", "ast",       "unittest",
                              "cgi",         "imp",       "gettext",      "platform",  "time",
                              "base64",      "xml",       "dataclasses",  "functools", "pipes",
                              "formatter",   "parser",    "binascii",     "logging"};
  return std::ranges::find(kNames, top) != kNames.end();
}

// A namespace of several distributions (PEP 420): Python finds its directory with any of them, and the part that it
// does not find is the one that is not installed.
bool is_in_a_namespace(std::string_view top, std::string_view name) {
  constexpr std::array kNames{"google", "ruamel",       "azure",  "nvidia",        "backports",
                              "zope",   "mpl_toolkits", "jaraco", "sphinxcontrib", "opentelemetry"};
  if (name.starts_with("google.cloud.")) return true;
  return std::ranges::find(kNames, top) != kNames.end() && std::ranges::count(name, '.') == 1;
}

// A class, as `import apex.optimizers.FusedAdam` takes it for a module.
bool is_named_like_a_class(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return name.size() > last.size() && last.size() > 3 && upper(last[0]) && lower(last[1]) &&
         std::ranges::count_if(last, upper) >= 2 && std::ranges::count(last, '_') == 0;
}

// What Python has on Unix only.
bool is_of_unix(std::string_view module, std::string_view name) {
  if (name.empty())
    return module == "fcntl" || module == "termios" || module == "resource" || module == "pwd" ||
           module == "grp";
  return (module == "signal" &&
          starts_with_any(name, {"SIGALRM", "SIGKILL", "SIGHUP", "SIGUSR", "SIGCHLD", "pthread_"})) ||
         (module == "os" && starts_with_any(name, {"fork", "uname", "getuid", "geteuid", "getgid", "setsid",
                                                   "killpg", "getpgid", "mkfifo", "sysconf", "wait4"}));
}

// Names that only the forks of mamba_ssm have, which Vim, LocalMamba and their descendants contain.
bool is_of_a_fork(std::string_view name) {
  return starts_with_any(name, {"mamba_inner_fn_no_out_proj", "bimamba_inner"});
}

}  // namespace

// torch, or a part of it, that Python did not find.
Judged judge_torch_module(const std::string& name, const Surroundings& around) {
  if (name == "torch" && around.building)
    return verdict("torch_missing_at_build", "certain",
                   message("the setup script imports torch, but the environment in which it runs has none"));
  if (name == "torch" && around.program)
    return verdict("missing_python_dependency", "likely", message("this Python has no torch"),
                   message("which Python ran: sys.executable"), {"torch_missing_at_build"});
  if (name == "torch")
    return verdict("torch_missing_at_build", "possible", message("this Python has no torch"),
                   message("whether it was a build, in which pip hides the installed torch, or a program"));
  // Builds for macOS, Windows and Jetson may leave parts out.
  if (name == "torch._C._distributed_c10d")
    return verdict("", "likely", message("this torch is built without {}", name),
                   message("torch.distributed.is_available()"), {"torch_incomplete"});
  if (name == "torch._C" || name.starts_with("torch._C."))
    return verdict("torch_incomplete", "likely",
                   message("torch's Python files are installed but its compiled part is not"),
                   message("whether the current directory contains a directory named torch"));
  if (is_young_module_of_torch(name))
    return verdict("torch_too_old_for_sources", "likely", message("this torch has no {}", name),
                   message("the torch release that the program was written for"),
                   {"torch_api_removed_in_source"});
  return verdict("torch_api_removed_in_source", "likely", message("this torch has no {}", name),
                 message("the torch release that the program was written for"));
}

namespace {

// A variant of selective_scan_cuda is built from the sources of its project; of any other module a file is missing.
Judged judge_compiled_module(const std::string& name) {
  if (name.starts_with("selective_scan_cuda_"))
    return verdict("module_not_built", "likely",
                   message("{} is a variant that the project builds from its own sources; mamba-ssm has no "
                           "module of that name",
                           name),
                   message("which selective_scan_cuda* files are installed"),
                   {"variant_name_mismatch", "project_module_missing"});
  return verdict("module_not_built", "likely",
                 message("this Python has no file of the compiled module {}", name),
                 message("the files of that name on sys.path, and their .cpython-3XY tags"),
                 {"python_abi_tag_mismatch", "variant_name_mismatch"});
}

}  // namespace

// Decides by the name of a module that Python did not find (ModuleNotFoundError).
Judged judge_module(const Captures& captures, const Surroundings& around) {
  const std::string name = captures.contains("name") ? capture(captures, "name") : capture(captures, "name2");
  const auto top = name.substr(0, name.find('.'));
  Judged judged;
  if (top == "torch")
    judged = judge_torch_module(name, around);
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
  else if (name.starts_with("selective_scan_cuda_") || looks_compiled(name) || is_private_module(name))
    judged = judge_compiled_module(name);
  else if (is_of_a_program(top))
    judged = verdict("", "certain",
                     message("the program does not find its own {}: it was started in another directory, or "
                             "its directory is not on sys.path",
                             name),
                     message("the current directory, and PYTHONPATH"));
  else if (top == name &&
           (is_model_package(name) || (is_extension_package(name) && around.program &&
                                       around.caller.find("/site-packages/") == std::string::npos)))
    judged =
        verdict("package_not_installed", "certain", message("the Python package {} is not installed", name),
                message("which Python ran: sys.executable"));
  else if (is_of_unix(name, ""))
    judged = verdict("windows", "likely", message("{} is a part of Python on Unix only", name),
                     message("the system on which the program runs"));
  else if (is_removed_from_python(name))
    judged = verdict("package_releases_differ", "likely",
                     message("this Python no longer has {}: the package that imports it is older", name),
                     message("the release of that package, and python --version"));
  // A top-level name that nothing above knows is a package that is missing; a dotted one is a part that an
  // installed package does not have.
  else if (top == name || is_in_a_namespace(top, name))
    judged = verdict("missing_python_dependency", "likely",
                     message("the Python package {} is not installed", name),
                     message("which Python ran: sys.executable"));
  else if (is_next_to(around.caller, name))
    judged =
        verdict("module_not_built", "possible",
                message("{} has no {} next to the file that imports it: most often a part that is compiled",
                        top, name),
                message("the setup.py of the project, and whether it was run"), {"package_releases_differ"});
  else if (is_named_like_a_class(name))
    judged = verdict("", "certain", message("{} is imported as a module and has the name of a class", name));
  // Python found the package, or it would have named that: the part is of another release.
  else
    judged = verdict("package_releases_differ", "likely",
                     message("the installed {} has no part {}: the program needs another release", top, name),
                     message("the release of {}", top), {"fork_needed"});
  judged.more["module"] = name;
  return judged;
}

namespace {

// Of a name without its package, as Python before 3.7 prints it. A program may lack one of its own names; what an
// installed package imports is another's.
Judged judge_name_alone(const std::string& name, const Surroundings& around) {
  if (is_of_a_fork(name))
    return verdict("fork_needed", "likely", message("no installed package has {}", name),
                   message("the directory of mamba in the repository"), {"package_releases_differ"});
  if (name.starts_with("flash_attn_") || is_called_by_a_package(around))
    return verdict("package_releases_differ", "possible",
                   message("an installed package has no {}, which another one imports", name),
                   message("the releases of both packages"));
  return verdict("", "certain", message("a package or file has no {}, which is imported from it", name));
}

// Of Python's os and signal, which have what the system has.
Judged posix_name(const std::string& package, const std::string& name) {
  if (is_of_unix(package, name))
    return verdict("windows", "likely", message("{}.{} is a part of Python on Unix only", package, name),
                   message("the system on which the program runs"));
  return verdict("", "certain", message("Python's {} has no {}", package, name));
}

Judged is_lacking(const std::string& package, const std::string& name, std::string cause, std::string sure,
                  std::vector<std::string> others) {
  return verdict(
      std::move(cause), std::move(sure),
      message("the installed {} has no {}, which is used from it", package, name),
      message("the release of {}, and the one that its caller names", package.substr(0, package.find('.'))),
      std::move(others));
}

// Without which torch is not whole, whatever its release.
bool is_a_part_of_torch(const std::string& package, const std::string& name) {
  return (package == "torch._C" && name.starts_with("_cuda_")) ||
         (package == "torch" && (name == "_C" || is_of_every_torch(name)));
}

Judged judge_part_of_torch(const std::string& package, const std::string& name) {
  if (package == "torch._C")
    return verdict("cpu_only_torch", "likely", message("this torch has no CUDA part: {}", name),
                   "torch.version.cuda", {"torch_incomplete"});
  if (name == "_C")
    return verdict("torch_incomplete", "likely",
                   message("torch's Python files were found without its compiled part"),
                   message("whether the current directory contains a directory named torch"));
  return verdict(
      "", "certain", message("what was imported as torch is not torch: it has no {}", name),
      message("torch.__file__, and whether the current directory contains a file or directory named torch"),
      {"torch_incomplete"});
}

// The functions of torchsparse's backend that are not for the CPU, by whose names the releases before 1.4 do not say it.
bool is_of_the_gpu(std::string_view package, std::string_view name) {
  return name.ends_with("_cuda") || name.starts_with("cuda_") || name.ends_with("_gpu") ||
         (package == "torchsparse_backend" && name.find("cpu") == std::string_view::npos);
}

}  // namespace

// Decides by a name that a package does not have, imported from it or asked of it. `place` is where Python found
// the package, "" where the log does not say it.
Judged judge_name(const Captures& captures, const Surroundings& around) {
  const auto either = [&](const std::string& one, const std::string& other) {
    return capture(captures, one).empty() ? capture(captures, other) : capture(captures, one);
  };
  const std::string name = either("name", "name2"), package = either("package", "package2");
  const std::string place = capture(captures, "place");
  const auto top = package.substr(0, package.find('.'));
  const bool installed = place.find("-packages") != std::string::npos;
  const auto lacks = [&](std::string cause, std::string sure, std::vector<std::string> others = {}) {
    return is_lacking(package, name, std::move(cause), std::move(sure), std::move(others));
  };
  Judged judged;
  if (is_a_part_of_torch(package, name)) judged = judge_part_of_torch(package, name);
  // Each project that renders Gaussians has its own changed copy of the rasteriser, under one name.
  else if ((top.starts_with("diff_gaussian_rasterization") && place.ends_with(".so")) ||
           (is_of_a_fork(name) && !package.empty()))
    judged = lacks("fork_needed", "likely", {"package_releases_differ"});
  else if ((looks_compiled(package) || package.ends_with(".backend")) && top != "torch" &&
           is_of_the_gpu(package, name))
    judged =
        verdict("built_without_cuda", "likely",
                message("the compiled part of {} has no {}: it was built without its CUDA code", top, name),
                message("whether nvcc and a GPU were found when it was built"), {"module_not_built"});
  else if (looks_compiled(name) || (looks_compiled(package) && package != "torch._C"))
    judged = verdict("module_not_built", "likely",
                     message("the compiled part of {} is missing, or was built without {}", top, name),
                     message("the files next to {}/__init__.py", top), {"package_releases_differ"});
  else if (top == "transformers")
    judged = lacks("transformers_incompatible", "certain");
  else if (package == "torch.utils._pytree")
    judged = verdict("transformers_incompatible", "likely",
                     message("this transformers needs a newer torch: torch has no {}", name),
                     message("the releases of torch and transformers"));
  else if (top == "triton")
    judged = lacks("triton_incompatible", "certain");
  else if (top == "pkg_resources" || top == "setuptools" || top == "distutils" || top == "pkgutil")
    judged = verdict("setuptools_parts_missing", "certain",
                     message("{} no longer has {}, which the build uses", package, name));
  else if (package.empty())
    judged = judge_name_alone(name, around);
  else if (top == "torch" && is_removed_from_torch(name) && !is_young_part_of_torch(package))
    judged = is_called_by_a_package(around)
                 ? lacks("package_releases_differ", "likely", {"torch_api_removed_in_source"})
                 : lacks("torch_api_removed_in_source", "likely", {"package_releases_differ"});
  // An installed package is not sources that could be built for this torch: another release of it is needed.
  else if (top == "torch" && (came_with_newer_torch(name) || is_young_part_of_torch(package)))
    judged = is_called_by_a_package(around)
                 ? lacks("package_releases_differ", "likely", {"torch_too_old_for_sources"})
                 : lacks("torch_too_old_for_sources", "likely", {"package_releases_differ"});
  else if (package == "os" || package == "signal")
    judged = posix_name(package, name);
  else if (is_of_a_program(top) && !installed)
    judged = verdict("", "certain", message("the program's own {} has no {}", package, name));
  else
    judged = lacks("package_releases_differ",
                   installed || is_of_python(top) || top == "torch" ? "likely" : "possible",
                   {"transformers_incompatible", "package_overwritten"});
  return judged;
}

// Decides by a call that Python refused. The arguments are the caller's: if that is an installed package, it was
// written for another release of what it calls. A program that calls wrongly is no fault of the installation.
Judged judge_call(const Captures& captures, const Surroundings& around) {
  const std::string function = capture(captures, "function");
  if (around.caller.find("-packages/") == std::string::npos)
    return verdict("", "certain", message("{} is called with arguments that it does not accept", function));
  return verdict("package_releases_differ", "possible",
                 message("{} calls {} with arguments that the installed release does not accept",
                         around.caller.substr(around.caller.rfind("-packages/") + 10), function),
                 message("the releases of both packages"), {"transformers_incompatible"});
}

}  // namespace scankit::logs
