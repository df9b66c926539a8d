// SPDX-License-Identifier: Apache-2.0
// Which tools a build of the examined directory would take: the choices of torch.utils.cpp_extension,
// setuptools, nvcc, ninja and CMake are repeated here with the variables and PATH of this process. A choice
// that is bad for the build is repeated too: the checks compare what would be taken with what is needed.
#include <algorithm>
#include <array>
#include <optional>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/preflight/probes/sources.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::preflight {
namespace {

std::string variable(const Host& host, std::string_view name) { return host.env(name).value_or(""); }

std::vector<std::string> folders_of(const std::string& list) {
  std::vector<std::string> folders;
  for (std::size_t at = 0; at <= list.size();) {
    const auto end = std::min(list.find(':', at), list.size());
    if (end > at) folders.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return folders;
}

// shutil.which: the first executable file of PATH.
std::string which(const Host& host, const std::string& name) {
  if (name.find('/') != std::string::npos) return host.is_program(name) ? name : "";
  for (const std::string& folder : folders_of(variable(host, "PATH")))
    if (std::string file = path_join(folder, name); host.is_program(file)) return file;
  return "";
}

// _find_cuda_home() of torch.utils.cpp_extension: CUDA_HOME, CUDA_PATH, nvcc on PATH, /usr/local/cuda; never
// searched further, and the first is not tried for a compiler.
void choose_cuda_home(const Host& host, BuildTools& tools) {
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    tools.cuda_home = variable(host, name);
    tools.cuda_home_from = name;
    if (!tools.cuda_home.empty()) break;
  }
  if (tools.cuda_home.empty()) {
    const std::string nvcc = which(host, "nvcc");
    tools.cuda_home = nvcc.empty() ? "/usr/local/cuda" : path_dirname(path_dirname(nvcc));
    tools.cuda_home_from = nvcc.empty() ? "/usr/local/cuda" : "PATH";
  }
  if (tools.cuda_home_from == "/usr/local/cuda" && !host.exists(tools.cuda_home))
    tools.cuda_home = tools.cuda_home_from = "";
  if (!tools.cuda_home.empty()) tools.nvcc = which(host, path_join(tools.cuda_home, "bin/nvcc"));
}

// CMake's CUDA language: CUDACXX, else nvcc on PATH (cmake-env-variables(7)); the rest is a guess at what the
// files say.
void choose_nvcc_of_cmake(const Host& host, BuildTools& tools) {
  const std::string wish = variable(host, "CUDACXX");
  tools.nvcc = which(host, wish.empty() ? "nvcc" : wish);
  tools.cuda_home_from = wish.empty() ? "PATH" : "CUDACXX";
  for (const std::string& home : {variable(host, "CUDA_PATH"), std::string("/usr/local/cuda")})
    if (tools.nvcc.empty() && !home.empty()) {
      tools.nvcc = which(host, path_join(home, "bin/nvcc"));
      tools.cuda_home_from = "CMake's own search";
    }
  if (!tools.nvcc.empty()) tools.cuda_home = path_dirname(path_dirname(tools.nvcc));
}

// Where nvcc looks for headers: the toolkit's directories, cccl's since 13.0, then what the host compiler
// adds by variables and by itself. sbsa-linux is the target name of 64-bit ARM servers.
std::vector<std::string> include_folders(const Host& host, const BuildTools& tools) {
  std::vector<std::string> roots{tools.cuda_home}, folders;
  if (const auto real = host.realpath(tools.nvcc)) roots.push_back(path_dirname(path_dirname(*real)));
  for (const std::string& root : roots)
    for (const char* folder :
         {"include", "include/cccl", "targets/x86_64-linux/include", "targets/x86_64-linux/include/cccl",
          "targets/sbsa-linux/include", "targets/sbsa-linux/include/cccl"})
      folders.push_back(path_join(root, folder));
  for (const char* name : {"CPATH", "CPLUS_INCLUDE_PATH", "CUDA_INC_PATH"})
    for (std::string& folder : folders_of(variable(host, name))) folders.push_back(std::move(folder));
  folders.insert(folders.end(), {"/usr/include", "/usr/local/include"});
  return folders;
}

std::string find_in(const Host& host, const std::vector<std::string>& folders, const std::string& name) {
  for (const std::string& folder : folders)
    if (std::string path = path_join(folder, name); host.exists(path)) return path;
  return "";
}

// What nvcc says of itself. Where it may not be asked, or does not run, the release comes from the toolkit's
// cuda.h and nvcc_archs stays empty.
void ask_nvcc(const Host& host, const Snapshot& snapshot, BuildTools& tools) {
  const std::string& folder = snapshot.sources.value.folder;
  tools.nvcc_version = release_in(answer_of(host, folder, tools.nvcc, "--version"));
  const auto real = host.realpath(tools.nvcc);
  if (tools.nvcc_version.empty())
    for (const Toolkit& toolkit : snapshot.toolkits.value)
      if (real && host.realpath(toolkit.nvcc).value_or("") == *real) tools.nvcc_version = toolkit.version;
  const std::string archs =
      answer_of(host, folder, tools.nvcc, "--list-gpu-arch");  // lines_of() points into it
  for (const std::string_view line : lines_of(archs))
    for (const std::string& arch : architectures_in(line)) tools.nvcc_archs.push_back(arch);
}

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

// torch compiles C++ with $CXX or c++ and gives nvcc $CC as its host compiler where that is set, else nvcc
// takes gcc from PATH. CMake: $CXX, and $CUDAHOSTCXX for nvcc.
void find_host_compilers(const Host& host, const SourceTree& tree, BuildTools& tools) {
  const auto add = [&](std::string role, const std::string& name, std::string chosen_by) {
    const std::string path = which(host, name);
    HostCompiler compiler{std::move(role), path.empty() ? name : path, "", "", std::move(chosen_by)};
    if (may_ask(host, tree.folder, path)) {
      const Compiler described = probes::describe_compiler(host, path);
      compiler.kind = described.kind;
      compiler.version = described.version;
    } else if (!path.empty()) {
      // It may not be started, so its name has to do and its version stays "".
      compiler.kind = path_basename(path).find("clang") == std::string::npos ? "gcc" : "clang";
    }
    tools.host_compilers.push_back(std::move(compiler));
  };
  // A launcher (ccache g++) or a compiler with flags is not taken apart.
  const std::string cxx = first_word(variable(host, "CXX"));
  if (path_basename(cxx).find("cache") == std::string::npos)
    add("C++", cxx.empty() ? "c++" : cxx, cxx.empty() ? "PATH" : "CXX");
  if (tools.nvcc.empty()) return;
  const bool setup = tree.build_file == "setup.py";
  for (const char* name : {setup ? "CC" : "CUDAHOSTCXX", "NVCC_CCBIN"})
    if (const std::string value = first_word(variable(host, name)); !value.empty()) {
      if (path_basename(value).find("cache") == std::string::npos) add("nvcc", value, name);
      return;
    }
  add("nvcc", "gcc", "PATH");
}

void read_torch_headers(const Host& host, const Torch& torch, BuildTools& tools) {
  const std::string include = path_join(torch.location, "include");
  tools.torch_has_headers = host.exists(path_join(include, "ATen/ATen.h"));
  if (const auto text = host.read_file(path_join(include, "c10/util/C++17.h"), 1u << 20))
    read_gcc_floor(*text, tools);
  for (const char* header : {"ATen/Dispatch.h", "torch/headeronly/core/Dispatch.h"})
    if (const auto text = host.read_file(path_join(include, header), 1u << 20))
      if (text->find("DeprecatedTypeProperties") != std::string::npos) tools.dispatch_takes_type = true;
  if (const auto text = host.read_file(path_join(torch.location, "utils/cpp_extension.py"), 4u << 20))
    read_cpp_extension(*text, tools);
  // The values that cpp_extension takes for yes. With it, torch checks no compiler, so that its bounds do
  // not count.
  static constexpr std::array<std::string_view, 5> kYes{"ON", "1", "YES", "TRUE", "Y"};
  if (std::ranges::find(kYes, variable(host, "TORCH_DONT_CHECK_COMPILER_ABI")) != kYes.end())
    tools.torch_gcc_below = tools.torch_clang_below = 0;
}

// INCLUDEPY of _sysconfigdata*.py: where the headers went when this Python was made.
std::string include_of_build(const Host& host, const Python& python) {
  for (const PathEntry& entry : python.sys_path) {
    if (entry.origin != "stdlib") continue;
    const auto entries = host.list(entry.path);
    if (!entries) continue;
    for (const DirEntry& each : *entries) {
      if (!each.name.starts_with("_sysconfigdata_") || !each.name.ends_with(".py")) continue;
      const auto text = host.read_file(path_join(entry.path, each.name), 4u << 20);
      const auto key = text ? text->find("'INCLUDEPY':") : std::string::npos;
      if (key == std::string::npos) continue;
      std::size_t at = text->find_first_not_of(" \n", key + 12);
      if (at == std::string::npos) continue;
      if (const auto folder = probes::python_string_literal(*text, at); folder && host.is_directory(*folder))
        return *folder;
    }
  }
  return "";
}

// setuptools' get_python_inc(): INCLUDEPY where that folder
// is, else below the base prefix; and the venv's own.
void find_python_header(const Host& host, const Python& python, BuildTools& tools) {
  const auto version = Version::parse(python.version);
  if (!version || python.base_prefix.empty()) return;
  tools.python_include = include_of_build(host, python);
  if (tools.python_include.empty())
    tools.python_include = path_join(
        python.base_prefix, "include/python" + version->major_minor() + (python.free_threaded ? "t" : ""));
  std::vector<std::string> folders{tools.python_include, path_join(python.prefix, "include")};
  for (const char* name : {"CPATH", "CPLUS_INCLUDE_PATH"})
    for (std::string& folder : folders_of(variable(host, name))) folders.push_back(std::move(folder));
  tools.python_header = !find_in(host, folders, "Python.h").empty();
}

// ninja's GuessParallelism(): two more than the processors, except on the smallest machines.
void count_jobs(const Host& host, const Snapshot& snapshot, BuildTools& tools) {
  const unsigned processors = snapshot.cpu.value.logical;
  tools.jobs = tools.ninja.empty() ? 1 : processors < 2 ? 2 : processors == 2 ? 3 : processors + 2;
  tools.jobs_from = tools.ninja.empty() ? "one at a time without ninja" : "ninja's default";
  const std::string wish = variable(host, "MAX_JOBS");
  const bool number = !wish.empty() && wish.size() <= 5 &&
                      wish.find_first_not_of("0123456789") == std::string::npos && wish != "0";
  if (!number || tools.ninja.empty()) return;
  tools.jobs = static_cast<unsigned>(std::stoul(wish));
  tools.jobs_from = "MAX_JOBS";
}

void find_cuda(const Host& host, const Snapshot& snapshot, BuildTools& tools) {
  const SourceTree& tree = snapshot.sources.value;
  if (tree.build_file == "setup.py")
    choose_cuda_home(host, tools);
  else
    choose_nvcc_of_cmake(host, tools);
  for (const char* name : {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"})
    if (variable(host, name).find("-allow-unsupported-compiler") != std::string::npos)
      tools.limits_waived = true;
  if (tools.nvcc.empty()) return;
  const auto folders = include_folders(host, tools);
  ask_nvcc(host, snapshot, tools);
  tools.limits_file = find_in(host, folders, "crt/host_config.h");
  if (!tools.limits_file.empty())
    if (const auto text = host.read_file(tools.limits_file, 1u << 20)) read_limits(*text, tools);
  for (const SourceFact& header : tree.cuda_headers)
    tools.headers.push_back({header.value, find_in(host, folders, header.value)});
}

}  // namespace

// Absent where no directory of sources is examined. Reads `sources`, `torch`, `python`, `toolkits` and `cpu`
// of the snapshot, so it has to come after them.
Probed<BuildTools> probe_build_tools(const Host& host, const Snapshot& snapshot) {
  if (!snapshot.sources.present()) return Probed<BuildTools>::absent(message("no source directory"));
  const SourceTree& tree = snapshot.sources.value;
  BuildTools tools;
  if (!tree.cuda.empty()) find_cuda(host, snapshot, tools);
  find_host_compilers(host, tree, tools);
  if (snapshot.torch.present()) read_torch_headers(host, snapshot.torch.value, tools);
  if (snapshot.python.present()) {
    find_python_header(host, snapshot.python.value, tools);
    tools.ninja = which(host, "ninja");
    if (tools.ninja.empty()) tools.ninja = which(host, path_join(snapshot.python.value.prefix, "bin/ninja"));
  }
  count_jobs(host, snapshot, tools);
  tools.places = build_places(host, snapshot);
  tools.arch_list = variable(host, "TORCH_CUDA_ARCH_LIST");
  // The folder of that name holds builds of torch without CUDA.
  std::string index = variable(host, "PIP_INDEX_URL");
  while (index.ends_with('/')) index.pop_back();
  tools.cpu_index = index.ends_with("/whl/cpu");
  return Probed<BuildTools>::of(std::move(tools));
}

}  // namespace scankit::preflight
