// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/declared/module_file.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::probes {
namespace {

constexpr std::size_t kLongestDeclaration = 256u << 10;  // as far as doctor/yaml reads

// "my-ext" is nearly always imported as my_ext. A package of another name puts the file into its .dist-info.
std::string usual_package(const std::string& distribution) {
  std::string name = normalized_name(distribution);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string module_file_of(const Host& host, const Distribution& distribution) {
  std::vector<std::string> folders{distribution.path};
  if (distribution.editable) folders.push_back(distribution.project);
  folders.push_back(path_join(path_dirname(distribution.path), usual_package(distribution.name)));
  for (const std::string& folder : folders) {
    std::string file = path_join(folder, declared::kModuleFile);
    if (!folder.empty() && is_regular_file(host, file)) return file;
  }
  return "";
}

void take(const declared::ModuleFile& file, DeclaredPackage& package) {
  for (const declared::DeclaredModule& module : file.modules) package.modules.push_back(module.name);
  for (const auto& [name, value] : file.variables) package.variables.push_back(name + "=" + value);
  package.least_torch = file.least_torch;
  package.isolated = file.isolation.value_or(false);
}

}  // namespace

std::vector<DeclaredPackage> probe_declared(const Host& host,
                                            const std::vector<Distribution>& distributions) {
  std::vector<DeclaredPackage> found;
  for (const Distribution& distribution : distributions) {
    const std::string path = module_file_of(host, distribution);
    if (path.empty()) continue;
    DeclaredPackage package{.distribution = distribution.name, .file = path};
    const auto text = host.read_file(path, kLongestDeclaration);
    const auto file =
        text ? declared::parse_module_file(*text, path) : Result<declared::ModuleFile>(text.error());
    if (!file)
      package.problem = file.error().message;
    else if (normalized_name(file->distribution) != normalized_name(distribution.name))
      package.problem = message("{} describes {}", path, file->distribution);
    else
      take(*file, package);
    found.push_back(std::move(package));
  }
  return found;
}

}  // namespace scankit::probes
