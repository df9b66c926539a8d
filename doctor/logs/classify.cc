// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/classify.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "doctor/base/files.h"
#include "doctor/base/message.h"

namespace scankit::logs {
namespace {

// Headers that came with C11 and with C++17 and later: a compiler without them is older than the
// sources expect.
bool is_standard_header(std::string_view name) {
  constexpr std::array kNames{"stdatomic.h",     "optional", "variant",   "string_view",
                              "filesystem",      "any",      "charconv",  "concepts",
                              "compare",         "span",     "ranges",    "version",
                              "source_location", "bit",      "execution", "memory_resource"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

// "" if the rule captured nothing under this name.
std::string capture(const Captures& captures, const std::string& name) {
  const auto found = captures.find(name);
  return found == captures.end() ? "" : found->second;
}

// "" for a library ("lib...") and for a file that is not a shared library.
std::string module_of(const std::string& file) {
  const std::string name = path_basename(file);
  if (name.starts_with("lib") || name.find(".so") == std::string::npos) return "";
  return name.substr(0, name.find('.'));
}

// PEP 427: name-version(-build)-python-abi-platform.whl.
Judged judge_wheel(const Captures& captures) {
  const std::string wheel = capture(captures, "wheel");
  const auto platform = wheel.substr(wheel.rfind('-') + 1);
  // Who takes a wheel for Windows is nearly always on Windows.
  if (platform.starts_with("win"))
    return verdict("python_abi_tag_mismatch", "possible",
                   message("{} is a wheel for Windows and one Python", wheel),
                   message("python --version, and the system on which pip ran"), {"windows"});
  if (platform.starts_with("macosx"))
    return verdict("python_abi_tag_mismatch", "possible",
                   message("{} is a wheel for macOS and one Python", wheel),
                   message("pip debug --verbose, which lists the tags that this Python accepts"),
                   {"wrong_machine_arch"});
  // A pure Python tag fits every Python: the platform or pip is what is too old.
  if (wheel.find("py3-none-") != std::string::npos && platform != "any.whl")
    return verdict("", "likely", message("{} is for every Python 3, but not for this system", wheel),
                   message("pip debug --verbose, uname -m, and the version of glibc"),
                   {"glibc_too_old", "wrong_machine_arch"});
  // Who takes an ARM wheel has such a machine, as a Jetson, and more often another Python.
  const bool of_arm = platform.find("aarch64") != std::string::npos;
  if (!of_arm && platform.find("x86_64") == std::string::npos && platform != "any.whl")
    return verdict("wrong_machine_arch", "likely", message("{} is built for another processor", wheel),
                   "uname -m", {"python_abi_tag_mismatch"});
  return verdict("python_abi_tag_mismatch", "likely",
                 message("{} is built for another Python than the one whose pip ran", wheel),
                 message("python --version, and pip debug --verbose"),
                 {"wrong_machine_arch", "glibc_too_old"});
}

namespace {

// Of a library of the system, or of the C library.
bool is_of_the_system(const std::string& header) {
  return starts_with_any(
      header, {"google/", "sparsehash/", "boost/",  "Eigen/",      "eigen3/",    "opencv2/", "GL/",
               "EGL/",    "GLFW/",       "X11/",    "infiniband/", "libaio.h",   "numa.h",   "zlib.h",
               "png.h",   "jpeglib.h",   "mpi.h",   "ffi.h",       "openssl/",   "tbb/",     "omp.h",
               "bzlib.h", "crypt.h",     "cblas.h", "lapacke.h",   "sndfile.h",  "libav",    "graphviz/",
               "std",     "bits/",       "sys/",    "limits.h",    "features.h", "gnu/",     "linux/",
               "asm/",    "c++config"});
}

// Of the sources themselves, or of what they bring along: a submodule, or a directory that their archive lacks.
bool is_of_the_sources(const std::string& header) {
  return ends_with_any(header, {".cpp", ".cu", ".cc", ".cxx", ".c", ".cuh", ".inl"}) ||
         header.find("csrc/") != std::string::npos ||
         starts_with_any(header, {"cutlass",
                                  "cute/",
                                  "glm/",
                                  "tinylogger/",
                                  "tiny-cuda-nn/",
                                  "neural-graphics-primitives/",
                                  "args/args.",
                                  "filesystem/path.",
                                  "json/json.",
                                  "imgui/",
                                  "third",
                                  "extern",
                                  "submodules/",
                                  "deps/",
                                  "cudnn_frontend",
                                  "../",
                                  "./",
                                  "src/",
                                  "pybind11/",
                                  "fmt/",
                                  "spdlog/",
                                  "nlohmann/",
                                  "kernel",
                                  "nvbench/",
                                  "cccl/",
                                  "composable_kernel",
                                  "ck/",
                                  "dlpack/",
                                  "dmlc/",
                                  "gtest/",
                                  "gmock/",
                                  "catch2/"});
}

// Of an operating system, a processor or a maker of GPUs that this machine is not of, or of numpy, which says itself
// where its headers are: that the compiler does not find it is no sign of a package that the system lacks.
bool is_of_another_platform(const std::string& header) {
  return starts_with_any(
      header,
      {"hip/",        "rocblas",   "hipblas",     "hipsparse",   "miopen/",     "rccl",
       "rocm",        "acl/",      "musa",        "cnrt.h",      "cnnl",        "sycl/",
       "CL/sycl",     "Metal/",    "Accelerate/", "windows.h",   "Windows.h",   "winsock",
       "io.h",        "direct.h",  "tchar.h",     "immintrin.h", "x86intrin.h", "arm_",
       "Foundation/", "xmmintrin", "emmintrin",   "nmmintrin",   "smmintrin",   "TargetConditionals.h",
       "numpy/"});
}

// Headers that torch has had since some release: who misses them has an older one.
bool is_of_a_newer_torch(const std::string& header) {
  return header == "torch/extension.h" || header == "torch/library.h" || header == "torch/all.h" ||
         starts_with_any(
             header, {"torch/csrc/stable/", "torch/headeronly/", "torch/csrc/inductor/", "c10/util/Float8",
                      "c10/cuda/CUDAException.h", "ATen/cuda/CUDAContext.h", "ATen/cuda/CUDAGraphs",
                      "ATen/OpMathType.h", "ATen/Dispatch_v2.h", "ATen/ceil_div.h", "ATen/cuda/Atomic.cuh",
                      "ATen/cuda/DeviceUtils.cuh", "ATen/cuda/ScanUtils.cuh", "ATen/cuda/ThrustAllocator.h",
                      "ATen/cuda/CachingHostAllocator.h", "ATen/ops/", "ATen/TensorSubclassLikeUtils.h",
                      "c10/core/SymInt"});
}

bool is_of_the_toolkit(const std::string& header, const std::string& base) {
  return starts_with_any(base, {"cuda",           "cublas",        "cusparse",
                                "cusolver",       "cufft",         "curand",
                                "cudnn",          "nvToolsExt",    "nvrtc",
                                "nvml",           "nccl",          "cooperative_groups",
                                "vector_types",   "driver_types",  "cuComplex",
                                "cupti",          "host_defines",  "device_launch_parameters",
                                "nvjpeg",         "npp",           "cufile",
                                "cutensor",       "nvshmem",       "nvPTXCompiler",
                                "nvJitLink",      "nvblas",        "math_constants",
                                "math_functions", "builtin_types", "library_types",
                                "surface_types"}) ||
         starts_with_any(header, {"nv/", "thrust/", "cub/", "cuda/", "crt/", "nvtx3/"});
}

}  // namespace

Judged judge_header(const Captures& captures) {
  std::string header;
  for (const char* name : {"header", "header2", "header3", "header4", "header5", "header6", "header7"})
    if (header.empty()) header = capture(captures, name);
  const std::string base = path_basename(header);
  Judged judged;
  if (base == "Python.h" || base == "pyconfig.h" || base == "patchlevel.h")
    judged = verdict("python_headers_missing", "certain", message("the compiler does not find {}", header));
  else if (is_standard_header(header))
    judged = verdict("host_compiler_unsupported", "likely",
                     message("this compiler has no <{}>: it is too old", header),
                     message("the compiler's version"));
  else if (starts_with_any(base, {"cuda_fp8", "cuda_fp6", "cuda_fp4", "cuda_bf16", "cudaTypedefs"}))
    judged = verdict("old_cuda_toolkit", "likely", message("this CUDA toolkit has no {} yet", header),
                     "nvcc -V", {"cuda_headers_missing"});
  else if (is_of_a_newer_torch(header))
    judged = verdict("torch_too_old_for_sources", "likely",
                     message("the installed torch does not have {} yet", header),
                     message("torch.__version__ of the Python that builds"));
  // CUDA 13 has them in a directory of their own, which nvcc knows and a C++ compiler does not.
  else if ((starts_with_any(header, {"thrust/", "cub/", "cuda/std/", "nvtx3/", "nvToolsExt"}) &&
            capture(captures, "unit").empty()) ||
           starts_with_any(header,
                           {"texture_fetch_functions", "texture_indirect_functions", "texture_types"}))
    judged = verdict("cuda_headers_changed", "likely",
                     message("{} is in another place of this CUDA release, or removed", header),
                     message("nvcc -V, and the CUDA release that the project documents"),
                     {"cuda_headers_missing"});
  else if (is_of_the_system(header))
    judged = verdict("system_headers_missing", "certain",
                     message("{} belongs to a system library whose development files are missing", header));
  else if (base == "cudnn.h" || base == "cudnn_version.h")
    judged =
        verdict("cuda_headers_missing", "likely",
                message("{} belongs to cuDNN, which the CUDA toolkit does not contain", header),
                message("where cuDNN is installed: CUDNN_PATH, CUDNN_HOME or the directory of nvidia-cudnn"));
  else if (starts_with_any(header, {"THC/", "TH/", "ATen/", "c10/", "torch/", "caffe2/"}))
    judged = verdict("torch_api_removed_in_source", "likely",
                     message("the installed torch has no header {}", header),
                     message("the torch release that the sources were written for"));
  else if (is_of_the_sources(header))
    judged = verdict("sdist_missing_csrc", "likely",
                     message("{} belongs to the sources themselves and does not exist", header),
                     message("whether the checkout has its submodules, or the archive its csrc directory"));
  else if (is_of_the_toolkit(header, base))
    judged = verdict("cuda_headers_missing", "certain", message("the CUDA toolkit has no {}", header));
  else if (is_of_another_platform(header))
    judged =
        verdict("", "likely",
                message("{} belongs to another platform than this one, or to a package that the build was "
                        "not told of",
                        header),
                message("the platform that the sources are written for"));
  else
    judged = verdict(
        "system_headers_missing", "possible",
        message("the header {} is missing, which belongs neither to torch nor to CUDA nor to Python", header),
        message("the package that provides it"), {"sdist_missing_csrc"});
  judged.more["header"] = header;
  return judged;
}

// xFormers prints both torch releases, whatever it could not load for: they may also be equal.
Judged judge_xformers(const Captures& captures) {
  const std::string built = capture(captures, "built"), here = capture(captures, "here");
  if (here.ends_with("+cpu") && !built.ends_with("+cpu"))
    return verdict("cpu_only_torch", "certain",
                   message("xformers is built for torch {}, and a CPU build is installed: {}", built, here));
  if (here.find("+rocm") != std::string::npos && built.find("+rocm") == std::string::npos)
    return verdict("rocm_torch", "certain",
                   message("xformers is built for torch {}, and a ROCm build is installed: {}", built, here));
  const auto release = [](const std::string& version) { return version.substr(0, version.find('+')); };
  if (built != here && release(built) == release(here))
    return verdict("extension_cuda_mismatch", "certain",
                   message("xformers is built for torch {}, and torch {} is installed", built, here));
  if (built != here)
    return verdict("torch_version_mismatch", "certain",
                   message("xformers is built for torch {}, and torch {} is installed", built, here));
  return verdict(
      "", "likely",
      message("xformers could not load its extensions, although it is built for this torch {}", here),
      message("the Python and the CUDA release that the same message names"));
}

Judged judge(const std::string& kind, const Captures& captures, const Surroundings& around) {
  if (kind == "symbol") return judge_symbol(captures);
  if (kind == "version") return judge_version(captures);
  if (kind == "library") return judge_library(captures, around);
  if (kind == "module") return judge_module(captures, around);
  if (kind == "name") return judge_name(captures, around);
  if (kind == "tokenizer") return judge_tokenizer(captures);
  if (kind == "call") return judge_call(captures, around);
  if (kind == "wheel") return judge_wheel(captures);
  if (kind == "header") return judge_header(captures);
  if (kind == "xformers") return judge_xformers(captures);
  if (kind == "hidden") return judge_hidden(captures, around);
  return {};
}

}  // namespace scankit::logs
