// SPDX-License-Identifier: Apache-2.0
// `build --check-reproducible`: runs the same build twice, as children, and varies what must not matter.
// Whole runs of this program are compared, so that the check covers every compiler and flavor and scankit's
// own part too.
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <thread>

#include "builder/cli/commands.h"
#include "builder/fix/distribution.h"
#include "builder/module/module_diff.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"

extern char** environ;

namespace scankit {
namespace {

// What differs between the two builds, beside the time and the process ids.
struct Variation {
  std::string folder;  // TMPDIR and the output lie below it; names of two lengths
  const char *zone, *locale;
  mode_t umask;
  unsigned jobs;
};

// Our own variables, with those of the variation in the place of ours.
std::vector<std::string> environment_of(const Variation& variation) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    bool ours = false;
    for (const char* name : {"TMPDIR=", "TZ=", "LC_ALL=", "LANG=", "LANGUAGE="})
      ours = ours || variable.starts_with(name);
    if (!ours) variables.push_back(variable);
  }
  variables.push_back("TMPDIR=" + variation.folder + "/tmp");
  variables.push_back(std::string("TZ=") + variation.zone);
  variables.push_back(std::string("LC_ALL=") + variation.locale);
  return variables;
}

// Runs one build without a cache and gives the directory with its output. A build that fails prints its own
// errors. umask(2) is inherited by the child, so it is set here and set back afterwards.
Result<std::string> build_once(const std::vector<std::string>& arguments, const Variation& variation) {
  SCANKIT_CHECK(make_directories(variation.folder + "/tmp"));
  ProcessRequest request;
  SCANKIT_TRY(const std::string program, own_program());
  request.argv = {program, "build"};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  request.argv.insert(request.argv.end(), {"--cache-size=0", "--out=" + variation.folder + "/out/",
                                           "--jobs=" + std::to_string(variation.jobs)});
  request.environment = environment_of(variation);
  request.timeout = std::chrono::hours(24);  // each compiler has its own
  const mode_t before = ::umask(variation.umask);
  auto ran = run_process(request);
  ::umask(before);
  if (!ran) return ran.error();
  if (ran->ok()) return variation.folder + "/out/";
  std::istringstream lines(ran->err);
  for (std::string line; std::getline(lines, line);) tell(line);
  return Error{ran->exit_code == kExitUsage ? Errc::InvalidArgument : Errc::ToolFailed,
               message("a build failed, so there is nothing to compare"), ""};
}

Result<std::string> only_module(const std::string& folder) {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code))
    if (entry.path().extension() == ".so") return entry.path().string();
  return Error{Errc::NotFound, message("the build wrote no module to {}", folder), ""};
}

struct Built {
  std::string path, bytes, manifest;
};

// The module and its manifest, read into memory: the directory goes away with the command.
Result<Built> build_varied(const std::vector<std::string>& arguments, const Variation& variation) {
  SCANKIT_TRY(const std::string folder, build_once(arguments, variation));
  Built built;
  SCANKIT_TRY(built.path, only_module(folder));
  SCANKIT_TRY(built.bytes, read_whole_file(built.path, 1u << 30));
  if (auto manifest = read_whole_file(built.path + ".json")) built.manifest = std::move(*manifest);
  return built;
}

// Whether a child may switch off address randomisation for NVRTC. Docker's default filter forbids it.
bool addresses_can_be_fixed() {
  const int now = ::personality(0xffffffff);
  if (now == -1) return false;
  const bool can = ::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) != -1;
  ::personality(static_cast<unsigned long>(now));
  return can;
}

// Says what differs and keeps both modules, since the directory of the two builds is removed.
int report_differences(const Built& first, const Built& second) {
  print_line(say("NOT reproducible: two builds of {} differ", path_basename(first.path)));
  for (const std::string& line : module_differences(first.bytes, second.bytes)) print_line("  " + line);
  if (first.bytes == second.bytes) print_line("  " + say("the manifest next to the module differs"));
  if (!addresses_can_be_fixed())
    print_line("  " +
               say("address randomisation cannot be disabled here (a sandbox forbids "
                   "personality(2)), and compilers' output may depend on it: try outside the sandbox"));
  std::error_code code;
  const std::string kept =
      std::filesystem::temp_directory_path(code).string() + "/scankit-differ-" + std::to_string(::getpid());
  if (make_directories(kept) && write_file_atomically(kept + "/first.so", first.bytes) &&
      write_file_atomically(kept + "/second.so", second.bytes))
    print_line(say("both are kept in {}", kept));
  return kExitFindings;
}

// Writes the module and its manifest to where `build` would have written them.
Result<std::string> place(const std::string& out, const Built& built) {
  SCANKIT_TRY(const std::string path, output_path(out, path_basename(built.path)));
  SCANKIT_CHECK(write_file_atomically(path, built.bytes, 0755));
  SCANKIT_CHECK(write_file_atomically(path + ".json", built.manifest));
  return path;
}

}  // namespace

int check_reproducible(const BuildOptions& options) {
  const auto folder = TemporaryDirectory::create("scankit-twice");
  if (!folder) return report_error("build", folder.error(), kExitBuildFailed);
  const unsigned jobs = options.compilation.jobs != 0 ? options.compilation.jobs
                                                      : std::max(2u, std::thread::hardware_concurrency());
  const Variation one{folder->path() + "/a", "UTC", "C", 0022, jobs};
  const Variation two{folder->path() + "/the-second-build", "Asia/Kathmandu", "C.UTF-8", 0077, 1};
  tell(say("building for the first time, {} compilers at once", one.jobs));
  const auto first = build_varied(options.again, one);
  if (!first) return report_error("build", first.error(), kExitBuildFailed);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // another second, for what writes seconds
  tell(say("building again, one compiler at a time"));
  const auto second = build_varied(options.again, two);
  if (!second) return report_error("build", second.error(), kExitBuildFailed);
  if (first->bytes != second->bytes || first->manifest != second->manifest)
    return report_differences(*first, *second);
  const auto path = place(options.out, *first);
  if (!path) return report_error("build", path.error(), kExitBuildFailed);
  print_line(say("reproducible: two builds gave the same {} bytes, sha256 {}", first->bytes.size(),
                 sha256_hex(first->bytes)));
  print_line("  " +
             say("varied: the temporary directory, the time, the time zone, the locale, the umask, {} and "
                 "{} parallel compilers; without a cache",
                 one.jobs, two.jobs));
  print_line(*path);
  return kExitClean;
}

}  // namespace scankit
