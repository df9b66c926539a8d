// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "builder/toolchain/toolchain.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/report/progress.h"

namespace scankit::toolchain {
namespace {

namespace fs = std::filesystem;

constexpr auto kFetchTimeout = std::chrono::minutes(60);

// Where compilers are kept. Without a cache that is a directory that lives as long as this process, since a
// compiler runs from where it is. "" if no directory can be made.
std::string toolchains_folder(const compile::Cache& cache) {
  if (!cache.folder().empty()) return cache.folder() + "/toolchains";
  static const auto ours = TemporaryDirectory::create("scankit-toolchains");
  return ours ? ours->path() : "";
}

std::string place_of(const compile::Cache& cache, const WheelToolchain& toolchain) {
  return toolchains_folder(cache) + "/" + toolchain.id;
}

// In the name of a .dist-info directory '-' is written as '_' (the wheel format's escaping).
std::string record_path(const std::string& folder, const WheelPin& wheel) {
  std::string name = wheel.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return folder + "/" + name + "-" + wheel.version + ".dist-info/RECORD";
}

// RECORD has hashes in URL-safe base64 without padding (PEP 427); the pins are in hex. "" if a character is
// not a digit of it.
std::string hex_of_base64(const std::string& text) {
  std::string hex;
  unsigned bits = 0, held = 0;
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (const char c : text) {
    const auto value = digits.find(c);
    if (value == std::string::npos) return "";
    held = (held << 6 | static_cast<unsigned>(value)) & 0xffff;
    bits += 6;
    for (; bits >= 4; bits -= 4) hex += "0123456789abcdef"[held >> (bits - 4) & 15];
  }
  constexpr std::size_t kHexLength = 64;  // 43 digits of 6 bits are two bits more than the hash
  return hex.substr(0, std::min(hex.size(), kHexLength));
}

struct Recorded {
  std::string path, sha256;  // below the folder of unpacking; hex, "" where RECORD gives none (itself)
};

// The files below nvidia/ that RECORD lists, sorted by path. A line is "PATH,sha256=...,SIZE", and no path
// in these wheels has a comma. Paths with ".." are dropped: the pinned hash then differs, and the
// directory is refused.
std::vector<Recorded> recorded_files(const Host& host, const std::string& folder, const WheelPin& wheel) {
  std::vector<Recorded> files;
  const auto record = host.read_file(record_path(folder, wheel));
  std::istringstream lines(record ? *record : "");
  for (std::string line; std::getline(lines, line);) {
    const auto comma = line.find(",sha256=");
    const std::string path = line.substr(0, line.find(','));
    if (path.starts_with("nvidia/") && path.find("..") == std::string::npos)
      files.push_back({path, comma == std::string::npos ? "" : hex_of_base64(line.substr(comma + 8, 43))});
  }
  std::ranges::sort(files, {}, &Recorded::path);
  return files;
}

// RECORD comes with the files that it vouches for, so somebody who plants files writes RECORD too. They
// cannot change the hash over its lines that is compiled into scankit.
bool is_the_pinned_record(const std::vector<Recorded>& files, const WheelPin& wheel) {
  std::string lines;
  for (const Recorded& file : files) lines.append(file.path).append(",").append(file.sha256).append("\n");
  return sha256_hex(lines) == wheel.files;
}

// Cheap: reads the RECORDs and hashes none of the files.
bool holds_every_wheel(const Host& host, const std::string& folder, const WheelToolchain& toolchain) {
  return host.is_directory(folder + toolchain.folder) &&
         std::ranges::all_of(toolchain.wheels, [&](const WheelPin& wheel) {
           return is_the_pinned_record(recorded_files(host, folder, wheel), wheel);
         });
}

// Checks every recorded file and each directory on the way to it. If all of these are private, no other user
// can have added a file that the compiler would load.
Result<void> check_all_private(const Host& host, const std::string& folder, const WheelToolchain& toolchain) {
  std::set<std::string> paths = {folder};
  for (const WheelPin& wheel : toolchain.wheels)
    for (const Recorded& file : recorded_files(host, folder, wheel))
      for (std::string path = folder + "/" + file.path;
           path.size() > folder.size() && paths.insert(path).second;)
        path = path_dirname(path);
  for (const std::string& path : paths) SCANKIT_CHECK(check_private_entry(path));
  return {};
}

// Hashes every file: several hundred MB. fetched_folder() remembers the result in the cache.
Result<void> check_files(const Host& host, const std::string& folder, const WheelToolchain& toolchain) {
  for (const WheelPin& wheel : toolchain.wheels)
    if (!is_the_pinned_record(recorded_files(host, folder, wheel), wheel))
      return Error{Errc::Malformed,
                   message("{} does not list the expected files of the wheel {}=={}",
                           record_path(folder, wheel), wheel.name, wheel.version),
                   ""};
  if (!host.is_directory(folder + toolchain.folder))
    return Error{Errc::Malformed, message("{} does not contain all of {}", folder, toolchain.requirements()),
                 ""};
  for (const WheelPin& wheel : toolchain.wheels)
    for (const Recorded& file : recorded_files(host, folder, wheel)) {
      const std::string path = folder + "/" + file.path;
      SCANKIT_TRY(const std::string hash, sha256_file(path));
      if (hash != file.sha256)
        return Error{Errc::Malformed, message("{} does not match the RECORD of its wheel", path), ""};
    }
  return {};
}

// The key of a check of the files: it is valid as long as sizes, times and inodes stay the same.
compile::Key identity_of(const Host& host, const std::string& folder, const WheelToolchain& toolchain) {
  compile::Key key;
  key.add("format", "checked-wheels-2");
  for (const WheelPin& wheel : toolchain.wheels)
    for (const Recorded& file : recorded_files(host, folder, wheel)) {
      const std::string path = folder + "/" + file.path;
      const auto info = host.stat(path);
      key.add("file", path);
      key.add("sha256", file.sha256);
      if (!info) continue;
      key.add("size", std::to_string(info->size));
      key.add("mtime", std::to_string(info->mtime_ns));
      key.add("inode", std::to_string(info->device) + ":" + std::to_string(info->inode));
    }
  return key;
}

// A lower bound while an installer adds and removes files; errors end the count.
std::uint64_t bytes_below(const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (auto at = fs::recursive_directory_iterator(folder, ignored); at != fs::recursive_directory_iterator();
       at.increment(ignored)) {
    if (ignored) break;
    if (at->is_regular_file(ignored)) bytes += at->file_size(ignored);
  }
  return bytes;
}

// Shows progress while the installer runs. Neither pip nor uv reports its progress to a program, but what
// they wrote can be counted: pip downloads into TMPDIR, which is in the same directory. uv downloads into its
// own cache, so for uv only the time passes.
class Watch {
 public:
  Watch(const FetchRequest& request, std::string folder)
      : request_(request), folder_(std::move(folder)), thread_([this] { run(); }) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    stop_ = true;
    thread_.join();
  }

 private:
  void run() {
    report::Progress progress(say("downloading {}", request_.toolchain->id));
    const std::uint64_t most = request_.toolchain->download() + request_.toolchain->unpacked;
    std::uint64_t have = 0;
    for (unsigned looks = 0; !stop_; ++looks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (looks % 4 != 0) continue;
      have = std::clamp<std::uint64_t>(bytes_below(folder_), have,
                                       most);  // pip removes what it has unpacked: never back
      progress.bytes(have, most);
    }
  }

  const FetchRequest& request_;
  std::string folder_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The last line that an installer prints is its reason; lines that name an error become the hint.
Error installer_failure(const FetchRequest& request, const installer::InstallerCommand& command,
                        const ProcessResult& ran) {
  std::string useful, last;
  std::istringstream lines(ran.err.empty() ? ran.out : ran.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    last = line;
    if (line.find("ERROR") != std::string::npos || line.find("error") != std::string::npos)
      useful += line.substr(0, 400) + "\n";
  }
  const std::string why = ran.timed_out ? say("it took longer than an hour") : last.substr(0, 400);
  return {Errc::ToolFailed, message("{} could not be downloaded: {}", request.toolchain->requirements(), why),
          message("the command was: {}\n{}", installer::shown(command), useful)};
}

// Room for the download and for two unpacked copies.
Result<void> check_disk_for_wheels(const std::string& folder, const WheelToolchain& toolchain) {
  struct ::statvfs disk;
  const std::uint64_t needed = toolchain.download() + 2 * toolchain.unpacked;  // pip unpacks, then moves
  if (::statvfs(folder.c_str(), &disk) != 0) return {};
  const std::uint64_t free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (free >= needed) return {};
  return Error{Errc::Io,
               message("{} temporarily needs {} MB of disk space, and {} has {} MB", toolchain.id,
                       needed / 1000000, folder, free / 1000000),
               message("choose another directory with --cache-dir")};
}

// A requirements file for --require-hashes: the installer itself refuses other bytes.
std::string requirement_lines(const WheelToolchain& toolchain) {
  std::string text;
  for (const WheelPin& wheel : toolchain.wheels)
    text += wheel.name + "==" + wheel.version + " --hash=sha256:" + wheel.sha256 + "\n";
  return text;
}

// A running fetch keeps its directory locked, and the kernel releases the lock however the fetch ends. -1 if
// somebody else has it.
Descriptor locked_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0 || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return Descriptor(-1);
  return folder;
}

// The directory of one fetch, removed at the end; by then, what was fetched has been renamed away.
struct FetchFolder {
  std::string path;
  Descriptor lock;
  explicit FetchFolder(std::string folder) : path(std::move(folder)), lock(locked_folder(path)) {}
  FetchFolder(const FetchFolder&) = delete;
  FetchFolder& operator=(const FetchFolder&) = delete;
  ~FetchFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// Runs pip or uv. TMPDIR is inside the staging directory, where Watch sees what is downloaded.
Result<void> unpack_wheels(const FetchRequest& request, const std::string& staging) {
  const std::string list = staging + "/requirements.txt", temporary = staging + "/tmp";
  SCANKIT_CHECK(make_directories(temporary));
  SCANKIT_CHECK(write_file_atomically(list, requirement_lines(*request.toolchain)));
  const installer::InstallerCommand command =
      installer::unpack_command(request.downloader, list, staging + "/tree");
  installer::InstallerCommand with_tmpdir = command;
  with_tmpdir.environment.push_back(std::string("TMPDIR=").append(temporary));
  ProcessRequest process;
  process.argv = command.argv;
  process.timeout = kFetchTimeout;
  process.working_directory = command.folder;
  process.environment = installer::variables_of(with_tmpdir);
  const Watch watch(request, staging);
  SCANKIT_TRY(const ProcessResult ran, run_process(process));
  return ran.ok() ? Result<void>() : installer_failure(request, command, ran);
}

// Removes what killed fetches left. The lock decides: a time alone proves nothing, since clocks jump and a
// file server has its own. The age only protects a fetch that has made its directory and not locked it yet.
void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(".fetch-")) continue;
    const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
    if (std::chrono::abs(age) < 2 * kFetchTimeout) continue;
    if (const Descriptor ours = locked_folder(entry.path().string()); ours.get() >= 0)
      fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

std::string fetched_folder(const Host& host, const compile::Cache& cache, const WheelToolchain& toolchain) {
  if (toolchains_folder(cache).empty()) return "";
  const std::string folder = place_of(cache, toolchain);
  if (!holds_every_wheel(host, folder, toolchain) || !check_all_private(host, folder, toolchain)) return "";
  const compile::Key key = identity_of(host, folder, toolchain);
  if (cache.find(key)) return folder;
  if (!check_files(host, folder, toolchain)) return "";
  (void)cache.store(key, std::string("checked ").append(toolchain.id), "ok");
  return folder;
}

std::string shown_fetch(const compile::Cache& cache, const FetchRequest& request) {
  if (request.downloader.kind == installer::Installer::Kind::None) return "scankit-fetch";
  const std::string place = place_of(cache, *request.toolchain);
  installer::InstallerCommand command = installer::unpack_command(request.downloader, "", place);
  command.environment.clear();
  command.argv.erase(std::ranges::find(command.argv, "--require-hashes"), command.argv.end());
  return installer::shown(command) + " " + request.toolchain->requirements();
}

Result<void> fetch_wheels(const Host& host, const compile::Cache& cache, const FetchRequest& request) {
  const WheelToolchain& toolchain = *request.toolchain;
  if (request.downloader.kind == installer::Installer::Kind::None && !request.otherwise)
    return Error{Errc::NotFound,
                 message("{} cannot be downloaded: {}", toolchain.requirements(), request.downloader.why),
                 request.downloader.instead};
  if (toolchains_folder(cache).empty())
    return Error{
        Errc::Io,
        message("{} cannot be downloaded: no directory can be created for it", toolchain.requirements()),
        message("choose another directory with --cache-dir")};
  const std::string place = place_of(cache, toolchain);
  SCANKIT_CHECK(make_private_folders(path_dirname(place)));
  remove_leftovers(path_dirname(place));
  SCANKIT_CHECK(check_disk_for_wheels(path_dirname(place), toolchain));
  std::string name = path_dirname(place) + "/.fetch-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr)
    return Error{Errc::Io,
                 message("cannot create a directory in {}: {}", path_dirname(place), std::strerror(errno)),
                 ""};
  const FetchFolder staging(name);
  const std::string tree = staging.path + "/tree";
  if (request.progress)
    request.progress(say("downloading {} ({} MB): {}", toolchain.id, toolchain.download() / 1000000,
                         shown_fetch(cache, request)));
  if (request.downloader.kind == installer::Installer::Kind::None) {
    SCANKIT_CHECK(request.otherwise(toolchain.wheels, tree));
  } else {
    SCANKIT_CHECK(unpack_wheels(request, staging.path));
  }
  SCANKIT_CHECK(make_tree_private(tree));
  SCANKIT_CHECK(check_files(host, tree, toolchain));
  // A damaged or foreign tree is moved away first. If another build was quicker, its tree is as good as ours.
  if (fetched_folder(host, cache, toolchain).empty())
    (void)::rename(place.c_str(), (staging.path + "/old").c_str());
  if (::rename(tree.c_str(), place.c_str()) != 0 && fetched_folder(host, cache, toolchain).empty())
    return Error{Errc::Io, message("cannot install {}: {}", place, std::strerror(errno)), ""};
  return {};
}

}  // namespace scankit::toolchain
