// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/module_names.h"

#include <algorithm>
#include <array>

#include "doctor/logs/classify.h"

namespace scankit::logs {
namespace {

// Compiled modules that projects build beside their Python package and that no index has under these names.
// A log holds nothing but the name.
bool is_built_by_a_project(std::string_view last) {
  constexpr std::array kListed{"dropout_layer_norm",
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
  return std::ranges::find(kListed, last) != kListed.end();
}

}  // namespace

// Names that programs give to their own files. That one is not found says where the program was started, not
// what is installed.
bool is_of_a_program(std::string_view name) {
  constexpr std::array kListed{"utils",    "util",     "models", "model",  "config", "configs", "data",
                               "dataset",  "datasets", "src",    "lib",    "libs",   "common",  "network",
                               "networks", "modules",  "tools",  "core",   "engine", "options", "train",
                               "test",     "tests",    "layers", "losses", "loss",   "helpers", "scripts",
                               "main",     "trainer",  "eval",   "metrics"};
  return std::ranges::find(kListed, name) != kListed.end();
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
         last.find("_cuda_") != std::string_view::npos || module.starts_with("_ext.") ||
         module.find("._ext.") != std::string_view::npos || is_built_by_a_project(last);
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

// Packages with CUDA code of their own. Imported by a program, it is the package itself that is not installed; imported
// by an installed package, it is something that this one depends on.
bool is_extension_package(std::string_view name) {
  constexpr std::array kListed{"flash_attn",
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
  return std::ranges::find(kListed, name) != kListed.end();
}

// A namespace of several distributions (PEP 420): Python finds its directory with any of them, and the part that it
// does not find is the one that is not installed.
bool is_in_a_namespace(std::string_view top, std::string_view name) {
  constexpr std::array kListed{"google", "ruamel",       "azure",  "nvidia",        "backports",
                               "zope",   "mpl_toolkits", "jaraco", "sphinxcontrib", "opentelemetry"};
  if (name.starts_with("google.cloud.")) return true;
  return std::ranges::find(kListed, top) != kListed.end() && std::ranges::count(name, '.') == 1;
}

// A class, as `import apex.optimizers.FusedAdam` takes it for a module.
bool is_named_like_a_class(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return name.size() > last.size() && last.size() > 3 && upper(last[0]) && lower(last[1]) &&
         std::ranges::count_if(last, upper) >= 2 && std::ranges::count(last, '_') == 0;
}

bool is_of_windows(std::string_view module) {
  constexpr std::array kListed{"winreg",  "msvcrt", "_winapi",     "winsound",
                               "_winreg", "nt",     "_overlapped", "msilib"};
  return std::ranges::find(kListed, module) != kListed.end();
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

// torchsparse's backend before 1.4 marks the functions for the CPU only.
bool is_of_the_gpu(std::string_view package, std::string_view name) {
  return name.ends_with("_cuda") || name.starts_with("cuda_") || name.ends_with("_gpu") ||
         (package == "torchsparse_backend" && name.find("cpu") == std::string_view::npos);
}

}  // namespace scankit::logs
