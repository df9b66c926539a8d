// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "builder/toolchain/toolchain.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/preflight/probes/sources.h"
#include "doctor/probes/python/python.h"

namespace scankit::toolchain {
namespace {

// C++17, the least that the device code needs, is nvcc's from 11.0 on (its release notes).
constexpr unsigned kOldestMajor = 11;

std::string how_to_complete(const Nvcc& nvcc) {
  return say("install the complete toolkit, or its wheels of one release: {}; NVRTC needs none of them",
             "pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 "
             "nvidia-cuda-runtime==13.0.96" +
                 std::string(nvcc.release.starts_with("12.") ? " (CUDA 13)" : ""));
}

// A part of the toolkit is missing; the hint says how to complete it.
Error incomplete(const Nvcc& nvcc, const std::string& missing) {
  return {Errc::NotFound, message("{} cannot compile: {} is missing", nvcc.path, missing),
          how_to_complete(nvcc)};
}

std::vector<std::string> include_folders(const Nvcc& nvcc) {
  std::vector<std::string> folders = {nvcc.root + "/include"};
  for (const char* target : kToolkitTargets) folders.push_back(nvcc.root + "/targets/" + target + "/include");
  folders.emplace_back("/usr/include");
  return folders;
}

// nvcc itself, the programs that it starts, and libdevice, the library of mathematical functions for device
// code. All of them decide over the image, so all of them go into its hash. The second places are Debian's.
Result<std::vector<std::string>> programs_of(const Host& host, const Nvcc& nvcc) {
  std::vector<std::string> files = {nvcc.path};
  const std::vector<std::vector<std::string>> wanted = {
      {nvcc.root + "/bin/cudafe++"},
      {nvcc.root + "/bin/ptxas"},
      {nvcc.root + "/nvvm/bin/cicc", nvcc.root + "/bin/cicc"},
      {nvcc.root + "/nvvm/libdevice/libdevice.10.bc",
       "/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc"}};
  for (const auto& places : wanted) {
    const auto there = std::find_if(places.begin(), places.end(),
                                    [&](const std::string& path) { return host.exists(path); });
    if (there == places.end()) return incomplete(nvcc, places.front());
    files.push_back(*there);
  }
  return files;
}

// The directory of cuda_runtime.h. nvcc includes that header into every file, and it includes those of crt/.
Result<std::string> find_headers(const Host& host, const Nvcc& nvcc) {
  for (const std::string& folder : include_folders(nvcc)) {
    if (!host.exists(folder + "/cuda_runtime.h")) continue;
    if (!host.exists(folder + "/crt/host_config.h")) return incomplete(nvcc, folder + "/crt/host_config.h");
    return folder;
  }
  return incomplete(nvcc, nvcc.root + "/include/cuda_runtime.h");
}

// The headers that are part of every compilation, for the hash.
std::vector<std::string> headers_of(const Host& host, const std::string& include) {
  std::vector<std::string> files = {include + "/cuda_runtime.h", include + "/cuda_runtime_api.h"};
  if (const auto entries = host.list(include + "/crt"))
    for (const DirEntry& entry : *entries) files.push_back(include + "/crt/" + entry.name);
  return files;
}

// `#define CUDART_VERSION 13000`: 1000 * major + 10 * minor.
std::string release_of_headers(const Host& host, const std::string& include) {
  constexpr std::size_t kLimit = 8u << 20;
  const auto text = host.read_file(include + "/cuda_runtime_api.h", kLimit);
  const std::string key = "#define CUDART_VERSION";
  const auto at = text ? text->find(key) : std::string::npos;
  if (at == std::string::npos) return "";
  const int number = std::atoi(text->c_str() + at + key.size());
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// Standard output of one `nvcc QUESTION`; an Error if it fails or takes 20 seconds.
Result<std::string> answer(const Nvcc& nvcc, const std::string& question) {
  ProcessRequest request;
  request.argv = {nvcc.path, question};
  request.timeout = std::chrono::seconds(20);
  SCANKIT_TRY(const ProcessResult ran, run_process(request));
  if (ran.ok()) return ran.out;
  return Error{Errc::ToolFailed,
               message("{} does not respond: {}", nvcc.path, ran.err.substr(0, ran.err.find('\n'))), ""};
}

// "Cuda compilation tools, release 13.0, V13.0.88"
std::string full_version(const std::string& text) {
  const auto at = text.find(", V");
  if (at == std::string::npos) return "";
  return text.substr(at + 3, text.find_first_not_of("0123456789.", at + 3) - at - 3);
}

// "sm_75\nsm_80\n" -> {75, 80}, sorted. Architectures with a suffix ("sm_90a") are skipped.
std::vector<unsigned> archs_in(const std::string& text) {
  std::vector<unsigned> archs;
  for (std::size_t at = text.find("sm_"); at != std::string::npos; at = text.find("sm_", at + 3)) {
    const auto end = text.find_first_not_of("0123456789", at + 3);
    const std::string digits = text.substr(at + 3, std::min(end, text.size()) - at - 3);
    if (!digits.empty() && digits.size() <= 3 && (end == std::string::npos || text[end] == '\n'))
      archs.push_back(static_cast<unsigned>(std::stoul(digits)));
  }
  std::sort(archs.begin(), archs.end());
  archs.erase(std::unique(archs.begin(), archs.end()), archs.end());  // nvcc's help names them twice
  return archs;
}

// The answer to --list-gpu-code. The first releases of CUDA 11 do not have that option; their help names the
// same values in quotes: 'sm_52','sm_75'.
Result<std::string> list_archs(const Nvcc& nvcc) {
  auto listed = answer(nvcc, "--list-gpu-code");
  if (listed) return listed;
  SCANKIT_TRY(const std::string help, answer(nvcc, "--help"));
  std::string archs;
  for (auto at = help.find("'sm_"); at != std::string::npos; at = help.find("'sm_", at + 1)) {
    const auto end = help.find('\'', at + 1);
    if (end != std::string::npos) archs += help.substr(at + 1, end - at - 1) + "\n";
  }
  return archs.empty() ? std::move(listed) : Result<std::string>(std::move(archs));
}

// The memo in the cache is a hash over all files, the version, and the list of architectures, a line each. It
// is valid for exactly these files: size, time and inode of each are in its key.
Result<void> ask_nvcc(const Host& host, const compile::Cache& cache, Nvcc& nvcc,
                      const std::vector<std::string>& files) {
  compile::Key key;
  for (const std::string& path : files) {
    SCANKIT_TRY(const FileInfo info, host.stat(path));
    key.add("file", path);
    key.add("size", std::to_string(info.size));
    key.add("mtime", std::to_string(info.mtime_ns));
    key.add("inode", std::to_string(info.device) + ":" + std::to_string(info.inode));
  }
  std::string memo = cache.find(key).value_or("");
  if (memo.empty()) {
    SCANKIT_TRY(const std::string version, answer(nvcc, "--version"));
    SCANKIT_TRY(const std::string archs, list_archs(nvcc));
    std::string all;
    for (const std::string& path : files) {
      SCANKIT_TRY(const std::string hash, sha256_file(path));
      all += path_basename(path) + " " + hash + "\n";
    }
    memo = sha256_hex(all) + "\n" + full_version(version) + "\n" + archs;
    // A cache that cannot be written makes the next build slower, nothing else.
    (void)cache.store(key, std::string("identity ").append(nvcc.path), memo);
  }
  constexpr std::size_t kHash = 64;
  const auto end = memo.find('\n', kHash + 1);
  if (memo.size() <= kHash || end == std::string::npos)
    return Error{Errc::ToolFailed, message("{} does not report its version", nvcc.path), ""};
  nvcc.sha256 = memo.substr(0, kHash);
  nvcc.version = memo.substr(kHash + 1, end - kHash - 1);
  nvcc.archs = archs_in(memo.substr(end));
  const auto version = Version::parse(nvcc.version);
  nvcc.release = version ? version->major_minor() : "";
  return {};
}

// Headers of another release do not compile with this nvcc, or compile to something else.
Result<void> check_release(const Host& host, const Nvcc& nvcc) {
  const auto version = Version::parse(nvcc.version);
  if (!version || nvcc.archs.empty())
    return Error{Errc::ToolFailed, message("{} does not report its version", nvcc.path), ""};
  if (version->part(0) < kOldestMajor)
    return Error{
        Errc::Unsupported,
        message("{} is from CUDA {}; the device code needs {} or newer", nvcc.path, nvcc.release, "11.0"),
        how_to_complete(nvcc)};
  const std::string headers = release_of_headers(host, nvcc.include);
  if (!headers.empty() && headers != nvcc.release)
    return Error{Errc::Unsupported,
                 message("{} is from CUDA {}, but its headers in {} are from {}", nvcc.path, nvcc.release,
                         nvcc.include, headers),
                 how_to_complete(nvcc)};
  return {};
}

// The nvcc behind a wrapper script such as `exec /usr/local/cuda-13.0/bin/nvcc "$@"`: the toolkit belongs to
// that one and not to the script. Takes the last word of the script that names an nvcc, or the script itself
// if there is no such word or file. "" if `path` is not a script.
std::string behind_script(const Host& host, const std::string& path) {
  constexpr std::size_t kLimit = 1u << 14;
  const auto info = host.stat(path);
  if (!info || info->size > kLimit) return "";
  const auto text = host.read_file(path, kLimit);
  if (!text || !text->starts_with("#!")) return "";
  const auto end = text->rfind("/nvcc");
  const auto start = end == std::string::npos ? end : text->find_last_of(" \t\n\"'=", end);
  if (start == std::string::npos) return path;
  return host.realpath(text->substr(start + 1, end + 5 - start - 1)).value_or(path);
}

}  // namespace

Nvcc nvcc_at(const Host& host, const std::string& path, const std::string& origin) {
  for (const std::string& candidate : {path, path + "/bin/nvcc", path + "/nvidia/cu13/bin/nvcc"}) {
    const auto real = host.realpath(candidate);
    if (!real || path_basename(*real) != "nvcc" || host.is_directory(*real)) continue;
    const std::string behind = behind_script(host, *real), program = behind.empty() ? *real : behind;
    return {.path = program, .root = path_dirname(path_dirname(program)), .origin = origin};
  }
  return {};
}

std::vector<Nvcc> find_nvcc(const Host& host, const Snapshot& snapshot,
                            const std::vector<std::string>& prefixes) {
  std::vector<Nvcc> found;
  const auto add = [&](Nvcc nvcc) {
    const auto same = [&](const Nvcc& other) { return other.path == nvcc.path; };
    if (!nvcc.path.empty() && std::none_of(found.begin(), found.end(), same))
      found.push_back(std::move(nvcc));
  };
  for (const Toolkit& toolkit : snapshot.toolkits.value)
    if (!toolkit.nvcc.empty()) add(nvcc_at(host, toolkit.nvcc, say("toolkit {}", toolkit.root)));
  const Python& python = snapshot.python.value;
  if (!python.prefix.empty())
    add(nvcc_at(host, python.prefix + "/bin/nvcc", say("the environment's own nvcc")));
  for (const PathEntry& entry : python.sys_path)
    if (entry.exists)
      add(nvcc_at(host, entry.path + "/nvidia/cu13/bin/nvcc",
                  say("wheel {} in {}", "nvidia-cuda-nvcc", entry.path)));
  for (const std::string& prefix : prefixes) add(nvcc_at(host, prefix, say("wheels in {}", prefix)));
  return found;
}

Result<void> identify_nvcc(const Host& host, const compile::Cache& cache, Nvcc& nvcc) {
  SCANKIT_TRY(std::vector<std::string> files, programs_of(host, nvcc));
  for (const std::string& file : files)
    if (const auto foreign = probes::foreign_to_root(host, file))
      return Error{Errc::PermissionDenied,
                   message("{} belongs to user {}, and running it would run that user's code as root",
                           foreign->path, foreign->uid),
                   message("run scankit as that user")};
  SCANKIT_TRY(nvcc.include, find_headers(host, nvcc));
  const auto headers = headers_of(host, nvcc.include);
  files.insert(files.end(), headers.begin(), headers.end());
  SCANKIT_CHECK(ask_nvcc(host, cache, nvcc, files));
  SCANKIT_CHECK(check_release(host, nvcc));
  nvcc.takes = host_compiler_range(host, {nvcc.include}, nvcc.release);
  SCANKIT_TRY(nvcc.host, choose_host_compiler(find_host_compilers(host), nvcc.takes, nvcc.release));
  return {};
}

Result<Nvcc> nvcc_of_major(const Host& host, const Snapshot& snapshot, const compile::Cache& cache,
                           const std::string& major) {
  Message lacking;
  Error last{Errc::NotFound, "", ""};
  for (Nvcc nvcc : find_nvcc(host, snapshot)) {
    auto known = identify_nvcc(host, cache, nvcc);
    if (known && nvcc.release.substr(0, nvcc.release.find('.')) == major) return nvcc;
    last = known ? Error{Errc::Unsupported, message("{} is from CUDA {}", nvcc.path, nvcc.release), ""}
                 : known.error();
    lacking = clauses_of({lacking, last.message});
  }
  const Message fix =
      major == "13"
          ? message("install one: {}",
                    "pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 "
                    "nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85")
          : message(
                "install a CUDA {} toolkit: no wheel contains its nvcc; the universal module does not need "
                "it",
                major);
  if (lacking.empty())
    return Error{Errc::NotFound,
                 message("nvcc not found, and a build against torch needs the one of CUDA {}", major), fix};
  return Error{last.code, message("no usable nvcc of CUDA {} found: {}", major, lacking),
               last.hint.empty() ? fix : last.hint};
}

namespace {

// 0 if the text is not a version.
unsigned release_major(const std::string& text) {
  const auto version = Version::parse(text);
  return version ? version->part(0) : 0;
}

// The variables that the compilation gets. Those of nvcc and of the host compiler that add flags or include
// directories are left out: what they add would be in the image and not in the key.
std::vector<std::string> environment(const std::string& folder) {
  std::vector<std::string> variables = {std::string("TMPDIR=").append(folder), "LC_ALL=C"};
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH"})
    if (const char* value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
  return variables;
}

// A template's log has thousands of lines. Keeps those that name an error, 30 at most, and says how many are
// left out; the beginning of the log if no line names one.
std::string nvcc_error_lines(const std::string& log) {
  constexpr int kMost = 30;
  std::string useful;
  int kept = 0, dropped = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const bool names_error =
        line.find("error") != std::string::npos || line.find("fatal") != std::string::npos;
    if (!names_error || ++kept > kMost) {
      ++dropped;
      continue;
    }
    useful += line.substr(0, 400) + "\n";
  }
  if (kept == 0) return log.substr(0, 4000);
  if (dropped > 0)
    useful += say_n(static_cast<std::size_t>(dropped), "({} more line of the compiler's log left out)",
                    "({} more lines of the compiler's log left out)", dropped);
  return useful;
}

}  // namespace

std::string NvccCompiler::said() const { return say("nvcc {} ({})", nvcc_.version, nvcc_.origin); }

const std::vector<std::string>& NvccCompiler::common_flags() const {
  // C++20 is nvcc's from 12.0 on, gcc's from 10 and clang's, by this name, from 10 on; the device code is
  // C++17 as well.
  static const std::vector<std::string> newer = {"-std=c++20"}, older = {"-std=c++17"};
  return release_major(nvcc_.version) >= 12 && release_major(nvcc_.host.version) >= 10 ? newer : older;
}

void NvccCompiler::add_inputs(compile::Key& key) const {
  key.add("host compiler", nvcc_.host.kind + " " + nvcc_.host.version);
}

Result<ProcessResult> NvccCompiler::compile(const Job& job) const {
  // nvcc runs in the source's directory and gets the bare name, since a path would be in its messages.
  const std::string folder = path_dirname(job.source);
  ProcessRequest request;
  request.argv = {nvcc_.path,
                  std::string("-arch=").append(job.target->name()),
                  job.target->ptx ? "-ptx" : "-cubin",
                  "-ccbin",
                  nvcc_.host.path,
                  "-o",
                  job.out};
  request.argv.insert(request.argv.end(), common_flags().begin(), common_flags().end());
  request.argv.insert(request.argv.end(), job.unit->flags.begin(), job.unit->flags.end());
  request.argv.push_back(path_basename(job.source));
  request.environment = environment(folder);
  request.working_directory = folder;
  request.timeout = job.timeout;
  SCANKIT_TRY(ProcessResult ran, run_process(request));
  if (!ran.ok()) {
    ran.err = nvcc_error_lines(ran.err);
    return ran;
  }
  if (!job.target->ptx) return ran;
  // NVRTC ends PTX with a NUL, which is what the driver wants (cuModuleLoadData).
  SCANKIT_TRY(std::string text, read_whole_file(job.out, 128u << 20));
  text += '\0';
  SCANKIT_CHECK(write_file_atomically(job.out, text));
  return ran;
}

}  // namespace scankit::toolchain
