// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/logs/classify.h"

namespace scankit::logs {
namespace {

// A library of torch that was not found; `itself`: by torch's own import. The longer names come first.
Judged judge_library_of_torch(const std::string& name, bool itself) {
  if (!itself && starts_with_any(name, {"libtorch_hip", "libc10_hip", "libamdhip64", "librocm"}))
    return verdict("torch_version_mismatch", "likely",
                   message("{} belongs to a ROCm build of torch, for GPUs of AMD", name),
                   message("the suffixes of the versions of torch, torchvision and torchaudio"));
  if (starts_with_any(name, {"libtorch_cuda_cpp", "libtorch_cuda_cu."}))
    return verdict("torch_version_mismatch", "likely", message("{} belongs to another build of torch", name),
                   message("the torch release that the module was built with"));
  if (starts_with_any(name, {"libtorch_cuda", "libc10_cuda"}))
    return verdict("cpu_only_torch", "likely",
                   message("torch's other libraries were found but its CUDA library was not"),
                   "torch.version.cuda", {"torch_not_imported_first", "torch_incomplete", "rocm_torch"});
  // Only the packages of torch 1.1 and older have it under this name.
  if (name.starts_with("libtorch.so.1") && !itself)
    return verdict("torch_version_mismatch", "likely",
                   message("{} is the name that the library had up to torch 1.1", name), "torch.__version__",
                   {"torch_not_imported_first"});
  // torch 1.5 split it from libtorch.so. A module names libc10.so and libtorch.so before it, and the loader stops at
  // the first library that it does not find: those were loaded, of an older torch.
  if (name.starts_with("libtorch_cpu.so") && !itself)
    return verdict(
        "torch_version_mismatch", "likely",
        message("torch's libc10.so was found and {} was not: this torch is older than 1.5, or incomplete",
                name),
        "torch.__version__", {"torch_not_imported_first", "torch_incomplete"});
  return verdict(itself ? "torch_incomplete" : "torch_not_imported_first", "likely",
                 itself ? message("torch lacks a library of its own: {}", name)
                        : message("the module needs {}, which is only loaded by `import torch`", name),
                 itself ? message("the files of torch/lib compared with torch's RECORD")
                        : message("the same import after `import torch`"),
                 {"torch_incomplete"});
}

// A library of Python, or of the C library that another Python is linked to.
Judged judge_library_of_python(const std::string& name, const Surroundings& around) {
  // The library of this very Python, or of one that the log does not show: a Python that is linked statically has
  // its library where no loader looks.
  const bool of_this_python = name.starts_with("libpython" + (around.python.empty() ? "3." : around.python));
  if (of_this_python)
    return verdict(
        "system_library_missing", "likely",
        message("the module needs {}, Python's own library, and the loader does not find it", name),
        message("the version of the interpreter"), {"python_abi_tag_mismatch"});
  return verdict(
      "python_abi_tag_mismatch", "likely",
      message("the module needs {}, which this Python does not use: it was built for another one", name),
      message("the version of the interpreter"));
}

}  // namespace

// Decides by the name of a library that was not found. `torch_itself`: torch's own import needs it, so
// torch is what is incomplete; otherwise the module needs it.
Judged judge_library(const Captures& captures, const Surroundings& around) {
  const std::string soname = capture(captures, "soname"), name = path_basename(soname);
  const bool torch_itself = around.importing_torch;
  if (starts_with_any(name, {"libcuda.so", "libnvidia-"}))
    return verdict("no_driver_libcuda", "certain",
                   message("the NVIDIA driver's {} is not visible to this process", name));
  if (starts_with_any(name, {"libtorch", "libc10", "libshm", "libcaffe2", "libamdhip64", "librocm"}))
    return judge_library_of_torch(name, torch_itself);
  if (starts_with_any(name, {"libpython", "libpypy", "libc.musl-", "ld-musl-"}))
    return judge_library_of_python(name, around);
  if (starts_with_any(name, {"libcudnn", "libcusparseLt", "libcudss", "libnccl", "libcupti", "libcufile",
                             "libnvshmem", "libcudart", "libcublas", "libcufft", "libcurand", "libcusparse",
                             "libcusolver", "libnvrtc", "libnvJitLink", "libnvToolsExt", "libnvtx"})) {
    // These are linked by torch, and by hardly any extension. A traceback shows the frame of torch/__init__.py if
    // it is torch; only where the log was shortened to the line does the name have to decide.
    // The packages of torch for CUDA 10 and older had cuDNN 7 within libtorch.so, and none names the library without a
    // version: it is another program that opens those.
    const bool usually_torch =
        starts_with_any(name, {"libcudnn.so.8", "libcudnn.so.9", "libcusparseLt", "libcudss", "libcufile",
                               "libcupti", "libnvshmem", "libnccl.so"});
    if (torch_itself || (usually_torch && !around.frames))
      return verdict("torch_incomplete", "likely",
                     message("torch itself needs {}, which is not where torch looks", name),
                     message("the nvidia-* wheels that torch's metadata pins, compared with the installed "
                             "ones"));
    return verdict("missing_cudart", name.starts_with("libcudart") ? "certain" : "likely",
                   message("the module was linked to {}, which the installed torch does not contain", name),
                   "torch.version.cuda", {"torch_incomplete"});
  }
  // GNU's and Intel's OpenMP and Fortran libraries are parts of torch's own packages. MPI and InfiniBand are not: a torch
  // that was built with them, as for a Jetson, takes them from the system, as every torch does with the C++ library.
  const bool of_system =
      starts_with_any(name, {"libmpi", "libopen-rte", "libopen-pal", "libibverbs", "librdmacm", "libstdc++",
                             "libgcc_s", "libm.so", "libdl.so", "libpthread", "librt.so", "libz.so"});
  if ((torch_itself && !of_system) || starts_with_any(name, {"libiomp5", "libmkl_"}))
    return verdict("torch_incomplete", torch_itself ? "likely" : "possible",
                   message("torch itself needs {}, which is not where torch looks", name),
                   message("the files of torch/lib compared with torch's RECORD"));
  // An absolute path was opened because Python has seen the file. The loader skips a file for another
  // machine and reports "No such file or directory" in the end (open_verify() in glibc's dl-load.c).
  if (soname.starts_with("/") && !module_of(soname).empty())
    return verdict(
        "wrong_machine_arch", "likely",
        message("Python found {}, but the loader rejected it: it is built for another processor", name),
        message("the output of file on it, and of uname -m"), {"corrupt_binary"});
  // A program may ask for a library and do without it, as TensorFlow does with TensorRT. It has to be the error itself,
  // or a library that distributions have a package for.
  const auto package = knowledge::debian_package_of(name);
  const bool needed =
      (of_system && torch_itself) || !capture(captures, "raised").empty() || package.has_value();
  return verdict(
      needed || starts_with_any(name, {"libgfortran", "libopenblas"}) ? "system_library_missing" : "",
      "certain", message("{} is missing: a library that belongs neither to torch nor to CUDA", name),
      package ? message("whether {} is installed, the package of Debian and Ubuntu that contains "
                        "{}",
                        *package, name)
              : message("the system or conda package that provides {}", name));
}

}  // namespace scankit::logs
