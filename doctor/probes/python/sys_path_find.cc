// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/files.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
namespace {

constexpr std::string_view kArrow = " -> ";

// One folder of sys.path, in the order of importlib's FileFinder: package, extension suffixes, source.
std::optional<FoundModule> look_in(const Host& host, const Python& python, const std::string& folder,
                                   const std::string& name) {
  const std::string path = path_join(folder, name);
  if (host.is_directory(path)) {
    if (is_regular_file(host, path_join(path, "__init__.py"))) return FoundModule{path, true, false, -1};
    for (const std::string& suffix : python.extension_suffixes)
      if (is_regular_file(host, path_join(path, "__init__" + suffix)))
        return FoundModule{path, true, false, -1};
  }
  for (const std::string& suffix : python.extension_suffixes)
    if (is_regular_file(host, path + suffix)) return FoundModule{path + suffix, false, false, -1};
  if (is_regular_file(host, path + ".py")) return FoundModule{path + ".py", false, false, -1};
  return std::nullopt;
}

std::optional<FoundModule> look_in_finders(const Host& host, const Python& python, const std::string& name) {
  for (const std::string& text : python.editable_finders) {
    const auto mapping = editable_mapping(text);
    if (!mapping || mapping->package != name) continue;
    if (is_regular_file(host, mapping->folder)) return FoundModule{mapping->folder, false, false, -1};
    if (is_regular_file(host, mapping->folder + ".py"))
      return FoundModule{mapping->folder + ".py", false, false, -1};
    if (is_regular_file(host, path_join(mapping->folder, "__init__.py")))
      return FoundModule{mapping->folder, true, false, -1};
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundModule> find_python_module(const Host& host, const Python& python,
                                              const std::string& name) {
  std::optional<FoundModule> leftover;
  for (std::size_t i = 0; i < python.sys_path.size(); ++i) {
    const PathEntry& entry = python.sys_path[i];
    if (!entry.exists) continue;
    auto found = look_in(host, python, entry.path, name);
    if (!found && !leftover && host.is_directory(path_join(entry.path, name)))
      leftover = FoundModule{path_join(entry.path, name), false, true, static_cast<int>(i)};
    if (!found) continue;
    found->sys_path_index = static_cast<int>(i);
    return found;
  }
  if (auto found = look_in_finders(host, python, name)) return found;
  return leftover;
}

std::string to_text(const EditableMapping& mapping) {
  return mapping.file + ": " + mapping.package + std::string(kArrow) + mapping.folder;
}

std::optional<EditableMapping> editable_mapping(const std::string& text) {
  const auto arrow = text.find(kArrow);
  const auto colon = arrow == std::string::npos ? arrow : text.rfind(": ", arrow);
  if (colon == std::string::npos) return std::nullopt;
  return EditableMapping{text.substr(0, colon), text.substr(colon + 2, arrow - colon - 2),
                         text.substr(arrow + kArrow.size())};
}

}  // namespace scankit
