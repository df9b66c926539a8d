// SPDX-License-Identifier: Apache-2.0
#include "doctor/declared/module_file.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/yaml/yaml.h"

namespace scankit::declared {
namespace {

using yaml::YamlNode;

constexpr std::size_t kMostModules = 64, kMostImports = 64, kMostVariables = 32, kLongestText = 300;

// Below the project, by plain names: no "..", nothing absolute.
bool stays_inside(const std::string& path) {
  if (path.empty() || path.size() > kLongestText || printable(path) != path) return false;
  const auto parts = split(path, "/");
  return std::ranges::none_of(
      parts, [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
}

bool is_url(const std::string& text) {
  const auto plain = [](char c) {
    return c > ' ' && c < 0x7F && c != '"' && c != '\'' && c != '<' && c != '\\';
  };
  return text.size() <= kLongestText && text.starts_with("https://") && text.size() > 8 &&
         std::ranges::all_of(text, plain);
}

class Reader {
 public:
  Reader(std::string name, ModuleFile& file) : name_(std::move(name)), file_(file) {}

  Result<void> top(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::Map)
      return wrong(root, "", message("expected keys with values, such as modules:"));
    SCANKIT_CHECK(yaml::known_schema(name_, root, kModuleSchema));
    for (std::size_t i = 0; i < root.keys.size(); ++i) {
      const YamlNode& value = root.items[i];
      const std::string& key = root.keys[i].text;
      if (key == "distribution") {
        SCANKIT_TRY(file_.distribution, text(value, key, "my-ext", yaml::is_distribution_name));
      } else if (key == "documentation") {
        SCANKIT_TRY(file_.documentation, text(value, key, "https://my-ext.example/install", is_url));
      } else if (key == "modules") {
        SCANKIT_CHECK(modules(value));
      } else if (key == "build") {
        SCANKIT_CHECK(build(value));
      } else if (key == "test") {
        SCANKIT_CHECK(test(value));
      } else if (key != "schema") {
        return yaml::unknown_field(name_, root.keys[i], key,
                                   {"schema", "distribution", "documentation", "modules", "build", "test"});
      }
    }
    if (file_.distribution.empty())
      return wrong(root, "distribution", message("it is required: the package's name"));
    if (file_.modules.empty())
      return wrong(root, "modules", message("it is required: a list such as [{{name: my_ext._C}}]"));
    return {};
  }

 private:
  Error wrong(const YamlNode& node, const std::string& path, const Message& expected) const {
    return yaml::wrong_form(name_, node, path, expected);
  }

  template <class Fits>
  Result<std::string> text(const YamlNode& node, const std::string& path, std::string_view example,
                           Fits fits) const {
    SCANKIT_TRY(std::string value, yaml::text_of(name_, node, path, example));
    if (fits(value)) return value;
    return wrong(node, path, message("\"{}\" is not of the form \"{}\"", yaml::shown(value), example));
  }

  Result<std::vector<std::string>> names(const YamlNode& node, const std::string& path) const {
    if (node.kind != YamlNode::Kind::List)
      return wrong(node, path, message("expected a list, such as [my_ext, my_ext.ops]"));
    if (node.items.size() > kMostImports)
      return wrong(node, path, message("it has more than {} names", kMostImports));
    std::vector<std::string> all;
    for (const YamlNode& item : node.items) {
      SCANKIT_TRY(std::string one, text(item, path, "my_ext.ops", yaml::is_module_name));
      if (std::ranges::find(all, one) != all.end())
        return wrong(item, path, message("\"{}\" is in the list twice", one));
      all.push_back(std::move(one));
    }
    return all;
  }

  Result<void> modules(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::List || node.items.empty())
      return wrong(node, "modules", message("expected a list such as [{{name: my_ext._C}}]"));
    if (node.items.size() > kMostModules)
      return wrong(node, "modules", message("it has more than {} modules", kMostModules));
    for (const YamlNode& item : node.items) {
      SCANKIT_TRY(DeclaredModule module, one_module(item));
      if (std::ranges::find(file_.modules, module.name, &DeclaredModule::name) != file_.modules.end())
        return wrong(item, "modules.name", message("\"{}\" is in the list twice", module.name));
      file_.modules.push_back(std::move(module));
    }
    return {};
  }

  Result<DeclaredModule> one_module(const YamlNode& node) const {
    if (node.kind != YamlNode::Kind::Map)
      return wrong(node, "modules", message("expected a module as {{name: my_ext._C}}"));
    DeclaredModule module;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& key = node.keys[i].text;
      if (key == "name") {
        SCANKIT_TRY(module.name, text(node.items[i], "modules.name", "my_ext._C", yaml::is_module_name));
      } else if (key == "imports") {
        SCANKIT_TRY(module.imports, names(node.items[i], "modules.imports"));
      } else {
        return yaml::unknown_field(name_, node.keys[i], "modules." + key, {"name", "imports"});
      }
    }
    if (module.name.empty()) return wrong(node, "modules.name", message("it is required"));
    return module;
  }

  Result<void> build(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::Map)
      return wrong(node, "build", message("expected keys with values below it"));
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const YamlNode& value = node.items[i];
      const std::string& key = node.keys[i].text;
      if (key == "variables") {
        SCANKIT_CHECK(variables(value));
      } else if (key == "torch") {
        const auto fits = [](const std::string& word) {
          return word.size() < 32 && Version::parse(word).has_value();
        };
        SCANKIT_TRY(file_.least_torch, text(value, "build.torch", "2.4", fits));
      } else if (key == "isolation") {
        if (!value.is_bool()) return wrong(value, "build.isolation", message("expected true or false"));
        file_.isolation = value.text[0] == 't' || value.text[0] == 'T';
      } else {
        return yaml::unknown_field(name_, node.keys[i], "build." + key, {"variables", "torch", "isolation"});
      }
    }
    return {};
  }

  Result<void> variables(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::Map || node.items.size() > kMostVariables)
      return wrong(
          node, "build.variables",
          message("expected at most {} names with values, such as FORCE_CUDA: \"1\"", kMostVariables));
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& key = node.keys[i].text;
      const std::string path = "build.variables." + yaml::shown(key);
      if (!is_build_switch(key)) {
        Error error = wrong(node.keys[i], path, message("a file may not set this variable for a build"));
        error.hint = message("allowed: {}", build_switches_in_words());
        return error;
      }
      SCANKIT_TRY(std::string value, yaml::text_of(name_, node.items[i], path, "TRUE"));
      if (!is_switch_value(value))
        return wrong(
            node.items[i], path,
            message("\"{}\" is not a value such as \"TRUE\", \"4\" or \"8.0;9.0+PTX\"; a path is not allowed",
                    yaml::shown(value)));
      file_.variables.emplace_back(key, std::move(value));
    }
    return {};
  }

  Result<void> test(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::Map || node.items.empty())
      return wrong(node, "test", message("expected file: or imports: below it"));
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& key = node.keys[i].text;
      if (key == "file") {
        SCANKIT_TRY(file_.test_file, yaml::text_of(name_, node.items[i], "test.file", "tests/smoke.py"));
        if (!stays_inside(file_.test_file) || !file_.test_file.ends_with(".py"))
          return wrong(
              node.items[i], "test.file",
              message("\"{}\" is not a Python file below the directory of {}, such as tests/smoke.py",
                      yaml::shown(file_.test_file), kModuleFile));
      } else if (key == "imports") {
        SCANKIT_TRY(file_.test_imports, names(node.items[i], "test.imports"));
      } else {
        return yaml::unknown_field(name_, node.keys[i], "test." + key, {"file", "imports"});
      }
    }
    return {};
  }

  std::string name_;
  ModuleFile& file_;
};

// Where the path leads; an Error if it does not exist or leads out of the directory.
Result<std::string> inside(const Host& host, const std::string& folder, const std::string& path) {
  SCANKIT_TRY(const std::string root, host.realpath(folder));
  SCANKIT_TRY(std::string real, host.realpath(path));
  if (real.starts_with(root + "/")) return real;
  return Error{Errc::PermissionDenied, message("{} leads out of {}", path, root),
               message("put the file itself there, not a link")};
}

}  // namespace

Result<ModuleFile> parse_module_file(std::string_view text, const std::string& name) {
  ModuleFile file;
  file.file = name;
  auto root = yaml::parse_yaml(text, name);
  const auto read = root ? Reader(name, file).top(*root) : Result<void>(root.error());
  if (read) return file;
  Error error = read.error();
  if (error.hint.empty())
    error.hint = message("correct the file; its fields are those of schema {}", kModuleSchema);
  return error;
}

Result<std::optional<ModuleFile>> read_module_file(const Host& host, const std::string& folder) {
  const std::string path = path_join(folder, kModuleFile);
  if (!host.lstat(path)) return std::optional<ModuleFile>();
  SCANKIT_TRY(const std::string real, inside(host, folder, path));
  auto text = host.read_file(real, yaml::kYamlBytes);
  if (!text) return text.error();
  SCANKIT_TRY(ModuleFile file, parse_module_file(*text, path));
  if (file.test_file.empty()) return std::optional(std::move(file));
  const std::string test = path_join(folder, file.test_file);
  const auto there = inside(host, folder, test);
  const auto info = there ? host.stat(*there) : Result<FileInfo>(there.error());
  if (!info || info->kind != FileKind::Regular) {
    Error error{Errc::Malformed, message("{}: test.file: {} is not a file", path, test),
                message("name the smoke test by its path below {}", folder)};
    return there ? error
                 : Error{there.error().code, message("{}: test.file: {}", path, there.error().message),
                         there.error().hint};
  }
  return std::optional(std::move(file));
}

std::vector<std::string> imports_of(const ModuleFile& file) {
  std::vector<std::string> all;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(all, name) == all.end()) all.push_back(name);
  };
  for (const DeclaredModule& module : file.modules) {
    add(module.name);
    std::ranges::for_each(module.imports, add);
  }
  std::ranges::for_each(file.test_imports, add);
  return all;
}

}  // namespace scankit::declared
