// SPDX-License-Identifier: Apache-2.0
#include "builder/toolchain/toolchain.h"

#include <algorithm>

#include "builder/fix/install_target.h"
#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/host/embedded_program.h"
#include "doctor/knowledge/cuda_support.h"
#include "doctor/probes/python/python.h"

namespace scankit::toolchain {
namespace {

// Accepts libnvrtc.so.13, libnvrtc.so.12, libnvrtc.so.11.2, and torch's own libnvrtc-672ee683.so.11.2.
// Refuses libnvrtc-builtins, the "alt" twins, and the unversioned link that only a linker wants. A full
// version such as libnvrtc.so.13.0.88 is refused too: it is the target of the link that is accepted.
bool is_nvrtc(const std::string& name) {
  const auto version = name.find(".so.");
  if (version == std::string::npos || version + 4 >= name.size()) return false;
  const std::string stem = name.substr(0, version);
  if (stem == "libnvrtc") return name.find('.', version + 4) == std::string::npos || name.ends_with(".11.2");
  return stem.starts_with("libnvrtc-") && !stem.starts_with("libnvrtc-builtins");
}

// "12" of libnvrtc.so.12, "11" of libnvrtc.so.11.2.
std::string library_major(const std::string& file) {
  const auto at = file.find(".so.") + 4;
  return file.substr(at, std::min(file.find('.', at), file.size()) - at);
}

// Adds the libraries of one directory, newest first, each with the builtins of the same major. One file under
// several names is added once.
void add_folder(const Host& host, const std::string& folder, const std::string& origin,
                std::vector<Nvrtc>& found) {
  const auto entries = host.list(folder);
  if (!entries) return;
  std::vector<Nvrtc> here;
  for (const DirEntry& entry : *entries) {
    if (!is_nvrtc(entry.name)) continue;
    const auto real = host.realpath(folder + "/" + entry.name);
    if (!real) continue;
    Nvrtc nvrtc{.path = *real, .origin = origin};
    for (const DirEntry& other : *entries)
      if (other.name.starts_with("libnvrtc-builtins.so." + library_major(entry.name)))
        nvrtc.builtins = host.realpath(folder + "/" + other.name).value_or("");
    const auto same = [&](const Nvrtc& n) { return n.path == nvrtc.path; };
    if (std::none_of(found.begin(), found.end(), same) && std::none_of(here.begin(), here.end(), same))
      here.insert(here.begin(), std::move(nvrtc));
  }
  found.insert(found.end(), here.begin(), here.end());
}

std::vector<std::pair<std::string, std::string>> folders(const Host& host, const Snapshot& snapshot) {
  std::vector<std::pair<std::string, std::string>> all;  // folder, origin
  for (const PathEntry& entry : snapshot.python.value.sys_path) {
    if (!entry.exists) continue;
    const auto wheel = [&](const char* name) { return say("wheel {} in {}", name, entry.path); };
    all.emplace_back(entry.path + "/nvidia/cu13/lib", wheel("nvidia-cuda-nvrtc"));
    // The wheels of CUDA 11 and 12 have the same folder.
    const std::string shared = entry.path + "/nvidia/cuda_nvrtc/lib";
    const bool cuda11 = host.exists(shared + "/libnvrtc.so.11.2");
    all.emplace_back(shared, wheel(cuda11 ? "nvidia-cuda-nvrtc-cu11" : "nvidia-cuda-nvrtc-cu12"));
  }
  if (!snapshot.torch.value.location.empty())
    all.emplace_back(snapshot.torch.value.location + "/lib", say("bundled with torch"));
  if (!snapshot.python.value.prefix.empty())
    all.emplace_back(snapshot.python.value.prefix + "/lib", say("the environment's own libraries"));
  for (const Toolkit& toolkit : snapshot.toolkits.value)
    for (const std::string& below : toolkit_library_folders())
      all.emplace_back(toolkit.root + below, say("toolkit {}", toolkit.root));
  // An NVRTC may be there without nvcc, which is what makes a toolkit for the probe.
  if (const auto entries = host.list("/usr/local"))
    for (const DirEntry& entry : *entries)
      if (entry.name.starts_with("cuda"))
        for (const std::string& below : toolkit_library_folders())
          all.emplace_back("/usr/local/" + entry.name + below,
                           say("system library in {}", "/usr/local/" + entry.name));
  all.emplace_back(std::string("/usr/lib/") + kMultiarch, say("system library"));
  all.emplace_back("/usr/lib64", say("system library"));
  return all;
}

// "75,80,90", as the helper prints the architectures.
Result<std::vector<unsigned>> parse_numbers(const std::string& text) {
  std::vector<unsigned> numbers;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.empty() || word.size() > 4 || word.find_first_not_of("0123456789") != std::string::npos)
      return Error{Errc::Malformed, message("\"{}\" is not a list of architectures", text), ""};
    numbers.push_back(static_cast<unsigned>(std::stoul(word)));
    at = end + 1;
  }
  return numbers;
}

// The key of the memo: it is valid as long as the files are the same.
Result<compile::Key> file_identity(const Host& host, const Nvrtc& nvrtc) {
  compile::Key key;
  for (const std::string& path : {nvrtc.path, nvrtc.builtins}) {
    if (path.empty()) continue;
    SCANKIT_TRY(const FileInfo info, host.stat(path));
    key.add("file", path);
    key.add("size", std::to_string(info.size));
    key.add("mtime", std::to_string(info.mtime_ns));
    key.add("inode", std::to_string(info.device) + ":" + std::to_string(info.inode));
  }
  return key;
}

// Reads what identify() stored: "13.0\n75,80,90\nSHA\n". False if it is not of that form.
bool from_memo(const std::string& memo, Nvrtc& nvrtc) {
  const auto first = memo.find('\n');
  const auto second = memo.find('\n', first + 1);
  if (first == std::string::npos || second == std::string::npos || memo.size() < second + 66) return false;
  auto archs = parse_numbers(memo.substr(first + 1, second - first - 1));
  if (!archs) return false;
  nvrtc.version = memo.substr(0, first);
  nvrtc.archs = std::move(*archs);
  nvrtc.sha256 = memo.substr(second + 1, 64);
  return true;
}

// Loading a library runs its code.
Result<void> may_load(const Host& host, const Nvrtc& nvrtc) {
  for (const std::string& path : {path_dirname(nvrtc.path), nvrtc.path, nvrtc.builtins})
    if (const auto foreign = probes::foreign_to_root(host, path))
      return Error{Errc::PermissionDenied,
                   message("{} belongs to user {}, and loading it would run that user's code as root",
                           foreign->path, foreign->uid),
                   message("run scankit as that user")};
  return {};
}

}  // namespace

std::vector<Nvrtc> find_nvrtc(const Host& host, const Snapshot& snapshot) {
  std::vector<Nvrtc> found;
  for (const auto& [folder, origin] : folders(host, snapshot)) add_folder(host, folder, origin, found);
  // A library that another torch left behind comes after that of the torch that is installed: the driver may
  // not read what it makes. All releases of CUDA 11 have the same library name.
  const std::string cuda = snapshot.torch.value.cuda, major = cuda.substr(0, cuda.find('.'));
  if (!major.empty())
    std::stable_partition(found.begin(), found.end(), [&](const Nvrtc& nvrtc) {
      return library_major(path_basename(nvrtc.path)) == major;
    });
  return found;
}

std::vector<Nvrtc> nvrtc_at(const Host& host, const std::string& path, const std::string& origin) {
  std::vector<Nvrtc> found;
  const bool folder = host.is_directory(path);
  add_folder(host, folder ? path : path_dirname(path), origin, found);
  const std::string real = host.realpath(path).value_or("");
  if (!folder) std::erase_if(found, [&](const Nvrtc& nvrtc) { return nvrtc.path != real; });
  return found;
}

Result<void> identify(const Host& host, const compile::Cache& cache, Nvrtc& nvrtc) {
  SCANKIT_CHECK(may_load(host, nvrtc));
  SCANKIT_TRY(const compile::Key key, file_identity(host, nvrtc));
  if (const auto memo = cache.find(key); memo && from_memo(*memo, nvrtc)) return {};
  std::vector<std::string> args = {"nvrtc-info", "--lib", nvrtc.path};
  if (!nvrtc.builtins.empty()) args.insert(args.end(), {"--builtins", nvrtc.builtins});
  SCANKIT_TRY(const ProcessResult answer, run_gpu_helper(args));
  const auto records = parse_helper_records(answer.out);
  if (!answer.ok() || records.empty() || records[0].kind != "nvrtc")
    return Error{Errc::ToolFailed, nvrtc.path + ": " + answer.err.substr(0, answer.err.find('\n')), ""};
  const auto& fields = records[0].fields;
  if (fields.count("version") == 0 || fields.count("archs") == 0)
    return Error{Errc::ToolFailed, message("{} does not report its version", nvrtc.path), ""};
  nvrtc.version = fields.at("version");
  SCANKIT_TRY(nvrtc.archs, parse_numbers(fields.at("archs")));
  SCANKIT_TRY(std::string hash, sha256_file(nvrtc.path));
  if (!nvrtc.builtins.empty()) {
    SCANKIT_TRY(const std::string more, sha256_file(nvrtc.builtins));
    hash = sha256_hex(hash + more);
  }
  nvrtc.sha256 = hash;
  // A cache that cannot be written makes the next build slower, nothing else.
  cache.store(key, std::string("identity ").append(nvrtc.path),
              nvrtc.version + "\n" + fields.at("archs") + "\n" + hash + "\n");
  return {};
}

std::string NvrtcCompiler::said() const { return say("NVRTC {} ({})", nvrtc_.version, nvrtc_.origin); }

const std::vector<std::string>& NvrtcCompiler::common_flags() const {
  // No -lineinfo, which writes the directory into the image. C++20 is the language of the whole project and
  // NVRTC's from 12.0 on; the device code is valid C++17 as well. params.h is shared with the host and has no
  // __device__ marks, so without the second flag NVRTC would refuse its constexpr functions as host code.
  static const std::vector<std::string> flags = {"--std=c++20", "--device-as-default-execution-space"};
  static const std::vector<std::string> older = {"--std=c++17", "--device-as-default-execution-space"};
  return nvrtc_.version.starts_with("11.") ? older : flags;
}

void NvrtcCompiler::add_inputs(compile::Key& key) const {
  key.add("helper", sha256_hex(gpu_helper_program()));
}

Result<ProcessResult> NvrtcCompiler::compile(const Job& job) const {
  std::vector<std::string> args = {
      "nvrtc", "--lib", nvrtc_.path, "--arch", job.target->name(), job.target->ptx ? "--ptx" : "--cubin",
      "--out", job.out};
  if (!nvrtc_.builtins.empty()) args.insert(args.end(), {"--builtins", nvrtc_.builtins});
  args.insert(args.end(), common_flags().begin(), common_flags().end());
  args.insert(args.end(), job.unit->flags.begin(), job.unit->flags.end());
  args.push_back(job.source);
  return run_gpu_helper(args, job.timeout);
}

// Read from what NVRTC 11.7 to 13.5 writes; doctor/knowledge/drivers.yaml has the drivers for each.
unsigned cubin_abi_of(const std::string& release, unsigned sm) {
  constexpr unsigned kOldCubinAbi = 7, kNewCubinAbi = 8, kLastOfOld = 90;
  const auto version = Version::parse(release);
  if (!version) return 0;
  return version->part(0) < 13 && sm <= kLastOfOld ? kOldCubinAbi : kNewCubinAbi;
}

bool ptx_fits(const std::string& isa, const std::string& release) {
  const auto wanted = knowledge::cuda_of_ptx(isa), made_by = Version::parse(release);
  return wanted && made_by && *wanted <= *made_by;
}

namespace {

// The version that decides. That of libcuda counts if there is one: a forward-compatibility libcuda reads
// more than the installed kernel module. Nothing under WSL, since a Windows driver's number compares with
// no Linux driver's.
std::optional<Version> driver_version(const Probed<Driver>& driver) {
  if (!driver.present() || driver.value.libcuda_kind == "wsl") return std::nullopt;
  const bool library = !driver.value.libcuda_version.empty() && driver.value.libcuda_kind != "stub";
  return Version::parse(library ? driver.value.libcuda_version : driver.value.version);
}

std::string text_of(const Version& version) {
  std::string text;
  for (const unsigned part : version.release) text += (text.empty() ? "" : ".") + std::to_string(part);
  return text;
}

}  // namespace

DriverFit driver_fit(const Probed<Driver>& driver, const std::string& release,
                     const std::vector<module::Target>& targets) {
  const auto here = driver_version(driver), made_by = Version::parse(release);
  if (!here || !made_by) return {};
  for (const module::Target& target : targets) {
    if (target.ptx) {
      // A driver translates the PTX of its own CUDA release and of older ones.
      const auto cuda = knowledge::cuda_of_driver(*here);
      if (cuda && !cuda->or_newer && *made_by > cuda->cuda && made_by->part(0) >= cuda->cuda.part(0))
        return {say("driver {} does not support the PTX of CUDA {}", text_of(*here), release), true};
      continue;
    }
    const auto drivers = knowledge::drivers_of_cubin_abi(cubin_abi_of(release, target.sm), target.sm);
    if (!drivers || *here >= drivers->reads) continue;
    return {say("code built by CUDA {} for {} needs driver {} or newer; installed: {}", release,
                target.name(), drivers->reads_text, text_of(*here)),
            drivers->refused_below && *here < *drivers->refused_below};
  }
  return {};
}

std::vector<std::string> toolkit_library_folders() {
  std::vector<std::string> folders = {"/lib64", "/lib"};
  for (const char* target : kToolkitTargets) folders.push_back(std::string("/targets/") + target + "/lib");
  return folders;
}

std::uint64_t WheelToolchain::download() const {
  std::uint64_t bytes = 0;
  for (const WheelPin& wheel : wheels) bytes += wheel.size;
  return bytes;
}

std::string WheelToolchain::requirements() const {
  std::string text;
  for (const WheelPin& wheel : wheels) text += (text.empty() ? "" : " ") + wheel.name + "==" + wheel.version;
  return text;
}

}  // namespace scankit::toolchain
