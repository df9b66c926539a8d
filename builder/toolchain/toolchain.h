// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/installer/installer.h"
#include "builder/module/target.h"
#include "doctor/base/process.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The compilers of device code: found, never assumed, and one chosen among them.
namespace scankit::toolchain {

// One library. find_nvrtc() fills the paths and the origin; identify() fills the rest.
struct Nvrtc {
  std::string path, builtins;  // builtins "": the library finds its own
  std::string origin;          // "torch's wheels", "system toolkit /usr/local/cuda-13.0"
  std::string version;         // "13.0"; this and what follows by identify()
  std::vector<unsigned> archs;
  std::string sha256;  // of the library and of its builtins
};

// The NVRTC libraries of this machine, best first: the environment's wheels, torch's own directory,
// the prefix's libraries, system toolkits; of these, those of torch's own CUDA major before the
// others. Files only.
std::vector<Nvrtc> find_nvrtc(const Host& host, const Snapshot& snapshot);
// Those in one directory, newest first, or the single one that `path` itself names.
std::vector<Nvrtc> nvrtc_at(const Host& host, const std::string& path, const std::string& origin);

// Asks the library for version and architectures, in a child, and hashes it. The answer is kept in the cache,
// keyed by the files' sizes and times. As root, another user's library is not loaded.
Result<void> identify(const Host& host, const compile::Cache& cache, Nvrtc& nvrtc);

// One compile unit: a kernel instance, chosen by its flags from the one source text.
struct Unit {
  std::string name;
  std::vector<std::string> flags;
};

// Makes one unit for one target into one image, by a child process. The cache, the order of the work,
// failures and the manifest are the same for every compiler (compile/compile.h). compile() is called by
// several threads at once.
class DeviceCompiler {
 public:
  // One call of compile(). The pointers outlive it.
  struct Job {
    const Unit* unit = nullptr;
    const module::Target* target = nullptr;
    std::string source;  // the file to read, absolute
    std::string out;     // the file to write, in the same folder
    std::chrono::milliseconds timeout{0};
  };

  virtual ~DeviceCompiler() = default;
  virtual std::string kind() const = 0;     // "nvrtc", "nvcc": stands in the manifest
  virtual std::string version() const = 0;  // "13.0"
  virtual std::string sha256() const = 0;   // of the programs and libraries that decide over the bytes
  virtual std::string said() const = 0;     // for people: "NVRTC 13.0 (toolkit /usr/local/cuda)"
  // The flags that every unit gets, before its own.
  virtual const std::vector<std::string>& common_flags() const = 0;
  // Adds the inputs that only this compiler has; KeyMaker::key() adds those of all compilers. An input that
  // is left out here makes the cache return stale code.
  virtual void add_inputs(compile::Key& key) const = 0;
  // Runs the compiler. A child that fails is a result and not an Error; its `err` then has the useful lines
  // of the compiler's log, errors first.
  virtual Result<ProcessResult> compile(const Job& job) const = 0;
};

// NVRTC in a child: the helper scankit-gpu loads the library. Implemented in toolchain.cc.
class NvrtcCompiler final : public DeviceCompiler {
 public:
  explicit NvrtcCompiler(Nvrtc nvrtc) : nvrtc_(std::move(nvrtc)) {}
  std::string kind() const override { return "nvrtc"; }
  std::string version() const override { return nvrtc_.version; }
  std::string sha256() const override { return nvrtc_.sha256; }
  std::string said() const override;
  const std::vector<std::string>& common_flags() const override;
  void add_inputs(compile::Key& key) const override;
  Result<ProcessResult> compile(const Job& job) const override;

 private:
  Nvrtc nvrtc_;
};

// How a compiler of a CUDA release writes, so that a finished module can be held to it: drivers differ in
// what they read.

// EI_ABIVERSION of the cubins of a compiler of this CUDA release ("13.0"); 0 if it is not a version.
unsigned cubin_abi_of(const std::string& release, unsigned sm);
// Whether a driver of the release's own time translates PTX of this ISA ("8.1"). A compiler that is chosen
// for the sake of old drivers must not write anything newer.
bool ptx_fits(const std::string& isa, const std::string& release);

// Whether this machine's driver runs what a compiler of `release` makes, by the cubins' ABI version and the
// PTX's ISA. `why` is "" if it does, or if no driver is known; else it is a sentence for the user.
struct DriverFit {
  std::string why;
  bool refused = false;  // it certainly does not; false with a `why`: not promised
};
DriverFit driver_fit(const Probed<Driver>& driver, const std::string& release,
                     const std::vector<module::Target>& targets);

// Below targets/ of a toolkit, for the processor that scankit is built for. sbsa-linux is the name of 64-bit ARM
// servers, aarch64-linux that of Jetson before CUDA 13.
#ifdef __aarch64__
inline constexpr std::array<const char*, 2> kToolkitTargets = {"sbsa-linux", "aarch64-linux"};
#else
inline constexpr std::array<const char*, 1> kToolkitTargets = {"x86_64-linux"};
#endif
// Where a toolkit has its libraries: "/lib64", "/lib", "/targets/x86_64-linux/lib".
std::vector<std::string> toolkit_library_folders();

// One wheel, pinned twice: the file that the index delivers, and the files that it unpacks to.
struct WheelPin {
  std::string name, version, sha256;  // as the index has it
  std::uint64_t size = 0;             // bytes
  // SHA-256 of what its RECORD says of the files below nvidia/: a line "PATH,SHA256\n" each, sorted. Not of
  // RECORD itself, to which installers add lines of their own.
  std::string files;
};

// A device compiler that comes as wheels, for machines that have none that fits. All wheels are of one
// release: nvcc's wheels do not pin each other.
struct WheelToolchain {
  std::string id;                  // "nvrtc-12.9.86": the name of its folder in the cache
  bool nvcc = false;               // else NVRTC
  std::string version;             // "12.9"
  std::vector<WheelPin> wheels;    // for the processor that scankit is built for; none: the index has none
  std::vector<unsigned> archs;     // SM numbers, ascending
  std::string folder;              // where the library lies below the place of unpacking; of nvcc, its prefix
  std::uint64_t unpacked = 0;      // bytes on disk
  std::uint64_t download() const;  // bytes of all wheels
  std::string requirements() const;  // "nvidia-cuda-nvrtc-cu12==12.9.86"
};

// In the order in which a build tries them. The first makes sm_50 to sm_121, and for sm_90 and below the
// cubins that drivers of CUDA 12 read.
const std::vector<WheelToolchain>& wheel_toolchains();
const WheelToolchain& wheel_toolchain(const std::string& id);  // one of the table

// The C++ compilers that nvcc takes: it starts one, as a preprocessor, even for device code alone. And
// nvcc with the parts that it starts and the headers that it includes, which come as several packages: all of
// them are looked for before anything is compiled.

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
Result<void> identify_nvcc(const Host& host, const compile::Cache& cache, Nvcc& nvcc);

// For the torch flavor: the first of a CUDA major ("13") that can be used, or why there is none.
Result<Nvcc> nvcc_of_major(const Host& host, const Snapshot& snapshot, const compile::Cache& cache,
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
  void add_inputs(compile::Key& key) const override;
  Result<ProcessResult> compile(const Job& job) const override;

 private:
  Nvcc nvcc_;
};

// Compilers that came as wheels: <cache>/toolchains/ID, brought once, by the user's own installer.

// The directory of a fetched compiler, or "" if it is not complete. A compiler is code that runs, so all
// of this must hold: the RECORD of each wheel is the pinned one, every file has the hash that RECORD
// names, and only this user or root can have written there. Files are hashed again if a size, a time or an
// inode has changed.
std::string fetched_folder(const Host& host, const compile::Cache& cache, const WheelToolchain& toolchain);

// The way for machines with neither uv nor pip: unpacks the wheels into `folder`. Empty: there is none.
using WheelFetcher =
    std::function<Result<void>(const std::vector<WheelPin>& wheels, const std::string& folder)>;

// What to fetch, and by what: `downloader`, or `otherwise` if its kind is None.
struct FetchRequest {
  const WheelToolchain* toolchain = nullptr;
  installer::Installer downloader;
  WheelFetcher otherwise;  // for a downloader of kind None
  std::function<void(const std::string&)> progress;
};
// The command that brings it, for the plan. `cache` only gives the destination.
std::string shown_fetch(const compile::Cache& cache, const FetchRequest& request);
// Fetches into a directory aside, checks it, and renames it into place, so that a fetch that is killed, or a
// second one at the same time, leaves nothing incomplete.
Result<void> fetch_wheels(const Host& host, const compile::Cache& cache, const FetchRequest& request);

// Which compiler makes the device code (ARCHITECTURE.md, decision 12): an NVRTC that is here, torch's first;
// one that was fetched before; an nvcc that is here; with consent, an NVRTC wheel.

// What the user asked for, and what they agreed to.
struct ToolchainRequest {
  std::string asked;          // --toolchain: "", "nvrtc", "nvrtc-wheel", "nvcc", "nvcc-wheel", or a path
  bool may_download = false;  // the user said so, or will be asked before anything is done
  bool release = false;       // the shipped module: each architecture from the compiler that serves it best
  std::function<void(const std::string&)> progress;
  WheelFetcher fetch;  // where there is neither uv nor pip
};
// Errc::InvalidArgument for a --toolchain that is neither a kind nor a path.
Result<void> check_request(const std::string& asked);  // before anything is looked for

// A compiler that is here, or that could be fetched. Only the member of its kind is meaningful.
struct Candidate {
  enum class Kind { Nvrtc, Nvcc, Wheel } kind = Kind::Nvrtc;
  Nvrtc nvrtc;
  Nvcc nvcc;
  const WheelToolchain* wheel = nullptr;  // of Kind::Wheel: not here yet
  std::string title() const;              // "NVRTC 13.0: /usr/local/..."
  const std::vector<unsigned>& archs() const;
  std::string release() const;  // "13.0", "13.0.88"; "" where it is not known
};
// Every compiler that the request admits, in the order in which they are tried. Files only: nothing is
// started and no version is known yet, except for wheels.
Result<std::vector<Candidate>> find_candidates(const Host& host, const Snapshot& snapshot,
                                               const ToolchainRequest& wish, const compile::Cache& cache);
// Asks a compiler for its version and architectures. An Error means that it cannot be used at all.
Result<void> identify(const Host& host, const compile::Cache& cache, Candidate& candidate);
// Identifies the candidate and says what it would make of the request.
Result<module::TargetChoice> judge(const Host& host, const Snapshot& snapshot,
                                   const module::TargetRequest& request, const compile::Cache& cache,
                                   Candidate& candidate);

// The compilers of a build, and which of them makes which target.
struct Toolchain {
  module::TargetChoice choice;
  std::vector<Candidate> compilers;  // those that are used
  std::vector<std::size_t> made_by;  // of choice.targets, in their order: which of `compilers`
  std::vector<const WheelToolchain*> missing() const;  // those of them that must be fetched first
  std::string said() const;  // "NVRTC 13.0 (toolkit /usr/local/cuda)"; of several, all
};
// The first compiler that can make what is asked, or several that can together. The Error says what was
// looked for and what each one lacked. Downloads nothing: with may_download, missing() says what to fetch.
Result<Toolchain> choose_toolchain(const Host& host, const Snapshot& snapshot,
                                   const module::TargetRequest& request, const compile::Cache& cache,
                                   const ToolchainRequest& wish = {});
// The commands that complete_toolchain() would run.
std::vector<std::string> shown_fetches(const Host& host, const Snapshot& snapshot,
                                       const compile::Cache& cache, const Toolchain& toolchain);
// Fetches what is missing and chooses again. Does nothing if nothing is missing.
Result<void> complete_toolchain(const Host& host, const Snapshot& snapshot,
                                const module::TargetRequest& request, const compile::Cache& cache,
                                const ToolchainRequest& wish, Toolchain& toolchain);

// "no compiler here": where was looked, and how to get one.
Error no_toolchain(const Snapshot& snapshot);

std::unique_ptr<DeviceCompiler> make_compiler(const Candidate& candidate);

}  // namespace scankit::toolchain
