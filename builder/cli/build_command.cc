// SPDX-License-Identifier: Apache-2.0
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "builder/cli/commands.h"
#include "builder/fix/distribution.h"
#include "builder/module/assemble.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/python/python.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"

extern char** environ;

// `scankit build`: reads the facts that a build needs, builds, and writes the module and its manifest.
namespace scankit::cli {
namespace {

// Only what a build needs. No extension is read, so a build from the cache takes milliseconds.
Snapshot facts_for_build(const Host& host, const BuildOptions& options) {
  Snapshot snapshot;
  snapshot.memory = probes::probe_memory(host);
  snapshot.gpus = probes::probe_gpus(host);
  snapshot.driver = probes::probe_driver(host);
  snapshot.toolkits = probes::probe_toolkits(host);
  // Device code needs no Python. One is looked for only because its torch may have brought an NVRTC.
  BrokenEnvironment broken;
  if (auto python = chosen_python(host, options.python, broken)) {
    snapshot.python = probes::probe_python(host, *python);
    snapshot.distributions = probes::probe_distributions(host, snapshot.python.value);
    snapshot.torch = probes::probe_torch(host, snapshot.python.value, snapshot.distributions.value);
  } else {
    snapshot.python = Probed<Python>::failed(python.error().message);
    if (!broken.origin.empty()) snapshot.broken_environment = broken;
  }
  return snapshot;
}

void print_result(const compile::BuiltModule& built, const std::string& path) {
  for (const std::string& note : built.notes) print_line(say("note: {}", note));
  const double size = static_cast<double>(built.bytes.size()) / 1e6;
  const std::string made =
      built.images.empty() ? say("{:.2f} MB, without device code: it computes on the CPU", size)
                           : say_n(built.images.size(), "{:.2f} MB, {}, {}; {} of {} image from the cache",
                                   "{:.2f} MB, {}, {}; {} of {} images from the cache", size,
                                   module::names_of(built.targets, ", "), built.compiler, built.from_cache,
                                   built.images.size());
  std::printf("%s\n  %s\n", report::plain(path, false).c_str(), report::plain(made, false).c_str());
  if (!built.made_for.empty()) std::printf("  %s\n", report::plain(built.made_for, false).c_str());
}

void print_comparison(const std::string& name, const compile::Explanation& other,
                      const compile::Explanation& here) {
  const auto lines = compile::compare_explanations(name, other, here);
  const std::string headline = lines.empty() ? say("everything that this build depends on is the same as in "
                                                   "{}",
                                                   name)
                                             : say("this build differs from {}:", name);
  print_line(headline);
  for (const std::string& line : lines) std::printf("  %s\n", report::plain(line, false).c_str());
}

// The fields of a manifest, and what this run did. read_explanation() reads this output back.
void print_json(const compile::BuiltModule& built, const std::string& path, const BuildOptions& options,
                const compile::Explanation& other) {
  nlohmann::ordered_json json = {{"schema", 1}};
  json["module"] = "";  // here for its place; add_explanation() sets it
  json["file"] = path;
  json["size"] = built.bytes.size();
  json["sha256"] = sha256_hex(built.bytes);
  json["compiler"] = built.compiler;
  json["from_cache"] = built.from_cache;
  json["compiled"] = built.compiled;
  json["notes"] = built.notes;
  compile::add_explanation(json, built.explanation);
  if (!options.explain_other.empty())
    json["differences"] = compile::compare_explanations(options.explain_other, other, built.explanation);
  std::printf("%s", json_document(json).c_str());
}

// While it runs, Ctrl-C ends the program after saying what is left behind.
Result<compile::BuiltModule> interruptible_build(const Host& host, const Snapshot& snapshot,
                                                 const compile::BuildRequest& request) {
  const report::IfInterrupted words(
      say("interrupted: no module was written. Compiled code is kept in the cache; run the same command "
          "again to continue"));
  return compile::build_module(host, snapshot, request);
}

}  // namespace

// A file that begins with '{' is a snapshot; `read_machine` reads any other.
Result<void> build_for(const std::string& file, const MachineReader& read_machine, Snapshot& here,
                       module::TargetRequest& targets) {
  constexpr std::size_t kLimit = 256u << 20;
  SCANKIT_TRY(const std::string text, read_whole_file(file, kLimit));
  const auto start = text.find_first_not_of(" \t\r\n");
  const bool json = start == std::string::npos || text[start] == '{';
  const bool other = !json && read_machine != nullptr;
  auto there = other ? read_machine(text, file) : snapshot_from_json(text);
  if (!there && other) return there.error();
  if (!there)
    return Error{there.error().code, message("{} is not a snapshot: {}", file, there.error().message),
                 message("make one on that machine: scankit snapshot --out FILE")};
  if (!there->gpus.present() || there->gpus.value.empty())
    return Error{Errc::NotFound, message("{} lists no GPU", file),
                 message("choose the GPU that the module is for: --arch sm_90")};
  here.gpus = std::move(there->gpus);
  here.driver = std::move(there->driver);
  targets = {module::TargetRequest::Kind::Native, {}};
  return {};
}

// A trailing slash means a directory, even if it does not exist yet.
Result<std::string> output_path(const std::string& out, const std::string& file) {
  std::string path = path_normalize(path_join(current_directory(), out.empty() ? file : out));
  if (std::filesystem::is_directory(path) || out.ends_with('/')) path = path_join(path, file);
  SCANKIT_CHECK(make_directories(path_dirname(path)));
  return regular_output(path);
}

int run_build(const BuildOptions& options) {
  if (!options.show_manifest.empty()) return show_manifest(options.show_manifest);
  if (options.reproducible) return check_reproducible(options);
  const auto host = make_real_host();
  // An --out that cannot be written is reported before a minute of compiling and not after it.
  if (!options.out.empty() && !options.out.ends_with('/') && !std::filesystem::is_directory(options.out))
    if (const auto out = regular_output(options.out); !out)
      return report_error("build", out.error(), kExitUsage);
  const bool release = options.release || options.arch == "release";
  auto request = build_request(options.module, release ? "" : options.arch, options.compilation);
  if (!request) return report_error("build", request.error(), kExitUsage);
  if (auto known = toolchain::check_request(options.compilation.toolchain); !known)
    return report_error("build", known.error(), kExitUsage);
  request->toolchain.asked = options.compilation.toolchain;
  request->toolchain.may_download = options.allow_download;
  request->toolchain.release = release;
  request->toolchain.progress = tell;
  const auto flavor = compile::parse_flavor(options.flavor);
  if (!flavor) return report_error("build", flavor.error(), kExitUsage);
  request->flavor = *flavor;
  compile::Explanation other;
  if (!options.explain_other.empty()) {
    auto read = module::read_explanation(options.explain_other);
    if (!read) return report_error("build", read.error(), kExitUsage);
    other = std::move(*read);
  }
  Snapshot snapshot = facts_for_build(*host, options);
  if (!options.for_machine.empty())
    if (auto known = build_for(options.for_machine, options.read_machine, snapshot, request->targets); !known)
      return report_error("build", known.error(), kExitUsage);
  if (!snapshot.python.present() && !options.python.empty())
    return report_error("build", {Errc::InvalidArgument, tr(snapshot.python.note), ""}, kExitUsage);
  if (const auto broken = snapshot.broken_environment)
    return report_error("build", probes::error_of(*broken), kExitFindings);
  if (*flavor == compile::Flavor::Torch) request->targets.cuda = snapshot.torch.value.cuda;
  if (options.list_toolchains) return list_toolchains(*host, snapshot, *request);
  if (options.explain && options.explain_other.empty() && !options.json)
    request->explain = [](const compile::Explanation& inputs) {
      std::fputs(compile::explanation_text(inputs).c_str(), stdout);
      std::fflush(stdout);  // before the work, also in a pipe
    };
  const auto built = interruptible_build(*host, snapshot, *request);
  if (!built) return report_error("build", built.error(), kExitBuildFailed);
  const auto out = output_path(options.out, built->file);
  if (!out) return report_error("build", out.error(), kExitBuildFailed);
  const std::string& path = *out;
  Result<void> written = compile::write_module(*host, *built, path);
  if (written) written = write_output(path + ".json", built->manifest);
  if (!written) return report_error("build", written.error(), kExitBuildFailed);
  if (options.json) {
    print_json(*built, path, options, other);
    return kExitClean;
  }
  if (!options.explain_other.empty()) print_comparison(options.explain_other, other, built->explanation);
  print_result(*built, path);
  return kExitClean;
}

// `build --check-reproducible`: runs the same build twice, as children, and varies what must not matter.
// Whole runs of this program are compared, so that the check covers every compiler and flavor and scankit's
// own part too.
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
  for (const std::string& line : module::module_differences(first.bytes, second.bytes))
    print_line("  " + line);
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

}  // namespace scankit::cli
