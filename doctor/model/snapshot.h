// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/base/result.h"
#include "doctor/base/text.h"
#include "doctor/model/examined_files.h"
#include "doctor/model/failure.h"
#include "doctor/model/packages.h"
#include "doctor/model/sources.h"

// Facts about one machine and one Python environment, as data. Probes fill it, checks read it,
// snapshot_json.cc stores it. Nothing here is a judgement. Every fact that may be missing says why it is.
namespace scankit {

// Absent is a fact (there is no GPU); Failed and NotRun mean that we do not know.
enum class ProbeState { NotRun, Failed, Absent, Present };

template <class T>
struct Probed {
  ProbeState state = ProbeState::NotRun;
  Message note;  // why it is not Present, in one line
  T value{};
  bool present() const { return state == ProbeState::Present; }
  static Probed of(T v) { return {ProbeState::Present, "", std::move(v)}; }
  static Probed absent(Message why) { return {ProbeState::Absent, std::move(why), {}}; }
  static Probed failed(Message why) { return {ProbeState::Failed, std::move(why), {}}; }
};

struct Os {
  std::string id, version_id, pretty_name;  // /etc/os-release
  std::string kernel, machine;              // uname: "6.1.0", "x86_64"
  bool wsl = false;
  std::string l4t;        // "36.4.3", the release of NVIDIA's Linux for Tegra (Jetson); "" elsewhere
  std::string container;  // "docker", "podman", "kubernetes", "lxc", "" for none seen
};
struct LibC {
  std::string kind, version, path;
};  // "glibc", "2.36", ".../libc.so.6"
struct LibStdCxx {
  std::string path, glibcxx_max, cxxabi_max;
};  // "3.4.30", "1.3.13"
struct Cpu {
  std::string model;
  unsigned logical = 0;
  std::vector<std::string> features;
};  // "avx2", "avx512f"
struct Memory {
  std::uint64_t total = 0, available = 0;
  std::optional<std::uint64_t> cgroup_limit;
};  // bytes
struct Disk {
  std::string path;
  std::uint64_t free = 0;
  bool writable = false;
};

struct Driver {
  std::string version;  // "580.159.04", from /proc/driver/nvidia/version or /sys/module/nvidia/version
  std::string source;   // the file it was read from
  std::string libcuda, libcuda_version;  // resolved libcuda.so.1 and the version in its file name
  std::string cuda_version;              // "13.0", by NVML or the release of Jetson Linux; else empty
  std::string libcuda_kind;              // "driver", "compat" (forward compatibility), "stub", "wsl"
  std::string libcuda_reached;  // "LD_LIBRARY_PATH", "ld.so.cache", "default folder", "not by the loader"
  std::string libnvidia_ml, libnvidia_ml_version;  // NVML's library, likewise
  std::string compat, compat_version;  // a forward compatibility libcuda that the loader does not take
  std::string nvml_error;              // what NVML said instead of answering
  std::vector<std::string> stubs;      // LD_LIBRARY_PATH's stub libcuda.so files
  std::vector<std::string> mig;        // "gpu0/gi1/ci0" of /proc/driver/nvidia/capabilities
};
struct Gpu {
  unsigned index = 0;
  std::string name, pci_address, pci_device;  // "0000:0f:00.0", "10de:2335"
  std::string sm, sm_source;  // "90", "nvml", "pci-id table", "device tree"; empty where unknown
  std::uint64_t memory = 0;   // bytes, 0 where unknown
  std::string uuid;
  std::map<std::string, std::int64_t> details;  // by the keys of gpu_details.def; without what is unknown
};
struct Toolkit {
  std::string root, nvcc, version;
};  // "/usr/local/cuda-13.0", ".../bin/nvcc", "13.0"
struct Compiler {
  std::string path, kind, version;
};  // "gcc" | "clang"

struct PathEntry {
  std::string path;
  std::string
      origin;  // "pythonpath", "stdlib", "lib-dynload", "site", "user-site", "system-site", "pth:FILE", "cwd"
  bool exists = false;
};
struct Distribution {
  std::string name, version, path, installer;  // path: the .dist-info or .egg-info folder
  bool editable = false;
  std::string
      project;  // editable: the source folder, from direct_url.json, the .pth line or the finder's mapping
  std::string conda_channel;  // "" unless conda-meta knows it
};
// What the maintainer of an installed package declares in its scankit.module.yaml: a stranger's words, which
// doctor/declared has checked.
struct DeclaredPackage {
  std::string distribution, file;
  std::vector<std::string> modules;    // compiled: "my_ext._C"
  std::vector<std::string> variables;  // of a build from its sources: "MY_EXT_FORCE_BUILD=TRUE"
  std::string least_torch;             // "2.4"; "" for any
  bool isolated = false;               // it builds without the installed torch
  Message problem;                     // why nothing was taken from the file; "" otherwise
};
struct Python {
  std::string requested, executable;  // as the user named it; the interpreter's file with all links resolved
  std::string version, implementation;          // "3.11.7", "cpython"
  std::string soabi;                            // "cpython-311-x86_64-linux-gnu"
  std::vector<std::string> extension_suffixes;  // in the order in which import tries them
  std::string prefix, base_prefix;
  std::string kind;  // "venv", "uv", "conda", "system", "pyenv", "other"
  bool free_threaded = false, has_pip = false, externally_managed = false;
  bool user_site_enabled = false;
  std::vector<PathEntry> sys_path;  // in order; the folder of a script or "" (the current one) comes first
  std::vector<std::string> pth_code_lines;    // "FILE: import ..." lines, which we do not run
  std::vector<std::string> editable_finders;  // "FILE: package -> folder"
};

// A library, or a version of one, that torch's own libraries need and the loader does not find.
struct TorchNeed {
  std::string soname;     // "_C" for torch's compiled module itself
  std::string version;    // "GLIBCXX_3.4.32" where the library is there without it
  std::string needed_by;  // file
  Message why;            // what stopped the search; "" for not found
};

struct Library {
  std::string path, soname, build_id;
  std::vector<std::string> needed;
};
struct NvidiaWheel {
  std::string name, version;
  std::vector<std::string> libraries;
};
struct DeviceImage {
  std::string kind;         // "cubin", "ptx", "lto"
  unsigned sm = 0;          // 90
  std::string specific;     // "", "a", "f"
  std::string isa;          // PTX: "8.1"
  std::string compression;  // "none", "lz4", "zstd"
  std::uint64_t size = 0;   // bytes as stored
  std::string toolkit;      // sm_103 cubins: "13.0", of the compiler that made it
  unsigned elf_abi = 0;     // cubins: 7 or 8, the cubin ABI version; 0: not read
};
struct Torch {
  std::string version, cuda, git;  // "2.11.0+cu130", "13.0" ("" for a CPU build)
  std::string hip;                 // ROCm's version, "" for other builds
  bool debug = false;
  std::string
      distribution_version;        // what the .dist-info says; differs where files of two releases are mixed
  std::string location;            // the package's folder
  std::string string_abi;          // "old", "new", "unknown"
  std::string cxx_standard;        // "17", "20": what its headers demand; "" where there are none
  std::vector<Library> libraries;  // torch/lib/*.so*
  std::vector<NvidiaWheel> nvidia_wheels;    // installed nvidia-* distributions
  std::vector<TorchNeed> missing_libraries;  // of torch's own closure: what the loader does not find
  std::vector<BindingMismatch> mismatches;   // in what its own libraries are bound to
  std::vector<CudaPin> cuda_pins;            // where there are mismatches: what its metadata demands
  std::vector<DeviceImage>
      images;  // kinds of device images of libtorch_cuda.so, each once; size is their sum
};

struct MissingSymbol {
  std::string name, version, demangled;  // version: "GLIBC_2.38" or "libcudart.so.12", "" for none
  std::string owner;                     // "torch", "python", "cuda", "libc", "libstdc++", "own", "unknown"
  std::string flipped_exported_by;       // library that exports the same name with the other string ABI
  std::vector<std::string> near;  // exported names of the same qualified function with other parameters
  std::string exported_by_torch;  // torch library that exports it although the extension does not reach it
};
struct MissingLibrary {
  std::string soname, needed_by;
  std::vector<Message> searched;  // folders, in the loader's order, each with its reason: "RUNPATH /x"
  std::vector<std::string> found_elsewhere;  // files of that name that the loader would not look at
  std::vector<std::string> same_library_other_version;  // "libcudart.so.13 (…/libcudart.so.13)"
};
struct UnmetVersion {  // a version need that the library found does not define
  std::string library, version, provided_max, needed_by;  // ".../libc.so.6", "GLIBC_2.38", "GLIBC_2.36"
  std::vector<std::string> symbols;
};
struct Extension {
  std::string module;  // "selective_scan_cuda"
  std::string path, real_path, distribution;
  int sys_path_index = -1;   // -1: in no sys.path folder
  bool selected = false;     // the copy that `import MODULE` would take
  bool shadowed = false;     // not selected because another file of the module comes first
  Message why_not_selected;  // "suffix .cpython-310-... is not one of this Python's", "shadowed by FILE"
  std::string tag;           // "cpython-311-x86_64-linux-gnu", "abi3", ""
  std::string file_state;    // "elf", "empty", "truncated", "damaged", "html", "git-lfs", "windows",
                             // "not-elf", "unreadable", "vanished"
  Message file_detail;       // what was seen, in one line
  std::uint64_t size = 0;
  std::string machine;  // "x86_64", "aarch64"
  std::string soname, build_id, rpath, runpath;
  std::vector<std::string> needed;
  bool has_init = false;           // exports PyInit_<module>
  std::vector<std::string> inits;  // every PyInit_* it exports
  bool resolved = false;           // the closure was walked; what follows is meaningless otherwise
  Message resolution_note;
  unsigned undefined = 0, provided = 0;  // strong undefined names, and how many have a provider
  std::vector<MissingSymbol> missing_symbols;
  std::vector<MissingLibrary> missing_libraries;  // with torch imported first
  std::vector<std::string> needs_torch_first;  // sonames that resolve only because `import torch` loaded them
  std::vector<UnmetVersion> unmet_versions;
  // Files loaded for it that request an executable stack; none where Python's own stack is executable already.
  std::vector<std::string> executable_stack;
  std::vector<BindingMismatch> mismatches;  // in what it and its libraries are bound to
  std::vector<std::string> closure;         // files in load order
  std::vector<DeviceImage> images;
  std::string string_abi;  // "old", "new", "neutral"
  std::string pybind_internals, cuda_major, glibc_min, glibcxx_min;
  bool uses_torch = false;     // needs a torch library, or names a torch symbol
  BuiltFor built_for;          // which releases of torch it was made for; no `file`: not asked
  bool registers_ops = false;  // its names make torch operators as it is loaded (torch.ops.load_library)
  // Resolved for another machine (--so with --from): what the facts about it do not decide, one line each,
  // and what was taken to hold because its library's soname promises it.
  std::vector<Message> undecided, taken_on_trust;

  // Compiled once (snapshot.cc): see Snapshot.
  Extension();
  Extension(const Extension&);
  Extension(Extension&&) noexcept;
  Extension& operator=(const Extension&);
  Extension& operator=(Extension&&) noexcept;
  ~Extension();
};

// A package that imports one of the modules under diagnosis.
struct Importer {
  std::string package, version, file;
  unsigned line = 0;
  std::string module;
  std::string caught;         // the guarding `except`: "ImportError", "everything", "" for none
  bool masked = false;        // inside try/except ImportError
  std::string masked_value;   // what the name becomes: "None"
  bool in_function = false;   // imported when that is called, not with the file
  bool before_torch = false;  // the file and what runs before it import nothing that could bring torch first
};

// One really attempted import, in a child.
struct Observation {
  std::string module, variant;  // "torch-first", "bare", "torch-only", "package", "sibling"
  std::string outcome;          // "ok", "error", "crashed", "timeout", "not-run"
  Message why_not_run;
  std::string exception, file;  // "ImportError", module.__file__
  Message message;              // the exception's text, or how the process ended
  int signal = 0;
  std::int64_t duration_ms = 0;
  std::string reads_as;  // what the message says by itself: a cause's slug
  Message reading;       // and one sentence
  std::vector<std::string>
      signatures;  // of its functions, as pybind11 documents them: "fwd(arg0: torch.Tensor) -> int"
  std::vector<std::string> lacks;  // names that a package takes from it and that it does not have
  std::string missing;             // the package that an import in the chain of errors did not find: "tqdm"
  std::string raised_at;           // "FILE:LINE" of the user's code that raised it, or that hangs or dies
  std::vector<std::string> raised_through;  // the files on the way to it, the innermost first
};

// The active environment ($VIRTUAL_ENV, ./.venv, $CONDA_PREFIX), where its Python cannot be used. Nothing
// else is examined in its place.
struct BrokenEnvironment {
  std::string origin;   // "VIRTUAL_ENV", "./.venv", "CONDA_PREFIX"
  std::string path;     // of the environment, as it was named
  Message reason;       // one sentence
  Message repair;       // what to do
  std::string command;  // that does it here; "" where there is none
};

struct Snapshot {
  int schema = 1;
  std::string tool_version;
  std::string target_root;               // "" for the live system
  std::vector<Message> described;        // parts of the target told by the user: "GPU sm_90", "driver 570.86"
  std::vector<std::string> named_files;  // what --so named, in place of the installed modules
  std::string read_from;                 // the stored snapshot that --from read; "" for this machine
  std::vector<Wheel> wheels;             // named by --so
  std::vector<std::string> modules;      // under diagnosis
  std::vector<std::string> modules_asked;    // those of them that the user named: their absence is a fault
  std::vector<AskedPackage> packages_asked;  // those that are Python files: the audit covers what they hold
  std::map<std::string, std::string> environment;  // LD_LIBRARY_PATH, PYTHONPATH, CUDA_VISIBLE_DEVICES, ...
  std::optional<BrokenEnvironment> broken_environment;
  Probed<Os> os;
  Probed<LibC> libc;
  Probed<LibStdCxx> libstdcxx;
  Probed<Cpu> cpu;
  Probed<Memory> memory;
  Probed<Disk> disk;
  Probed<Driver> driver;
  Probed<std::vector<Gpu>> gpus;
  Probed<std::vector<Toolkit>> toolkits;
  Probed<std::vector<Compiler>> compilers;
  Probed<Python> python;
  Probed<std::vector<Distribution>> distributions;
  std::vector<DeclaredPackage> declared;  // of those distributions that have such a file
  Probed<Torch> torch;
  Probed<std::vector<Extension>> extensions;
  std::vector<BuiltFor>
      built_for;  // of libraries beside the modules, and of files together: a wheel, a folder
  Probed<std::vector<Importer>> importers;
  Probed<std::vector<Observation>> observations;
  Probed<Audit> audit;             // of `doctor --all`, or of packages_asked; NotRun where nobody asked
  Probed<SourceTree> sources;      // a folder that builds a torch extension
  Probed<BuildTools> build_tools;  // with which it would be built
  Probed<std::vector<std::string>> reachable;  // sonames that the loader finds without any RPATH
  Probed<Exports> exports;                     // --with-exports
  Probed<Log> log;                             // an error log that was given to explain
  std::optional<RanCommand> command;           // of `scankit run`
  Probed<Packages> packages;                   // around the modules
  Probed<std::vector<UnfinishedRepair>> repairs;
  Probed<std::vector<MissingRequirement>> missing_requirements;
  // The user's programs, in the current folder or one of PYTHONPATH, that import mamba_ssm or causal_conv1d
  // (`module`) as they start, where this Python does not have it.
  Probed<std::vector<Importer>> package_importers;
  Probed<Project> project;  // the sources in the current folder

  // Compiled once (snapshot.cc). In the header, every unit that copies or drops a snapshot compiled the same members of
  // all of its parts again.
  Snapshot();
  Snapshot(const Snapshot&);
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(const Snapshot&);
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();
};

// The first distribution of that name (compared as PEP 503 says), or nullptr.
inline const Distribution* find_distribution(const std::vector<Distribution>& distributions,
                                             std::string_view name) {
  const std::string wanted = normalized_name(name);
  const auto found = std::ranges::find_if(
      distributions, [&](const Distribution& each) { return normalized_name(each.name) == wanted; });
  return found == distributions.end() ? nullptr : &*found;
}

// Why a fact is not there.
template <class T>
Message why_missing(const Probed<T>& fact) {
  return fact.note.empty() ? message("not probed") : fact.note;
}

// "libx.so.1 needed by /site/torch/lib/libtorch.so".
inline Message in_words(const TorchNeed& need) {
  const Message line = need.version.empty() ? message("{} needed by {}", need.soname, need.needed_by)
                                            : message("{} with version {} needed by {}", need.soname,
                                                      need.version, need.needed_by);
  return need.why.empty() ? line : message("{} ({})", line, need.why);
}

inline constexpr int kSnapshotSchema = 1;
// Same snapshot, same bytes: keys in a fixed order, two-space indentation, a newline at the end. Bytes that
// are not UTF-8 (file names) come out as U+FFFD.
std::string snapshot_to_json(const Snapshot& snapshot);
// Errc::Malformed with line and column; Errc::Unsupported for a schema newer than kSnapshotSchema.
Result<Snapshot> snapshot_from_json(std::string_view text);
// The value at a JSON pointer ("/torch/value/version") as text; Errc::NotFound where there is none.
Result<std::string> snapshot_fact(const Snapshot& snapshot, const std::string& pointer);

}  // namespace scankit
