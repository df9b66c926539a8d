// SPDX-License-Identifier: Apache-2.0
#include <fnmatch.h>

#include <algorithm>
#include <regex>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/elf/process_image.h"

namespace scankit::elf {
namespace {

// The body of `def NAME(`: up to the next line that starts at the left margin. Lines that start with ')' or
// '#' belong to it: the end of a signature over several lines, and comments.
std::string_view function_body(std::string_view text, std::string_view name) {
  const auto start = text.find("\ndef " + std::string(name) + "(");
  if (start == std::string_view::npos) return {};
  auto end = text.find('\n', start + 1);
  while (end != std::string_view::npos && end + 1 < text.size()) {
    const char next = text[end + 1];
    if (next != ' ' && next != '\n' && next != ')' && next != '#') break;
    end = text.find('\n', end + 1);
  }
  return text.substr(start, end == std::string_view::npos ? text.npos : end - start);
}

// ("cublas", "libcublas.so.*[0-9]") of newer releases, "cublas": "libcublas.so.*[0-9]" of older ones. Those
// with required=False are left out: torch goes on without them.
std::vector<TorchPreloads::Pattern> patterns_in(std::string_view text) {
  static const std::regex pair(
      R"re("([A-Za-z0-9_]+)"\s*[,:]\s*"(lib[A-Za-z0-9_.+-]+\.so[^"\n]*)"\s*(,\s*required=False)?)re");
  std::vector<TorchPreloads::Pattern> found;
  const std::string copy(text);
  for (std::sregex_iterator it(copy.begin(), copy.end(), pair), end; it != end; ++it)
    if (!(*it)[3].matched) found.emplace_back((*it)[1], (*it)[2]);
  return found;
}

}  // namespace

// _load_global_deps() loads libtorch_global_deps.so in a `try`. `after` lists the libraries that it loads
// behind that, and `on_failure` those that its `except OSError` loads before the second attempt. Where a
// part only calls _preload_cuda_deps(), the list is in that function.
TorchPreloads parse_torch_preloads(std::string_view init_py) {
  TorchPreloads preloads;
  const std::string_view load = function_body(init_py, "_load_global_deps");
  const std::string_view list = function_body(init_py, "_preload_cuda_deps");
  const auto failed = std::min(load.find("except OSError"), load.size());
  const std::string_view loaded_part = load.substr(0, failed), failed_part = load.substr(failed);

  preloads.after = patterns_in(loaded_part);
  if (loaded_part.find("_preload_cuda_deps()") != std::string_view::npos) preloads.after = patterns_in(list);
  preloads.on_failure = patterns_in(failed_part);
  if (preloads.on_failure.empty() && failed_part.find("_preload_cuda_deps(") != std::string_view::npos)
    preloads.on_failure = patterns_in(list);

  // The guard of the `after` part: `if "libcudart.so" not in _maps: return`.
  const std::string_view before = "if \"", behind = "\" not in _maps";
  const auto end = loaded_part.find(behind);
  if (end != std::string_view::npos) {
    const auto start = loaded_part.rfind(before, end);
    if (start != std::string_view::npos)
      preloads.condition = loaded_part.substr(start + before.size(), end - start - before.size());
  }
  return preloads;
}

namespace {

// Directories are listed by name, so the first match does not depend on the file system.
std::optional<std::string> first_match(const Host& host, const std::string& folder,
                                       const std::string& pattern) {
  const auto entries = host.list(folder);
  if (!entries) return std::nullopt;
  for (const DirEntry& entry : *entries)
    if (::fnmatch(pattern.c_str(), entry.name.c_str(), 0) == 0) return folder + "/" + entry.name;
  return std::nullopt;
}

// Below each directory of sys.path the places that torch/__init__.py tries, in its order.
std::optional<std::string> find_preload(const Host& host, const TorchLoadRequest& request,
                                        const TorchPreloads::Pattern& pattern) {
  const auto& [folder, name] = pattern;
  for (const std::string& path : request.sys_path) {
    std::vector<std::string> folders = {path + "/nvidia/" + folder + "/lib"};
    if (!request.cuda_major.empty()) folders.push_back(path + "/nvidia/cu" + request.cuda_major + "/lib");
    folders.push_back(path + "/" + folder + "/lib");
    for (const std::string& candidate : folders)
      if (auto found = first_match(host, candidate, name)) return found;
  }
  return std::nullopt;
}

// ctypes.CDLL (RTLD_LOCAL) for each, until one is not there: torch's code raises then, and its caller
// gives up.
void preload(ProcessImage& process, const Host& host, const TorchLoadRequest& request,
             const std::vector<TorchPreloads::Pattern>& patterns, int caller) {
  for (const auto& pattern : patterns) {
    const auto path = find_preload(host, request, pattern);
    if (!path) return;
    ProcessImage before = process;
    const LoadResult result = process.load(*path, caller, false);
    if (result.object >= 0 && result.missing.empty()) continue;
    process = std::move(before);
    return;
  }
}

std::string find_extension(const Host& host, const std::string& folder, const std::string& stem,
                           const TorchLoadRequest& request) {
  for (const std::string& suffix : request.extension_suffixes)
    if (const std::string path = folder + "/" + stem + suffix; host.exists(path)) return path;
  return "";
}

// ctypes is a module of its own in most builds; its RPATHs and needs come before torch's. Returns the object
// whose code calls dlopen for ctypes.CDLL.
int load_ctypes(ProcessImage& process, const Host& host, const TorchLoadRequest& request) {
  const int python = process.python_object();
  for (const std::string& folder : request.sys_path) {
    const std::string path = find_extension(host, folder, "_ctypes", request);
    if (path.empty()) continue;
    const LoadResult result = process.load(path, python, false);
    return result.object >= 0 ? result.object : python;
  }
  return python;
}

bool any_path_holds(const ProcessImage& process, const std::string& text) {
  for (int i = 0; i < process.object_count(); ++i)
    if (process.object(i).path.find(text) != std::string::npos) return true;
  return false;
}

void append_new(std::vector<UnfoundLibrary>& all, std::vector<UnfoundLibrary> more) {
  for (UnfoundLibrary& m : more) {
    const auto same = [&](const UnfoundLibrary& a) { return a.name == m.name && a.needed_by == m.needed_by; };
    if (std::ranges::none_of(all, same)) all.push_back(std::move(m));
  }
}

// Nothing happens in releases without libtorch_global_deps.so. Only the second attempt tells what is
// missing: the first one is repaired by the preloads.
void load_global_deps(ProcessImage& process, const Host& host, const TorchLoadRequest& request, int ctypes,
                      TorchLoad& torch) {
  const std::string path = request.location + "/lib/libtorch_global_deps.so";
  if (!host.exists(path)) return;
  const auto init = host.read_file(request.location + "/__init__.py");
  const TorchPreloads preloads = parse_torch_preloads(init ? std::string_view(*init) : std::string_view());
  ProcessImage before = process;
  LoadResult result = process.load(path, ctypes, true);
  if (result.object >= 0 && result.missing.empty()) {
    if (preloads.condition.empty() || any_path_holds(process, preloads.condition))
      preload(process, host, request, preloads.after, ctypes);
    return;
  }
  process = std::move(before);  // a dlopen that fails leaves nothing behind
  preload(process, host, request, preloads.on_failure, ctypes);
  result = process.load(path, ctypes, true);
  append_new(torch.missing, std::move(result.missing));
}

}  // namespace

TorchLoad load_torch(ProcessImage& process, const Host& host, const TorchLoadRequest& request) {
  TorchLoad torch;
  const int ctypes = load_ctypes(process, host, request);
  load_global_deps(process, host, request, ctypes, torch);
  const std::string extension = find_extension(host, request.location, "_C", request);
  if (extension.empty()) {
    torch.note = message("{} contains no _C module for this Python", request.location);
    torch.missing.push_back({.name = "_C", .needed_by = request.location + "/__init__.py"});
    return torch;
  }
  // `import` uses RTLD_LOCAL (sys.getdlopenflags), so only the libraries of global_deps are in the
  // global scope.
  LoadResult result = process.load(extension, process.python_object(), false);
  torch.loaded = result.object >= 0;
  if (!torch.loaded) torch.note = result.failure;
  append_new(torch.missing, std::move(result.missing));
  return torch;
}

}  // namespace scankit::elf
