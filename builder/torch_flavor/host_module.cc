// SPDX-License-Identifier: Apache-2.0
// A compilation depends on every header that it reads, and which these are is known only afterwards. So the
// cache has two entries: one lists the headers with their hashes, under a key without them (key_of_headers);
// the other is the module, under a key with the hash of that list (whole_key). A build looks up the list,
// hashes the headers as they are now, and looks up the module.
#include <algorithm>
#include <csignal>
#include <optional>
#include <sstream>

#include "builder/compile/compile.h"
#include "builder/module/bundled.h"
#include "builder/torch_flavor/torch_flavor.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/report/progress.h"

namespace scankit::torch_flavor {
namespace {

constexpr auto kTimeout = std::chrono::minutes(10);
constexpr std::size_t kTorchModuleLimit = 64u << 20, kHeaderLimit = 16u << 20, kErrorLines = 12;
constexpr const char* kSource = "libtorch.cc";
constexpr const char* kObject = "libtorch.o";
constexpr const char* kEntries = "libscankit_entries.a";
constexpr const char* kParts = "libscankit_parts.a";
constexpr const char* kExports = "exports.map";

using Words = std::vector<std::string>;

// The flags that are part of the key. No path is among them: the include directories come from add_folders(),
// and a prefix map keeps them out of the bytes.
Words compile_flags(const TorchEnvironment& environment) {
  return {
      "-std=c++" + environment.cxx_standard,
      "-O2",
      "-g0",
      "-fPIC",
      "-fvisibility=hidden",
      "-fvisibility-inlines-hidden",
      "-ffunction-sections",
      "-fstack-protector-strong",
      "-w",  // torch's headers warn with some compilers; the file itself is checked where scankit is built
      "-DNDEBUG",
      "-DSCANKIT_FLAVOR_TORCH",
      string_abi_flag(environment.string_abi)};
}

// -u pulls the module's own PyInit_ out of the archive of entries; the version script exports nothing else.
Words link_flags(const std::string& module) {
  return {"-shared", "-Wl,-u,PyInit_" + module, std::string("-Wl,--version-script=") + kExports,
          "-Wl,--gc-sections,-z,relro,-z,now,--build-id=sha1,--as-needed", "-s"};
}

void add_folders(const TorchEnvironment& environment, Words& argv) {
  const std::string torch = path_join(environment.torch_folder, "include");
  for (const std::string& folder :
       {torch, path_join(torch, "torch/csrc/api/include"), environment.python_include})
    argv.insert(argv.end(), {"-isystem", folder});
  // Checks in torch's inline functions contain __FILE__.
  argv.push_back("-ffile-prefix-map=" + environment.torch_folder + "=torch");
  argv.push_back("-ffile-prefix-map=" + environment.python_include + "=python");
}

// The inputs that are known before the compilation; both keys have them.
void add_inputs(const HostModuleRequest& request, compile::Key& key) {
  const TorchEnvironment& environment = *request.environment;
  key.add("binding source", sha256_hex(request.parts.source));
  key.add("torch", environment.torch_version);
  key.add("string abi", environment.string_abi);
  key.add("c++ standard", environment.cxx_standard);
  key.add("python", environment.python_version);
  key.add("c++ compiler",
          environment.compiler.kind + " " + environment.compiler.version + " " + environment.compiler.sha256);
  key.add("c++ flags", join(compile_flags(environment), " "));
}

// The key of the list of headers. The directories are part of it, since the list has absolute paths.
compile::Key key_of_headers(const HostModuleRequest& request) {
  compile::Key key;
  key.add("format", "torch-headers-1");
  add_inputs(request, key);
  key.add("folders", request.environment->torch_folder + " " + request.environment->python_include);
  return key;
}

// A hash of the list without the directories of torch and Python, so that it is the same everywhere.
std::string headers_digest(const TorchEnvironment& environment, const std::string& headers) {
  std::string all = headers;
  for (const std::string& folder : {environment.torch_folder, environment.python_include})
    for (auto at = all.find(folder); !folder.empty() && at != std::string::npos; at = all.find(folder, at))
      all.erase(at, folder.size());
  return sha256_hex(all);
}

// The key of the linked module. `headers`: a list as headers_now() makes it.
compile::Key whole_key(const HostModuleRequest& request, const std::string& headers) {
  compile::Key key;
  key.add("format", "torch-host-module-1");
  key.add("module", request.module);
  add_inputs(request, key);
  key.add("headers", headers_digest(*request.environment, headers));
  key.add("archives", sha256_hex(request.parts.entries) + " " + sha256_hex(request.parts.parts));
  key.add("link flags", join(link_flags(request.module), " "));
  key.add("libraries", join(request.environment->identities, " "));
  return key;
}

// The list for these files, "SHA PATH\n" for each; nothing if one of them is no longer there.
std::optional<std::string> headers_now(const Words& paths) {
  std::string all;
  for (const std::string& path : paths) {
    const auto text = read_whole_file(path, kHeaderLimit);
    if (!text) return std::nullopt;
    all += sha256_hex(*text) + " " + path + "\n";
  }
  return all;
}

// The paths of such a list. 64 hex digits and a blank come before each.
Words paths_in(const std::string& headers) {
  Words paths;
  std::istringstream lines(headers);
  for (std::string line; std::getline(lines, line);)
    if (line.size() > 65) paths.push_back(line.substr(65));
  return paths;
}

// Both lists have the same paths in the same order.
std::string first_changed_header(const std::string& before, const std::string& now) {
  std::istringstream old_lines(before), new_lines(now);
  for (std::string a, b; std::getline(old_lines, a) && std::getline(new_lines, b);)
    if (a != b && b.size() > 65) return b.substr(65);
  return "";
}

// The tools' own lines that name an error, without the template instantiations around them; all lines if none
// does. The last line of collect2 only says that there was an error.
std::string tool_error_lines(const std::string& log) {
  std::istringstream lines(log);
  Words errors, all;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("collect2:") != std::string::npos) continue;
    for (const char* sign : {"error", "Killed", "undefined reference", "multiple definition", "cannot find"})
      if (line.find(sign) != std::string::npos) {
        errors.push_back(line);
        break;
      }
    all.push_back(line);
  }
  const Words& chosen = errors.empty() ? all : errors;
  std::string text;
  for (std::size_t i = 0; i < std::min(chosen.size(), kErrorLines); ++i) text += chosen[i] + "\n";
  return text;
}

enum class BuildStep { Compile, Link };

// The first useful line becomes the message, the others become the hint.
Error step_failure(BuildStep step, const ProcessResult& ran) {
  const std::string lines = tool_error_lines(ran.err);
  std::string why = lines.substr(0, lines.find('\n'));
  if (ran.timed_out) why = say("the compiler took longer than 10 minutes");
  // g++ is a driver: what the kernel kills is cc1plus, and g++ says so.
  if (ran.signal == SIGKILL || ran.err.find("Killed signal") != std::string::npos)
    why = say("the compiler was killed, probably for lack of memory");
  return {ran.timed_out ? Errc::Timeout : Errc::ToolFailed,
          step == BuildStep::Compile ? message("compiling the torch flavor's binding failed: {}", why)
                                     : message("linking the torch flavor's module failed: {}", why),
          lines.find('\n') + 1 < lines.size() ? lines.substr(lines.find('\n') + 1) : ""};
}

Result<void> run_step(BuildStep step, Words argv, const std::string& folder) {
  ProcessRequest request;
  request.argv = std::move(argv);
  request.working_directory = folder;
  request.timeout = kTimeout;
  SCANKIT_TRY(const ProcessResult ran, run_process(request));
  if (!ran.ok()) return step_failure(step, ran);
  return {};
}

// One compilation and one link in a temporary directory. run() gives the module's bytes and sets `headers`.
class Building {
 public:
  Building(const HostModuleRequest& request, std::string folder)
      : request_(request), environment_(*request.environment), folder_(std::move(folder)) {}

  Result<std::string> run(std::string& headers) {
    SCANKIT_CHECK(write_file_atomically(path_join(folder_, kSource), request_.parts.source));
    SCANKIT_CHECK(write_file_atomically(path_join(folder_, kEntries), request_.parts.entries));
    SCANKIT_CHECK(write_file_atomically(path_join(folder_, kParts), request_.parts.parts));
    std::string exports("{global:PyInit_");
    exports.append(request_.module).append(";local:*;};");
    SCANKIT_CHECK(write_file_atomically(path_join(folder_, kExports), exports));
    SCANKIT_CHECK(compile());
    SCANKIT_TRY(const std::string listed, read_whole_file(path_join(folder_, "libtorch.d")));
    Words paths = dependencies_in(listed);
    // The one relative path is our own source, which is in the key already.
    std::erase_if(paths, [](const std::string& path) { return !path.starts_with('/'); });
    const auto now = headers_now(paths);
    if (!now) return Error{Errc::Conflict, message("torch's headers changed during the compilation"), ""};
    headers = *now;
    SCANKIT_CHECK(link());
    return read_whole_file(path_join(folder_, request_.module + ".so"), kTorchModuleLimit);
  }

 private:
  // Relative names in a directory of our own, so that nothing of its path gets into the object.
  Result<void> compile() const {
    Words argv = environment_.compiler.argv;
    const Words flags = compile_flags(environment_);
    argv.insert(argv.end(), flags.begin(), flags.end());
    add_folders(environment_, argv);
    argv.insert(argv.end(), {"-ffile-prefix-map=" + folder_ + "=.", "-MD", "-MF", "libtorch.d", "-c", kSource,
                             "-o", kObject});
    return run_step(BuildStep::Compile, std::move(argv), folder_);
  }

  Result<void> link() const {
    Words argv = environment_.compiler.argv;
    const Words flags = link_flags(request_.module);
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.insert(argv.end(), {"-o", request_.module + ".so", kObject, kEntries, kParts});
    argv.insert(argv.end(), environment_.libraries.begin(), environment_.libraries.end());
    // Before glibc 2.34 threads and dlopen have libraries of their own.
    argv.insert(argv.end(), {"-lpthread", "-ldl", "-lm"});
    return run_step(BuildStep::Link, std::move(argv), folder_);
  }

  const HostModuleRequest& request_;
  const TorchEnvironment& environment_;
  std::string folder_;
};

void tell_progress(const HostModuleRequest& request, const std::string& line) {
  if (request.progress) request.progress(line);
}

// Names the module for Cache::last_inputs(), which explains a later miss.
std::string slot_of(const HostModuleRequest& request) { return std::string("torch/").append(request.module); }

// The module's bytes from the cache, or nothing after telling the user why. Sets `headers` to the current
// list of the headers that an earlier compilation read; "" if there was none or if one is gone.
std::optional<std::string> find_cached(const HostModuleRequest& request, std::string& headers) {
  const std::string slot = slot_of(request);
  if (const auto before = request.cache->find(key_of_headers(request))) {
    const auto now = headers_now(paths_in(*before));
    if (!now || *now != *before)
      tell_progress(request, now ? say("the header {} has changed: compiling again",
                                       first_changed_header(*before, *now))
                                 : say("a header that was used before no longer exists: compiling again"));
    headers = now.value_or("");
    if (auto bytes = now ? request.cache->find(whole_key(request, *now)) : std::nullopt) {
      request.cache->remember(whole_key(request, *now), slot);
      return bytes;
    }
    if (!now || *now != *before) return std::nullopt;
  }
  const auto last = request.cache->last_inputs(slot);
  if (!last) return std::nullopt;
  compile::Inputs old = compile::parse_inputs(*last), fresh = whole_key(request, headers).inputs();
  // Without a list of headers for this compiler and torch, the label "headers" says nothing.
  const auto is_headers = [](const auto& input) { return input.first == "headers"; };
  if (headers.empty()) std::erase_if(old, is_headers), std::erase_if(fresh, is_headers);
  for (const std::string& change : compile::changes_in_words(old, fresh))
    tell_progress(request, say("the binding is compiled again: {}", change));
  return std::nullopt;
}

}  // namespace

const TorchParts& torch_parts() {
  static const TorchParts parts = {module::carried_file("libtorch.cc"),
                                   module::carried_file("libscankit_entries.a"),
                                   module::carried_file("libscankit_parts.a")};
  return parts;
}

Result<HostModule> build_host_module(const HostModuleRequest& request) {
  HostModule module;
  std::string headers;
  if (auto bytes = find_cached(request, headers)) {
    tell_progress(request,
                  say("the binding for torch {} is in the cache", request.environment->torch_version));
    module.bytes = std::move(*bytes);
    module.from_cache = true;
  } else {
    if (request.environment->no_room) return *request.environment->no_room;
    report::Progress progress;
    progress.act(say("compiling the binding for torch {}", request.environment->torch_version), kTimeout);
    SCANKIT_TRY(const auto folder, TemporaryDirectory::create("scankit-torch"));
    SCANKIT_TRY(module.bytes, Building(request, folder.path()).run(headers));
    // A full or read-only cache is no reason to fail.
    request.cache->store(key_of_headers(request), std::string("headers/").append(request.module), headers);
    request.cache->store(whole_key(request, headers), slot_of(request), module.bytes);
  }
  module.inputs = whole_key(request, headers).inputs();
  return module;
}

// gcc escapes a blank and '#' with a backslash and doubles a dollar; a backslash continues a line.
std::vector<std::string> dependencies_in(std::string_view makefile) {
  std::vector<std::string> files;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) files.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t at = std::min(makefile.find(": "), makefile.size()) + 1; at < makefile.size(); ++at) {
    const char c = makefile[at];
    if (c == '\\' && at + 1 < makefile.size() && makefile[at + 1] == '\n') {
      ++at;
      end_word();
    } else if ((c == '\\' || c == '$') && at + 1 < makefile.size() &&
               std::string_view(" #\\$").find(makefile[at + 1]) != std::string_view::npos) {
      word += makefile[++at];  // "\ " is a blank of the name, "$$" a dollar
    } else if (c == ' ' || c == '\n') {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace scankit::torch_flavor
