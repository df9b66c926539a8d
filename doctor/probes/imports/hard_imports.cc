// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/imports/hard_imports.h"

#include <algorithm>
#include <deque>

#include "doctor/base/files.h"
#include "doctor/probes/imports/importers_scan.h"
#include "doctor/probes/packages/packages_scan.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
namespace {

// `import transformers` runs 60 of its 4000 files, `import torch` some 500.
constexpr unsigned kMostImportFiles = 800;
constexpr std::uint64_t kLongestImportFile = 1u << 20, kMostImportBytes = 16u << 20;

class ImportWalk {
 public:
  ImportWalk(const Host& host, const Python& python, const std::set<std::string>& wanted,
             const std::set<std::string>& through)
      : host_(host), python_(python), wanted_(wanted), through_(through) {}

  std::map<std::string, ImportPlace> from(const std::string& root) {
    root_ = root;
    add(root);
    while (!queue_.empty() && files_ < kMostImportFiles && bytes_ < kMostImportBytes &&
           found_.size() < wanted_.size()) {
      const std::string module = queue_.front();
      queue_.pop_front();
      read(module);
    }
    return std::move(found_);
  }

 private:
  void add(const std::string& module) {
    if (seen_.insert(module).second) queue_.push_back(module);
  }

  // The folder or file of a top-level package, asked once.
  const std::optional<FoundModule>& home(const std::string& top) {
    auto known = homes_.find(top);
    if (known == homes_.end()) known = homes_.emplace(top, find_python_module(host_, python_, top)).first;
    return known->second;
  }

  void read(const std::string& module) {
    const auto& found = home(top_package(module));
    if (!found || found->leftover) return;
    std::string path = found->path;
    for (auto dot = module.find('.'); found->package && dot != std::string::npos;) {
      const auto next = module.find('.', dot + 1);
      path = path_join(path, module.substr(dot + 1, next == std::string::npos ? next : next - dot - 1));
      dot = next;
    }
    if (!found->package) return read_file(path, module, false);
    const std::string package = path_join(path, "__init__.py");
    if (is_regular_file(host_, package)) return read_file(package, module, true);
    read_file(path + ".py", module, false);
  }

  void read_file(const std::string& path, const std::string& module, bool package) {
    const auto text = path.ends_with(".py") ? host_.read_file(path, kLongestImportFile)
                                            : Result<std::string>(std::string());
    if (!text || text->empty()) return;
    ++files_;
    bytes_ += text->size();
    const PackageScan scan = scan_package_file(*text, module, package);
    std::set<std::string> spelled;
    for (const ScannedImport& import : scan.imports)
      spelled.insert(import.written.starts_with('.') ? import.written : top_package(import.target));
    std::set<unsigned> guarded;
    for (const ImportLine& line : scan_imports(*text, {spelled.begin(), spelled.end()}))
      if (!line.caught.empty() || line.in_function) guarded.insert(line.line);
    for (const ScannedImport& import : scan.imports)
      if (import.when == "import" && !guarded.contains(import.line)) take(import, path);
  }

  void take(const ScannedImport& import, const std::string& path) {
    const std::string top = top_package(import.target);
    if (wanted_.contains(top)) {
      found_.emplace(top, ImportPlace{path, import.line});
      return;
    }
    if (top != root_ && !through_.contains(top)) return;
    for (auto dot = import.target.find('.'); dot != std::string::npos; dot = import.target.find('.', dot + 1))
      add(import.target.substr(0, dot));
    add(import.target);
    if (!import.name.empty() && import.name != "*") add(import.target + "." + import.name);
  }

  const Host& host_;
  const Python& python_;
  const std::set<std::string>&wanted_, &through_;
  std::string root_;
  std::deque<std::string> queue_;
  std::set<std::string> seen_;
  std::map<std::string, std::optional<FoundModule>> homes_;
  std::map<std::string, ImportPlace> found_;
  unsigned files_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::map<std::string, ImportPlace> hard_imports(const Host& host, const Python& python,
                                                const std::string& root, const std::set<std::string>& wanted,
                                                const std::set<std::string>& through) {
  return ImportWalk(host, python, wanted, through).from(root);
}

}  // namespace scankit
