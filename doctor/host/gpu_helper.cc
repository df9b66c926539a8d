// SPDX-License-Identifier: Apache-2.0
#include "doctor/host/gpu_helper.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

extern "C" const char scankit_gpu_helper[];
extern "C" const char scankit_gpu_helper_end[];

namespace scankit {
namespace {

// Where the program can be executed from, and what keeps it there.
struct Program {
  std::string path;
  Descriptor memory;
  std::unique_ptr<TemporaryDirectory> folder;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

bool can_execute(const std::string& path) {
  ProcessRequest request;
  request.argv = {path};  // no verb: prints its usage
  auto ran = run_process(request);
  return ran && ran->signal == 0 && !ran->timed_out;
}

// By /proc/PID and not /proc/self: the child that execs has closed our descriptors.
bool place_in_memory(Program& program) {
  constexpr unsigned kExec =
      0x10;  // MFD_EXEC, Linux 6.3: sealed-by-default systems want it said; older ones refuse it
  int fd = ::memfd_create("scankit-gpu", MFD_CLOEXEC | kExec);
  if (fd < 0) fd = ::memfd_create("scankit-gpu", MFD_CLOEXEC);
  program.memory = Descriptor(fd);
  if (fd < 0 || !write_all(fd, gpu_helper_program())) return false;
  program.path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
  return can_execute(program.path);
}

bool place_in_folder(Program& program) {
  auto folder = TemporaryDirectory::create("scankit-gpu");
  if (!folder) return false;
  program.folder = std::make_unique<TemporaryDirectory>(std::move(*folder));
  program.path = path_join(program.folder->path(), "scankit-gpu");
  {
    const Descriptor fd(::open(program.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
    if (fd.get() < 0 || !write_all(fd.get(), gpu_helper_program())) return false;
  }
  return can_execute(program.path);
}

// Placed once a process; the memory file lives as long as we do.
const Program* placed_program() {
  static Program program;
  static std::once_flag once;
  static bool good = false;
  std::call_once(once, [] { good = place_in_memory(program) || place_in_folder(program); });
  return good ? &program : nullptr;
}

}  // namespace

std::string_view gpu_helper_program() {
  return {scankit_gpu_helper, static_cast<std::size_t>(scankit_gpu_helper_end - scankit_gpu_helper)};
}

Result<ProcessResult> run_gpu_helper(const std::vector<std::string>& args,
                                     std::chrono::milliseconds timeout) {
  const Program* program = placed_program();
  if (program == nullptr)
    return Error{Errc::PermissionDenied,
                 say("cannot run the helper program scankit-gpu, from memory or from a temporary folder"),
                 say("set TMPDIR to a folder on a file system that is not mounted noexec")};
  ProcessRequest request;
  request.argv = {program->path};
  request.argv.insert(request.argv.end(), args.begin(), args.end());
  request.timeout = timeout;
  return run_process(request);
}

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
