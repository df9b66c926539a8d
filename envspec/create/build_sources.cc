// SPDX-License-Identifier: Apache-2.0
// Packages whose wheel was built on some machine, built again from their source archive: the hash first, then what the
// doctor says of the sources, then the build with the installer's own words.
#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "builder/fix/execute.h"
#include "builder/fix/local_package.h"
#include "builder/fix/plan.h"
#include "builder/fix/transaction.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/preflight/checks/build_queries.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/target/wheel.h"
#include "doctor/report/progress.h"
#include "envspec/create/create.h"
#include "envspec/create/nvcc_wrapper.h"
#include "envspec/lock/install_metadata.h"

namespace scankit::envspec {
namespace {

// Where the compiled files say that they were made, whatever the directory is called: an environment must not name the
// one from which it was moved, and two machines are to get the same bytes.
constexpr const char* kNeutralPlace = "/scankit";

// Unpacked by the base interpreter, since an sdist is a tar file that every Python reads. From 3.12 on, and in later
// patches of older releases, "data" keeps members and links inside, and takes neither owners nor devices over.
constexpr const char* kUnpack = R"(
import os, sys, tarfile, zipfile
archive, target = sys.argv[1:]
if archive.endswith(".zip"):
    with zipfile.ZipFile(archive) as file:
        file.extractall(target)
    sys.exit()
with tarfile.open(archive) as file:
    if hasattr(tarfile, "data_filter"):
        file.extractall(target, filter="data")
        sys.exit()
    members = file.getmembers()
    for member in members:
        if not (member.isfile() or member.isdir()) or member.name.startswith("/") or ".." in member.name.split("/"):
            sys.exit("%r is neither a file nor a directory inside of the archive" % member.name)
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    file.extractall(target, members)
)";

std::string named(const SourceBuild& build) { return build.name + "==" + build.version; }

Error not_built(const SourceBuild& build, const Error& why) {
  return {why.code,
          message("{} cannot be built again from {}: {}", named(build), build.archive.file, why.message),
          why.hint};
}

// A copy of our own: what was compared is what is unpacked, whoever can write to the user's directory.
Result<std::string> bring(const SourceBuild& build, const std::string& folder) {
  std::string file = path_join(folder, build.archive.file);
  if (build.path.empty()) {
    SCANKIT_CHECK(download_file(build.archive, folder));
  } else {
    SCANKIT_CHECK(make_directories(folder));
    std::error_code code;
    std::filesystem::copy_file(build.path, file, code);
    if (code) return Error{Errc::Io, message("cannot copy {}: {}", build.path, code.message()), ""};
  }
  SCANKIT_TRY(const std::string hash, sha256_file(file));
  if (hash == build.archive.sha256) return file;
  return Error{Errc::Malformed, message("it has sha256 {}, and the lock says {}", hash, build.archive.sha256),
               message("copy the original file again")};
}

// The directory that is in the archive; nothing of it is run.
Result<std::string> unpack(const std::string& archive, const std::string& base, const std::string& folder) {
  SCANKIT_CHECK(make_directories(folder));
  ProcessRequest request;
  request.argv = {base, "-I", "-B", "-c", kUnpack, archive, folder};
  request.working_directory = "/";
  request.timeout = std::chrono::minutes(10);
  SCANKIT_TRY(const ProcessResult result, run_process(request));
  SCANKIT_CHECK(fix::Interruption::check());
  const std::string said(trimmed(result.err));
  if (!result.ok())
    return Error{Errc::Malformed, message("it cannot be unpacked: {}", said.substr(said.rfind('\n') + 1)),
                 message("copy the original file again")};
  const auto host = make_real_host();
  const auto entries = host->list(folder);
  if (entries && entries->size() == 1 && entries->front().kind == FileKind::Directory)
    return path_join(folder, entries->front().name);
  return Error{Errc::Malformed, message("it does not contain one directory, as a source archive does"), ""};
}

// "8.0;9.0+PTX" as torch's cpp_extension reads it, of "sm_80", "sm_90" and "compute_90".
std::string architectures(const std::vector<std::string>& code) {
  std::map<std::string, bool> archs;  // "9.0" -> with PTX
  for (const std::string& one : code) {
    const auto number = one.find('_') + 1;
    const auto end = one.find_first_not_of("0123456789", number);
    const std::string digits = one.substr(number, end == std::string::npos ? end : end - number);
    std::string arch = preflight::dotted(digits);
    if (end != std::string::npos) arch += one.substr(end);  // "9.0a"
    bool& ptx = archs[arch];
    ptx = ptx || one.starts_with("compute_");
  }
  std::vector<std::string> words;
  for (const auto& [arch, ptx] : archs) words.push_back(arch + (ptx ? "+PTX" : ""));
  return join(words, ";");
}

std::vector<std::string> code_of_lock(const EnvironmentLock& lock, const std::string& name) {
  const LockedDistribution* one = find_locked(lock, name);
  return one != nullptr && one->build ? one->build->toolchain.code : std::vector<std::string>();
}

// A compiler's switches are words to a shell-like parser in every build system, so that a path of several words, or a
// comma in what nvcc passes on, cannot be given to it.
bool is_plain(const std::string& path) { return path.find_first_of(" \t\n,;'\"\\$=") == std::string::npos; }

// nvcc calls its intermediate files after its process and writes one of the names into the symbols of each object; next
// to the object they are called after that. In NVIDIA's manual of 11.2; an older nvcc refuses what it does not know.
bool names_files_after_objects(const Host& host) {
  const auto toolkits = probes::probe_toolkits(host);
  return toolkits.present() && std::ranges::all_of(toolkits.value, [](const Toolkit& one) {
           const auto version = Version::parse(one.version);
           return version && *version >= *Version::parse("11.2");
         });
}

// The user's own switches stay; ours are appended to them. The environment's headers are in the messages of
// TORCH_CHECK; of two maps that fit, compilers take the last.
std::vector<std::pair<std::string, std::string>> neutral_paths(const Host& host,
                                                               const InstallRequest& request,
                                                               bool device_code) {
  std::vector<std::string> flags = {"-ffile-prefix-map=" + request.tools + "=" + kNeutralPlace};
  if (is_plain(request.environment))
    flags.push_back("-ffile-prefix-map=" + request.environment + "=" + kNeutralPlace + "/environment");
  std::vector<std::pair<std::string, std::string>> variables;
  const auto append = [&](const char* name, const std::string& value) {
    const std::string before = host.env(name).value_or("");
    variables.emplace_back(name, before.empty() ? value : before + " " + value);
  };
  append("CFLAGS", join(flags, " "));
  append("CXXFLAGS", join(flags, " "));
  if (!device_code) return variables;
  const std::string objects = names_files_after_objects(host) ? " --objdir-as-tempdir" : "";
  append("NVCC_APPEND_FLAGS", "-Xcompiler=" + join(flags, " -Xcompiler=") + objects);
  return variables;
}

// The user's index is not asked with --offline.
void take_offline(const InstallRequest& request, installer::InstallerCommand& command) {
  if (request.offline) command.argv.emplace_back("--no-index");
  for (const std::string& folder : request.find_links)
    command.argv.insert(command.argv.end(), {"--find-links", folder});
}

// The wheel of the sources, in a directory of ours.
Result<std::string> make_wheel(const InstallRequest& request, const installer::Installer& installer,
                               const fix::LocalSources& sources, const std::string& folder) {
  const std::string wheels = path_join(folder, "wheel"), tools = path_join(folder, "tools");
  installer::InstallerCommand command =
      installer::wheel_command(installer, sources.folder, wheels, sources.isolated);
  take_offline(request, command);
  command.environment.emplace_back("PIP_USER=0");
  for (const auto& [name, value] : sources.environment) command.environment.push_back(name + "=" + value);
  if (!sources.tools.empty()) {
    installer::InstallerCommand bring_tools = installer::tools_command(installer, sources.tools, tools);
    take_offline(request, bring_tools);
    SCANKIT_CHECK(fix::run_installer(bring_tools, request.lock));
    const auto path = make_real_host()->env("PATH");
    command.environment.push_back("PYTHONPATH=" + tools);
    command.environment.push_back("PATH=" + tools + "/bin" + (path ? ":" + *path : ""));
  }
  SCANKIT_CHECK(fix::run_installer(command, request.lock));
  return fix::built_wheel(wheels);
}

// By its name and hash: an installation by its path would record that path.
Result<void> install_wheel(const InstallRequest& request, const installer::Installer& installer,
                           const SourceBuild& build, const std::string& wheel) {
  Wheel tags;
  if (!probes::read_wheel_name(path_basename(wheel), tags) || normalized_name(tags.name) != build.name ||
      tags.version != build.version)
    return Error{Errc::Malformed,
                 message("it builds {}, and the lock has {}", path_basename(wheel), named(build)),
                 message("lock again where the environment is: scankit env lock")};
  SCANKIT_TRY(const std::string hash, sha256_file(wheel));
  const std::string requirements = path_join(path_dirname(wheel), "requirements.txt");
  SCANKIT_CHECK(write_file_atomically(requirements, named(build) + " --hash=sha256:" + hash + "\n"));
  InstallRequest alone = request;
  alone.offline = true;
  alone.find_links = {path_dirname(wheel)};
  return fix::run_installer(locked_install(alone, installer, requirements, true), request.lock);
}

Result<std::optional<Message>> build_one(const InstallRequest& request, const installer::Installer& installer,
                                         const EnvironmentLock& lock, const SourceBuild& build) {
  const auto host = make_real_host();
  const std::string folder = path_join(request.tools, "sources/" + build.name);
  SCANKIT_TRY(const std::string archive, bring(build, folder));
  SCANKIT_TRY(const std::string unpacked, unpack(archive, request.base, path_join(folder, "unpacked")));
  auto variables = locked_build_variables(lock, build);
  const bool device_code = !code_of_lock(lock, build.name).empty();
  for (auto& one : neutral_paths(*host, request, device_code)) variables.push_back(std::move(one));
  if (device_code) {
    SCANKIT_TRY(auto wrapper, write_nvcc_wrapper(*host, folder));
    variables.push_back(std::move(wrapper));
  }
  const fix::WithVariables set(variables);
  SCANKIT_TRY(const fix::LocalSources sources,
              fix::examine_sources(*host, path_join(request.environment, "bin/python"), unpacked));
  SCANKIT_TRY(const std::string wheel, make_wheel(request, installer, sources, folder));
  SCANKIT_CHECK(fix::Interruption::check());
  SCANKIT_CHECK(install_wheel(request, installer, build, wheel));
  return line_info_note(folder, named(build));
}

}  // namespace

// What is compiled in the lock is compiled again, also where no GPU is; what the package was installed without, as
// `scankit fix --package` does it, is left out again.
std::vector<std::pair<std::string, std::string>> locked_build_variables(const EnvironmentLock& lock,
                                                                        const SourceBuild& build) {
  std::map<std::string, std::string> variables;
  const bool compiled =
      std::ranges::find(lock.libraries, build.name, &LockedLibrary::distribution) != lock.libraries.end();
  if (const fix::ModelPackage* model = fix::model_package(build.name)) {
    variables[std::string(model->force)] = "TRUE";
    variables[std::string(model->skip)] = compiled ? "FALSE" : "TRUE";
    if (!model->keep.empty()) variables[std::string(model->keep)] = compiled ? "TRUE" : "FALSE";
  }
  if (const auto code = code_of_lock(lock, build.name); !code.empty()) {
    variables["TORCH_CUDA_ARCH_LIST"] = architectures(code);
    variables["FORCE_CUDA"] = "1";
  }
  // What the build was told is known better than what its files show.
  const LockedDistribution* one = find_locked(lock, build.name);
  if (one != nullptr && one->build && one->build->recorded)
    for (const auto& [name, value] : one->build->recorded->switches) variables[name] = value;
  return {variables.begin(), variables.end()};
}

namespace {

// All that setup.py files of such packages import, but for torch: in a directory of ours, so that the environment gets
// only what somebody depends on.
std::vector<std::string> build_tools(const Snapshot& snapshot) {
  return {fix::setuptools_for_torch(snapshot), "wheel", "packaging", "ninja"};
}

std::vector<std::pair<std::string, std::string>> wished_variables(const ResolverWish& wish) {
  std::map<std::string, std::string> variables;
  for (const std::string& requirement : wish.against_torch)
    if (const fix::ModelPackage* model = fix::model_package(requirement)) {
      variables[std::string(model->force)] = "TRUE";
      variables[std::string(model->skip)] = "FALSE";
      if (!model->keep.empty()) variables[std::string(model->keep)] = "TRUE";
    }
  if (!wish.code.empty()) {
    variables["TORCH_CUDA_ARCH_LIST"] = architectures(wish.code);
    variables["FORCE_CUDA"] = "1";
  }
  return {variables.begin(), variables.end()};
}

// "einops>=0.6", as the METADATA of the packages say, without torch: what is installed of it is what they were built for.
std::vector<std::string> needs_of(const Subject& made, const std::vector<std::string>& names) {
  std::vector<std::string> needs;
  for (const Distribution& one : made.snapshot.distributions.value) {
    if (std::ranges::find(names, normalized_name(one.name)) == names.end()) continue;
    const auto metadata = made.host->read_file(path_join(one.path, "METADATA"));
    if (!metadata) continue;
    for (const probes::RequirementLine& line : probes::requirement_lines(*metadata)) {
      const auto holds =
          probes::marker_holds(line.marker, made.snapshot.python.value, processor_of(made.snapshot), {});
      const std::string extras = line.extras.empty() ? "" : "[" + join(line.extras, ",") + "]";
      if (holds.value_or(true) && normalized_name(line.name) != "torch")
        needs.push_back(line.name + extras + line.specifier);
    }
  }
  return needs;
}

// "NAME==VERSION" of all that is installed: a dependency must not exchange it.
Result<std::string> write_constraints(const Subject& made, const std::string& folder) {
  std::string lines;
  for (const Distribution& one : made.snapshot.distributions.value)
    if (is_locked_name(normalized_name(one.name)) && is_locked_version(one.version))
      lines += normalized_name(one.name) + "==" + one.version + "\n";
  const std::string file = path_join(folder, "constraints.txt");
  SCANKIT_CHECK(write_file_atomically(file, lines));
  return file;
}

Result<Subject> look_at_new(const InstallRequest& request) {
  SubjectOptions options;
  options.python = path_join(request.environment, "bin/python");
  options.find_extensions = false;
  return look_at(options);
}

}  // namespace

Result<std::vector<Message>> install_against_torch(const InstallRequest& request, const ResolverWish& wish) {
  std::vector<Message> notes;
  if (wish.against_torch.empty()) return notes;
  SCANKIT_TRY(const installer::Installer installer, installer_for(request));
  report::Progress progress;
  progress.act(say("building against the installed torch: {}", join(wish.against_torch)));
  const std::string tools = path_join(request.tools, "build-tools");
  SCANKIT_TRY(const Subject before, look_at_new(request));
  SCANKIT_CHECK(fix::run_installer(installer::tools_command(installer, build_tools(before.snapshot), tools),
                                   request.lock));
  auto variables = wished_variables(wish);
  const auto host = make_real_host();
  for (auto& one : neutral_paths(*host, request, true)) variables.push_back(std::move(one));
  SCANKIT_TRY(auto wrapper, write_nvcc_wrapper(*host, request.tools));
  variables.push_back(std::move(wrapper));
  std::vector<std::string> names;
  std::vector<std::string> words = {"--no-deps", "--no-build-isolation"};
  for (const std::string& requirement : wish.against_torch) {
    names.push_back(installer::required_name(requirement));
    words.insert(words.end(), {"--no-binary", names.back()});
  }
  // What an installer has built before may have been for another torch.
  words.emplace_back(installer.kind == installer::Installer::Kind::Uv ? "--no-cache" : "--no-cache-dir");
  words.insert(words.end(), wish.against_torch.begin(), wish.against_torch.end());
  installer::InstallerCommand build = install_command(request, installer, words);
  for (const auto& [name, value] : variables) build.environment.push_back(name + "=" + value);
  const auto path = host->env("PATH");
  build.environment.push_back("PYTHONPATH=" + tools);
  build.environment.push_back("PATH=" + tools + "/bin" + (path ? ":" + *path : ""));
  SCANKIT_CHECK(fix::run_installer(build, request.lock));
  if (auto note = line_info_note(request.tools, join(names))) notes.push_back(*std::move(note));
  SCANKIT_TRY(const Subject made, look_at_new(request));
  std::vector<std::string> needs = needs_of(made, names);
  if (needs.empty()) return notes;
  SCANKIT_TRY(const std::string constraints, write_constraints(made, request.tools));
  needs.insert(needs.begin(), {"--constraint", constraints});
  // Else pip would install all of it again: torch, and what was just built, in isolation and without torch.
  InstallRequest onto = request;
  onto.over_installed = true;
  SCANKIT_CHECK(fix::run_installer(install_command(onto, installer, needs), request.lock));
  return notes;
}

Result<void> check_build_place(const std::string& work, Message next) {
  if (is_plain(path_dirname(work))) return {};
  return Error{Errc::InvalidArgument,
               message("the path {} has a character that builds cannot take", path_dirname(work)),
               std::move(next)};
}

Result<std::vector<Message>> build_sources(const InstallRequest& request,
                                           const installer::Installer& installer, const EnvironmentLock& lock,
                                           const std::vector<SourceBuild>& builds) {
  std::vector<Message> notes;
  for (const SourceBuild& build : builds) {
    report::Progress progress;
    progress.act(say("building {} again from {}", named(build), build.archive.file));
    auto built = build_one(request, installer, lock, build);
    SCANKIT_CHECK(fix::Interruption::check());
    if (!built) return not_built(build, built.error());
    if (*built) notes.push_back(**std::move(built));
  }
  return notes;
}

}  // namespace scankit::envspec
