// SPDX-License-Identifier: Apache-2.0
#include "doctor/host/embedded_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "doctor/base/say.h"

extern "C" const char scankit_gpu_helper[];  // made by scankit_embed (CMakeLists.txt)
extern "C" const char scankit_gpu_helper_end[];

namespace scankit {
namespace {

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// Whether a file may be executed, and whether its loader exists, shows only when it is started. The exit
// status does not matter.
bool can_execute(const std::string& path) {
  ProcessRequest request;
  request.argv = {path};  // no argument: prints its usage
  auto ran = run_process(request);
  return ran && ran->signal == 0 && !ran->timed_out;
}

}  // namespace

// By /proc/PID and not /proc/self: the child that execs has closed our descriptors.
bool EmbeddedProgram::place_in_memory() {
  constexpr unsigned kExec =
      0x10;  // MFD_EXEC, Linux 6.3: sealed-by-default systems want it said; older ones refuse it
  int fd = ::memfd_create(name_.c_str(), MFD_CLOEXEC | kExec);
  if (fd < 0) fd = ::memfd_create(name_.c_str(), MFD_CLOEXEC);
  memory_ = Descriptor(fd);
  if (fd < 0 || !write_all(fd, bytes_)) return false;
  path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
  return can_execute(path_);
}

bool EmbeddedProgram::place_in_folder() {
  auto folder = TemporaryDirectory::create(name_);
  if (!folder) return false;
  folder_ = std::make_unique<TemporaryDirectory>(std::move(*folder));
  path_ = path_join(folder_->path(), name_);
  {  // closed before the start: execve of a file that is open for writing fails (ETXTBSY)
    const Descriptor fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
    if (fd.get() < 0 || !write_all(fd.get(), bytes_)) return false;
  }
  return can_execute(path_);
}

Result<ProcessResult> EmbeddedProgram::run(ProcessRequest request) {
  std::call_once(once_, [this] { good_ = place_in_memory() || place_in_folder(); });
  if (!good_)
    return Error{
        Errc::PermissionDenied,
        message("cannot run the helper program {}, from memory or from a temporary directory", name_),
        message("set TMPDIR to a directory on a file system that is not mounted noexec")};
  request.argv.insert(request.argv.begin(), path_);
  return run_process(request);
}

std::string_view gpu_helper_program() {
  return {scankit_gpu_helper, static_cast<std::size_t>(scankit_gpu_helper_end - scankit_gpu_helper)};
}

Result<ProcessResult> run_gpu_helper(const std::vector<std::string>& args,
                                     std::chrono::milliseconds timeout) {
  static EmbeddedProgram program("scankit-gpu", gpu_helper_program());
  ProcessRequest request;
  request.argv = args;
  request.timeout = timeout;
  return program.run(std::move(request));
}

// Values may contain blanks but no tabs. A field without '=' is ignored.
std::vector<HelperRecord> parse_helper_records(std::string_view output) {
  std::vector<HelperRecord> records;
  while (!output.empty()) {
    std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(output.size(), line.size() + 1));
    HelperRecord record;
    record.kind = std::string(line.substr(0, line.find('\t')));
    line.remove_prefix(record.kind.size());
    while (!line.empty()) {
      line.remove_prefix(1);
      const std::string_view field = line.substr(0, line.find('\t'));
      line.remove_prefix(field.size());
      if (const auto equals = field.find('='); equals != std::string_view::npos)
        record.fields[std::string(field.substr(0, equals))] = std::string(field.substr(equals + 1));
    }
    if (!record.kind.empty()) records.push_back(std::move(record));
  }
  return records;
}

}  // namespace scankit
