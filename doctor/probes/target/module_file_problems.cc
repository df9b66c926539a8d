// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/declared/module_file.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/target/target.h"
#include "doctor/probes/target/wheel.h"

// What is wrong with scankit.module.yaml of the files that --so names, for its maintainer.
namespace scankit::probes {
namespace {

constexpr std::size_t kLongestModuleFile = 256u << 10;  // as far as doctor/yaml reads
constexpr int kMostFoldersUp = 8;  // from a module up to its site-packages, or to its project

// The file by itself; empty where nothing is wrong with it.
Message module_file_error(const Host& host, const std::string& path) {
  const auto text = host.read_file(path, kLongestModuleFile);
  const auto file =
      text ? declared::parse_module_file(*text, path) : Result<declared::ModuleFile>(text.error());
  return file ? Message() : message("{}; {}", file.error().message, file.error().hint);
}

// The installed distributions of one directory.
std::vector<Distribution> distributions_in(const Host& host, const std::string& folder) {
  constexpr std::string_view kEnding = ".dist-info";
  std::vector<Distribution> found;
  const auto entries = host.list(folder);
  if (!entries) return found;
  for (const DirEntry& entry : *entries)
    if (entry.name.ends_with(kEnding))
      found.push_back(
          {.name = entry.name.substr(0, entry.name.find('-')), .path = path_join(folder, entry.name)});
  return found;
}

// Looks at each directory and each declaration once: a directory of a hundred modules has one of them.
class ModuleFileSearch {
 public:
  explicit ModuleFileSearch(const Host& host) : host_(host) {}

  void look_above(const std::string& file) {
    std::string folder = path_dirname(file);
    for (int i = 0; i < kMostFoldersUp && folder.size() > 1; ++i, folder = path_dirname(folder)) {
      if (const std::string own = path_join(folder, declared::kModuleFile); is_regular_file(host_, own))
        take(own, module_file_error(host_, own));
      const auto [site, is_new] = sites_.try_emplace(folder);
      if (is_new) site->second = distributions_in(host_, folder);
      if (site->second.empty()) continue;
      look_at_owner(site->second, file);
      break;
    }
  }
  std::vector<Message> problems() && { return std::move(problems_); }

 private:
  // Of the distributions whose declaration is wrong, the one that has brought the file.
  void look_at_owner(const std::vector<Distribution>& distributions, const std::string& file) {
    for (const DeclaredPackage& package : probe_declared(host_, distributions)) {
      if (package.problem.empty() || taken_.contains(package.file)) continue;
      const auto owner = std::ranges::find(distributions, package.distribution, &Distribution::name);
      if (owner == distributions.end()) continue;
      const auto brought = shared_libraries_of(host_, *owner);
      if (std::ranges::find(brought, file) == brought.end()) continue;
      const Message own = module_file_error(host_, package.file);
      take(package.file, own.empty() ? package.problem : own);
    }
  }
  void take(const std::string& declaration, Message problem) {
    if (problem.empty() || !taken_.insert(declaration).second) return;
    problems_.push_back(std::move(problem));
  }

  const Host& host_;
  std::map<std::string, std::vector<Distribution>> sites_;
  std::set<std::string> taken_;
  std::vector<Message> problems_;
};

}  // namespace

std::vector<Message> module_file_problems(const Host& host, const NamedFiles& named) {
  ModuleFileSearch search(host);
  for (const NamedFile& file : named.files)
    if (std::ranges::find(named.wheels, file.folder, &Wheel::path) == named.wheels.end())
      search.look_above(file.path);
  std::vector<Message> problems = std::move(search).problems();
  for (const Wheel& wheel : named.wheels)
    if (Message problem = module_file_problem(wheel); !problem.empty())
      problems.push_back(std::move(problem));
  return problems;
}

}  // namespace scankit::probes
