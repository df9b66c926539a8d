// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The C++ compilers that nvcc takes: it starts one, as a preprocessor, even for device code alone.
// nvcc with the parts that it starts and the headers that it includes, which come as several packages: all of
// them are looked for before anything is compiled.

namespace scankit {

struct HostCompilerRange {
  unsigned gcc_max = 0, clang_min = 0, clang_max = 0;  // majors; 0: not known
  std::string source;                                  // the file that says it, or what the table rests on
};
std::string shown(const HostCompilerRange& range);  // "gcc up to 15, clang 7 to 20"

// The range by the nvcc's own crt/host_config.h, in the first of the directories that has one, else by the
// table of releases ("13.0"). All zeros if neither knows it.
HostCompilerRange host_compiler_range(const Host& host, const std::vector<std::string>& include_folders,
                                      const std::string& release);

// First what NVCC_CCBIN, CUDAHOSTCXX and CXX name, then g++ and clang++ on PATH, also under the names with a
// version that distributions have ("g++-12"). Each is asked for its version.
std::vector<Compiler> find_host_compilers(const Host& host);

// The first compiler in the range. The Error says which compilers are here and which would be accepted.
Result<Compiler> choose_host_compiler(const std::vector<Compiler>& compilers, const HostCompilerRange& range,
                                      const std::string& release);

struct Nvcc {
  std::string path, root;        // ".../bin/nvcc"; the folder above bin
  std::string origin;            // "toolkit /usr/local/cuda-13.0"
  std::string version, release;  // "13.0.88", "13.0"; this and what follows by identify_nvcc()
  std::vector<unsigned> archs;
  std::string sha256;   // of all its programs and of the headers that it always includes
  std::string include;  // the folder of cuda_runtime.h
  HostCompilerRange takes;
  Compiler host;  // the one that a build uses
};

// The toolkits of the snapshot (CUDA_HOME, PATH, /usr/local), conda's, the wheels of the environment, and
// `prefixes`. Files only; identify_nvcc() fills the rest.
std::vector<Nvcc> find_nvcc(const Host& host, const Snapshot& snapshot,
                            const std::vector<std::string>& prefixes = {});
// The nvcc at a toolkit's root, at a prefix of wheels, or at its own path; without one, `path` is "".
Nvcc nvcc_at(const Host& host, const std::string& path, const std::string& origin);

// Asks it for version and architectures, in children, and looks for everything that a compilation needs. The
// Error names what is missing and how to get it. The answers are kept in the cache, keyed by the files'
// sizes and times.
Result<void> identify_nvcc(const Host& host, const Cache& cache, Nvcc& nvcc);

// For the torch flavor: the first of a CUDA major ("13") that can be used, or why there is none.
Result<Nvcc> nvcc_of_major(const Host& host, const Snapshot& snapshot, const Cache& cache,
                           const std::string& major);

// nvcc as a child. The Nvcc must have passed identify_nvcc(), which also chose the host compiler.
class NvccCompiler final : public DeviceCompiler {
 public:
  explicit NvccCompiler(Nvcc nvcc) : nvcc_(std::move(nvcc)) {}
  std::string kind() const override { return "nvcc"; }
  std::string version() const override { return nvcc_.version; }
  std::string sha256() const override { return nvcc_.sha256; }
  std::string said() const override;
  const std::vector<std::string>& common_flags() const override;
  void add_inputs(Key& key) const override;
  Result<ProcessResult> compile(const Job& job) const override;

 private:
  Nvcc nvcc_;
};

}  // namespace scankit
