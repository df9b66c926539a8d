// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <sstream>

#include "builder/toolchain/nvcc.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"

namespace scankit {
namespace {

unsigned release_major(const std::string& text) {
  const auto version = Version::parse(text);
  return version ? version->part(0) : 0;
}

// The variables of nvcc and of the host compiler that add flags and headers are left out: what they say would
// be in the image and not in the key.
std::vector<std::string> environment(const std::string& folder) {
  std::vector<std::string> variables = {std::string("TMPDIR=").append(folder), "LC_ALL=C"};
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH"})
    if (const char* value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
  return variables;
}

// A template's log runs to thousands of lines: those that name an error, 30 at most, and how many are not
// shown.
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

void NvccCompiler::add_inputs(Key& key) const {
  key.add("host compiler", nvcc_.host.kind + " " + nvcc_.host.version);
}

Result<ProcessResult> NvccCompiler::compile(const Job& job) const {
  // By its bare name: the path would be in the messages.
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

}  // namespace scankit
