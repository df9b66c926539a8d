// SPDX-License-Identifier: Apache-2.0
// The small readers behind build_tools.cc: one function for each file or answer, plus the rule which
// programs may be asked at all. They search for the exact wording of nvcc's and torch's files. A release
// that words it in another way gives 0 or "", which the checks take for "not known".
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/preflight/probes/sources.h"

namespace scankit::preflight {
namespace {

// 0 where `key` does not occur or no number follows it.
unsigned number_after(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  return at == std::string_view::npos
             ? 0
             : static_cast<unsigned>(std::atoi(std::string(text.substr(at + key.size(), 8)).c_str()));
}

// From `start` to the first `end` behind it.
std::string_view between(std::string_view text, std::string_view start, std::string_view end) {
  const auto from = text.find(start);
  if (from == std::string_view::npos) return {};
  const auto to = text.find(end, from + start.size());
  return to == std::string_view::npos ? std::string_view() : text.substr(from, to - from);
}

std::vector<std::string> literals_of(std::string_view text) {
  std::vector<std::string> values;
  for (PythonLiteral& literal : read_python_text(text).literals) values.push_back(std::move(literal.value));
  return values;
}

// `'12.8': ((6, 0, 0), (14, 0)),`: the second bound is exclusive, in releases of torch that say so.
unsigned upper_bound(std::string_view text, std::string_view table, const std::string& release) {
  const std::string_view rows = between(text, table, "\n}");
  const auto row = rows.find("'" + release + "':");
  if (release.empty() || row == std::string_view::npos) return 0;
  const std::string_view line = rows.substr(row, rows.find('\n', row) - row);
  const auto last = line.rfind('(');
  return last == std::string_view::npos ? 0 : number_after(line.substr(last), "(");
}

}  // namespace

// A compiler inside the examined directory may be the stranger's own, and as root we would run it with all
// rights (ARCHITECTURE.md, decision 17).
bool may_ask(const Host& host, const std::string& folder, const std::string& program) {
  const auto info = host.stat(program);
  const std::string real = host.realpath(program).value_or("");
  if (!host.is_live() || !info || !program.starts_with('/')) return false;
  if (program.starts_with(folder + "/") || real.starts_with(folder + "/")) return false;
  return ::geteuid() != 0 || info->uid == 0;
}

std::string answer_of(const Host& host, const std::string& folder, const std::string& program,
                      const std::string& question) {
  if (!may_ask(host, folder, program)) return "";
  ProcessRequest request;
  request.argv = {program, question};
  request.timeout = std::chrono::milliseconds(5000);
  const auto answer = run_process(request);
  return answer && answer->ok() ? answer->out : "";
}

std::string release_in(std::string_view nvcc_version) {
  const auto at = nvcc_version.find("release ");
  if (at == std::string_view::npos) return "";
  const auto version = Version::parse(nvcc_version.substr(at + 8));
  return version ? version->major_minor() : "";
}

// `#if __GNUC__ > 15` and `#if (__clang_major__ >= 21) || (__clang_major__ < 3) ...`, each before its #error.
// The lines for NVIDIA's Grace compiler name another macro beside them.
void read_limits(std::string_view host_config, BuildTools& tools) {
  for (const std::string_view raw : lines_of(host_config)) {
    const std::string_view line = trimmed(raw);
    if (!line.starts_with("#if") || line.find("GRCO") != std::string_view::npos) continue;
    if (const unsigned limit = number_after(line, "__GNUC__ > "); limit != 0 && tools.gcc_max == 0)
      tools.gcc_max = limit;
    unsigned clang = number_after(line, "__clang_major__ > ");
    if (const unsigned first = number_after(line, "__clang_major__ >= "); first != 0) clang = first - 1;
    if (clang != 0 && tools.clang_max == 0) {
      tools.clang_max = clang;
      tools.clang_min = number_after(line, "__clang_major__ < ");
    }
  }
}

// It ends in an #error for `__GNUC__ < N`.
void read_gcc_floor(std::string_view cxx17_header, BuildTools& tools) {
  tools.gcc_min = number_after(cxx17_header, "__GNUC__ < ");
}

void read_cpp_extension(std::string_view text, BuildTools& tools) {
  // Without TORCH_CUDA_ARCH_LIST it lists the GPUs' architectures and then takes the last one of that list.
  tools.arch_list_needs_gpu = text.find("arch_list[-1] += '+PTX'") != std::string_view::npos;
  tools.torch_archs = literals_of(between(text, "supported_arches = [", "]"));
  const auto pairs = literals_of(between(text, "named_arches = ", "])"));
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    tools.named_archs.push_back(pairs[i] + "=" + pairs[i + 1]);
  if (text.find("exclusive(!)") == std::string_view::npos) return;
  tools.torch_gcc_below = upper_bound(text, "CUDA_GCC_VERSIONS: VersionMap = {", tools.nvcc_version);
  tools.torch_clang_below = upper_bound(text, "CUDA_CLANG_VERSIONS: VersionMap = {", tools.nvcc_version);
}

namespace {

// tempfile.gettempdir() of Python, and so pip's: the first of these that is a directory. Python also asks
// whether it can write there, which is left out.
std::string temporary_folder(const Host& host) {
  for (const char* name : {"TMPDIR", "TEMP", "TMP"})
    if (const auto folder = host.env(name); folder && !folder->empty() && host.is_directory(*folder))
      return *folder;
  return "/tmp";
}

void add_place(std::vector<BuildPlace>& places, std::string role, const std::string& path) {
  struct ::statvfs system {};
  struct ::stat info {};
  if (path.empty() || ::statvfs(path.c_str(), &system) != 0 || ::stat(path.c_str(), &info) != 0) return;
  places.push_back({std::move(role), path, std::uint64_t{system.f_bavail} * system.f_frsize,
                    static_cast<std::uint64_t>(info.st_dev)});
}

}  // namespace

std::vector<BuildPlace> build_places(const Host& host, const Snapshot& snapshot) {
  std::vector<BuildPlace> places;
  if (!host.is_live()) return places;
  add_place(places, "sources", snapshot.sources.value.folder);
  add_place(places, "temporary files", temporary_folder(host));
  const auto& path = snapshot.python.value.sys_path;
  const auto site = std::ranges::find_if(
      path, [](const PathEntry& entry) { return entry.origin == "site" && entry.exists; });
  if (site != path.end()) add_place(places, "site-packages", site->path);
  return places;
}

}  // namespace scankit::preflight
