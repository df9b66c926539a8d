// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

// A folder of sources that builds a torch extension, and the tools that this build would take. Read as text;
// nothing of the folder is ever run.
namespace scankit {

// One thing that a build file or a source says, and where.
struct SourceFact {
  std::string file;  // relative to the folder
  unsigned line = 0;
  std::string value;  // "35", "17", "csrc/scan.cpp", "THC/THC.h"
  // Enclosing conditions, outermost first: "A", "not (A)"; what is no condition of its text ("class", "try")
  // is one that nobody can answer.
  std::vector<std::string> guards;
};

struct SourceTree {
  std::string folder, name;       // name: of the distribution, where the files say it
  bool asked = false;             // the user named this folder; otherwise it is the current one
  std::string build_file;         // "setup.py", "CMakeLists.txt"
  std::string homepage;           // of PKG-INFO
  bool unpacked_archive = false;  // PKG-INFO lies beside setup.py: from an index, not from a repository
  bool imports_torch = false;     // at the top level of setup.py
  bool wants_ninja = false;
  bool generates = false;      // the build file writes files or starts programs: sources may come from there
  bool fetches_wheel = false;  // it first asks for a ready wheel on the network
  bool renames_wheel = false;  // and moves it by os.rename, which does not leave a file system
  bool own_helpers = false;    // it imports a module of the folder, which may add to what is read here
  bool has_pyproject = false, avoids_isolation = false;
  std::vector<std::string> build_requires;  // [build-system] requires
  std::vector<std::string> modules;         // names of the extensions
  std::vector<SourceFact> cuda;             // where it builds for CUDA: CUDAExtension, the language CUDA
  bool has_kernels = false;                 // it compiles .cu files
  std::vector<SourceFact> sources;          // compiled files that it names literally
  std::vector<SourceFact> missing;          // those of them that the folder does not hold
  std::vector<SourceFact> standards;        // "17" of -std=c++17
  std::vector<SourceFact> archs;            // "80" of compute_80 or sm_80
  bool passes_archs = false;                // something of its flags says "arch", literally or not
  bool sets_arch_list = false;              // it speaks of TORCH_CUDA_ARCH_LIST itself
  std::vector<SourceFact> asks_gpu;         // get_device_capability and its like
  std::vector<SourceFact> minimum_cuda;     // "11.6": the build file refuses what is older
  std::vector<SourceFact> type_dispatch;    // AT_DISPATCH_...(x.type(), ...)
  std::vector<SourceFact> lost_headers;     // torch headers that are included and that this torch lacks
  std::vector<SourceFact> cuda_headers;     // first use of each CUDA header that sources or torch include
  bool full_headers = false;                // a kernel includes torch/extension.h
  std::vector<Message> not_read;            // "FILE: why"
  // The switch around the CUDA extension that is off unless its variable says TRUE, as the file names both:
  // MAMBA_KEEP_CUDA_BUILD and KEEP_CUDA_BUILD. "" for none.
  std::string opt_in, opt_in_name;
  bool opted_in = false;  // the variable says TRUE here
};

struct CudaHeader {
  std::string name, path;  // path: "" where no folder of the build holds it
};
struct HostCompiler {
  std::string role;  // "C++" or "nvcc"
  std::string path, kind,
      version;            // "gcc" | "clang", "" where there is none; version "" where it does not say
  std::string chosen_by;  // "CXX", "CC", "NVCC_CCBIN", "PATH"
};
struct BuildPlace {
  std::string role, path;              // "sources", "temporary files", "site-packages"
  std::uint64_t free = 0, device = 0;  // device: st_dev, the same for all of one file system
};
struct BuildTools {
  std::string cuda_home, cuda_home_from;  // as torch chooses it: "CUDA_HOME", "CUDA_PATH", "PATH", ...
  std::string nvcc, nvcc_version;
  std::vector<std::string> nvcc_archs;  // what it lists itself: "75", "90"; empty where it was not asked
  std::string limits_file;              // .../crt/host_config.h
  unsigned gcc_max = 0, clang_min = 0, clang_max = 0;  // majors that nvcc accepts; 0 where nothing says so
  bool limits_waived = false;  // -allow-unsupported-compiler in NVCC_PREPEND_FLAGS or NVCC_APPEND_FLAGS
  unsigned torch_gcc_below = 0,
           torch_clang_below = 0;  // majors that torch's cpp_extension refuses for this nvcc
  unsigned gcc_min = 0;            // what torch's own headers demand
  std::vector<CudaHeader> headers;
  std::vector<HostCompiler> host_compilers;
  std::string python_include;  // where Python.h should be
  bool python_header = false;
  std::string ninja;                     // "" where there is none
  unsigned jobs = 0;                     // compilers that run at once
  std::string jobs_from;                 // "MAX_JOBS", "ninja's default"
  std::string arch_list;                 // TORCH_CUDA_ARCH_LIST
  std::vector<std::string> torch_archs;  // what this torch's cpp_extension takes in it: "9.0a"
  std::vector<std::string> named_archs;  // "Volta=7.0+PTX"
  bool arch_list_needs_gpu = false;      // without it torch asks the GPUs, and fails where there is none
  bool cpu_index = false;                // PIP_INDEX_URL leads to CPU builds of torch
  bool torch_has_headers = false;
  std::vector<BuildPlace> places;    // that the build writes to; of the running system only
  bool dispatch_takes_type = false;  // AT_DISPATCH of the installed torch accepts tensor.type()
};

// What the sources in the current directory want of compiled modules and of mamba_ssm. Nothing here is a
// judgement.

// A compiled module that a file of the project imports. That it is one is known from a project that builds
// it, from an extension in a setup.py of the directory, or from both.
struct ProjectModule {
  std::string module;       // "selective_scan_cuda_oflex"
  std::string built_by;     // "MzeroMiko/VMamba"; "" where the table does not know it
  std::string setup;        // the setup.py of the directory that names it; "" for none
  unsigned setup_line = 0;  // of that name
  std::string path;         // what import takes for it, or a file of it in the directory; "" for none
};

struct ProjectImport {
  std::string module, file;
  unsigned line = 0;
  std::string caught, masked_value;  // the guarding `except`, and what it makes of the name
  bool in_function = false;          // runs when that is called, not when the file is imported
  std::string program;               // one that comes to this file by its imports; "" for none
  unsigned used_at = 0;  // guarded: the first line that uses the module without asking whether it is there
};

// What a file of the project takes from mamba_ssm.
struct LayerImport {
  std::string file;
  unsigned line = 0;
  std::string name;   // "Mamba2"
  std::string needs;  // "module": it calls selective_scan_cuda; "nothing": it does not; "unknown"
};

struct Project {
  std::string folder;
  std::vector<ProjectModule> modules;
  std::vector<ProjectImport> imports;
  std::vector<LayerImport> layers;
  unsigned files = 0;  // that were read
  bool whole = true;   // false: the limits were met, so there may be more
};

}  // namespace scankit
