// SPDX-License-Identifier: Apache-2.0
// The C++ and CUDA files that a build compiles: which CUDA headers they need, themselves or through torch's
// headers, which torch headers the installed torch lacks, and calls that it no longer accepts. No
// preprocessor runs: what is under a condition is left out, and macros are not expanded.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/preflight/probes/sources.h"

namespace scankit::preflight {
namespace {

// Bytes of one file and of all together, and numbers of files, torch headers and look-ups by name.
constexpr std::size_t kNativeFileLimit = 1u << 20, kTotalLimit = 16u << 20, kMostNativeFiles = 400,
                      kMostHeaders = 500, kMostLookups = 5000;

// The text without comments; line breaks stay, so that lines keep their numbers. A string ends with its
// line at the latest, so that the character literal '"' does not hide the rest of the file. Raw strings are
// not recognised.
std::string without_comments(std::string_view text) {
  std::string code;
  code.reserve(text.size());
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == quote || c == '\n') quote = 0;
      if (c == '\\' && at + 1 < text.size()) {
        code += c;
        ++at;
      }
      code += text[at];
    } else if (text.substr(at).starts_with("//")) {
      while (at + 1 < text.size() && text[at + 1] != '\n') ++at;
    } else if (text.substr(at).starts_with("/*")) {
      const auto end = std::min(text.find("*/", at + 2), text.size());
      for (; at < end; ++at)
        if (text[at] == '\n') code += '\n';
      ++at;
    } else {
      if (c == '"') quote = c;
      code += c;
    }
  }
  return code;
}

// What every compiler of the build meets: outside of #if, an include guard aside. Lines keep their numbers.
std::string certain_code(std::string_view text) {
  const std::string code = without_comments(text);
  std::string certain;
  int depth = 0;
  bool first = true, guarded = false;
  for (const std::string_view raw : lines_of(code)) {
    const std::string_view line = trimmed(raw);
    const std::string_view word = line.starts_with('#') ? trimmed(line.substr(1)) : std::string_view();
    if (word.starts_with("if")) {
      guarded = guarded || (first && (word.starts_with("ifndef") || word.starts_with("if !defined")));
      ++depth;
    } else if (word.starts_with("endif")) {
      if (depth > 0) --depth;
    } else if (depth <= (guarded ? 1 : 0)) {
      certain += raw;
    }
    certain += '\n';
    if (!line.empty() && !word.starts_with("pragma")) first = false;
  }
  return certain;
}

struct Include {
  std::string name;
  unsigned line = 0;
};

// Both forms, <x> and "x". An include by a macro is not seen.
std::vector<Include> includes_of(std::string_view code) {
  std::vector<Include> found;
  unsigned number = 0;
  for (const std::string_view raw : lines_of(code)) {
    ++number;
    std::string_view line = trimmed(raw);
    if (!line.starts_with('#')) continue;
    line = trimmed(line.substr(1));
    if (!line.starts_with("include")) continue;
    line = trimmed(line.substr(7));
    if (line.size() < 3 || (line[0] != '<' && line[0] != '"')) continue;
    const auto end = line.find(line[0] == '<' ? '>' : '"', 1);
    if (end != std::string_view::npos) found.push_back({std::string(line.substr(1, end - 1)), number});
  }
  return found;
}

bool is_torch_header(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kFolders{"ATen/", "c10/", "torch/",
                                                            "THC/",  "TH/",  "THCUNN/"};
  return std::ranges::any_of(kFolders, [&](std::string_view folder) { return name.starts_with(folder); });
}

// Headers of the CUDA toolkit by the names of their libraries (CUDA toolkit documentation, components).
bool is_cuda_header(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kNames{
      "cuda.h",          "cuda_runtime.h", "cuda_runtime_api.h",
      "cuda_fp16.h",     "cuda_bf16.h",    "cuda_profiler_api.h",
      "cusparse.h",      "cublas_v2.h",    "cublasLt.h",
      "cusolverDn.h",    "cufft.h",        "curand.h",
      "curand_kernel.h", "nvrtc.h"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("nv/") ||
         name.starts_with("cub/") || name.starts_with("thrust/");
}

// Breadth first through the compiled files and the headers of the directory that they include, then through
// torch's CUDA headers. Facts go straight into the SourceTree.
class Sources {
 public:
  Sources(const Host& host, const std::vector<std::string>& all_files, const Probed<Torch>& torch,
          SourceTree& tree)
      : host_(host),
        all_files_(all_files),
        tree_(tree),
        include_(path_join(torch.value.location, "include")) {
    has_headers_ = torch.present() && host.is_directory(path_join(include_, "ATen"));
  }

  void read(std::vector<std::string> files) {
    std::deque<std::string> open(files.begin(), files.end());
    std::set<std::string> seen(files.begin(), files.end());
    for (std::size_t count = 0; !open.empty() && count < kMostNativeFiles && total_ < kTotalLimit; ++count) {
      const std::string file = open.front();
      open.pop_front();
      for (const std::string& header : read_file(file))
        if (seen.insert(header).second) open.push_back(header);
    }
    if (!open.empty()) tree_.not_read.push_back(message("sources after {}: too many", open.front()));
    follow_torch_headers();
  }

 private:
  // The headers of the folder that it includes.
  std::vector<std::string> read_file(const std::string& file) {
    const auto text = host_.read_file(path_join(tree_.folder, file), kNativeFileLimit);
    if (!text) {
      tree_.not_read.push_back(message("{}: {}", printable(file), text.error().message));
      return {};
    }
    total_ += text->size();
    const std::string code = certain_code(*text);
    const bool kernel = file.ends_with(".cu");
    std::vector<std::string> own;
    for (const Include& include : includes_of(code)) {
      note(file, include);
      if (kernel && (include.name == "torch/extension.h" || include.name == "torch/all.h"))
        tree_.full_headers = true;
      if (auto header = own_header(file, include.name)) own.push_back(*std::move(header));
    }
    note_dispatch(file, code);
    // nvcc includes this one before every file, and torch's c10/util/Half.h that one in device code.
    if (kernel)
      for (const char* header : {"cuda_runtime.h", "cuda_fp16.h"}) need(file, 0, header);
    return own;
  }

  // Beside the file, or the only one of the folder whose path ends so.
  std::optional<std::string> own_header(const std::string& file, const std::string& name) {
    if (++lookups_ > kMostLookups) return std::nullopt;
    const std::string folder = path_dirname(file);
    const std::string beside = path_normalize(folder == "." ? name : folder + "/" + name);
    std::optional<std::string> only;
    for (const std::string& each : all_files_) {
      if (each == beside) return each;
      if (each != name && !each.ends_with("/" + name)) continue;
      if (only) return std::nullopt;
      only = each;
    }
    return only;
  }

  // The first file that needs a header is the one that is named; line 0 where that is not its own include.
  void need(const std::string& file, unsigned line, const std::string& header) {
    if (needed_.insert(header).second) tree_.cuda_headers.push_back({file, line, header, {}});
  }
  // Only folders named cuda: the rest of torch builds without a toolkit.
  void follow(const std::string& from, const std::string& name) {
    if (name.find("/cuda/") != std::string::npos && followed_.insert(name).second)
      torch_open_.emplace_back(from, name);
  }

  // What torch's own CUDA headers include in turn:
  // ATen/cuda/CUDAContext.h wants cuSPARSE, cuBLAS and cuSOLVER.
  void follow_torch_headers() {
    while (!torch_open_.empty() && followed_.size() < kMostHeaders) {
      const auto [from, name] = torch_open_.front();
      torch_open_.pop_front();
      const auto text = host_.read_file(path_join(include_, name), kNativeFileLimit);
      if (!text) continue;
      for (const Include& include : includes_of(certain_code(*text))) {
        if (is_cuda_header(include.name)) need(from, 0, include.name);
        if (is_torch_header(include.name)) follow(from, include.name);
      }
    }
  }

  // A torch header is lost where neither torch's include directories (cpp_extension.include_paths) nor the
  // directory itself has it. Each name is looked up once.
  void note(const std::string& file, const Include& include) {
    if (is_cuda_header(include.name)) need(file, include.line, include.name);
    if (!is_torch_header(include.name) || !has_headers_) return;
    follow(file, include.name);
    if (!looked_.insert(include.name).second) return;
    for (const char* folder : {"", "torch/csrc/api/include"})
      if (host_.exists(path_join(path_join(include_, folder), include.name))) return;
    const bool own = std::ranges::any_of(all_files_, [&](const std::string& each) {
      return each == include.name || each.ends_with("/" + include.name);
    });
    if (!own) tree_.lost_headers.push_back({file, include.line, include.name, {}});
  }

  // AT_DISPATCH_X(tensor.type(), "name", [&] ...): at::Tensor::type() yields DeprecatedTypeProperties.
  void note_dispatch(const std::string& file, const std::string& code) {
    for (auto at = code.find("AT_DISPATCH_"); at != std::string::npos;
         at = code.find("AT_DISPATCH_", at + 1)) {
      const auto open = code.find('(', at);
      if (open == std::string::npos || tree_.type_dispatch.size() >= 100) return;
      const auto line_start = code.rfind('\n', at) + 1;
      if (trimmed(std::string_view(code).substr(line_start, at - line_start)).starts_with('#')) continue;
      // Up to the literal with the name: the lambda behind it may call .type() on anything.
      const std::string arguments = code.substr(open, std::min(code.find('"', open), open + 400) - open);
      if (arguments.find(".type()") == std::string::npos || open - at > 80) continue;
      const auto line = 1 + std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      tree_.type_dispatch.push_back({file, static_cast<unsigned>(line), code.substr(at, open - at), {}});
    }
  }

  const Host& host_;
  const std::vector<std::string>& all_files_;
  SourceTree& tree_;
  std::string include_;
  bool has_headers_ = false;
  std::size_t total_ = 0, lookups_ = 0;
  std::set<std::string> needed_, followed_, looked_;
  std::deque<std::pair<std::string, std::string>> torch_open_;
};

}  // namespace

void read_native_sources(const Host& host, const std::vector<std::string>& files,
                         const std::vector<std::string>& all_files, const Probed<Torch>& torch,
                         SourceTree& tree) {
  Sources(host, all_files, torch, tree).read(files);
}

}  // namespace scankit::preflight
