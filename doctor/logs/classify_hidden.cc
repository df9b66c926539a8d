// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "doctor/base/message.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/knowledge/python_names.h"
#include "doctor/logs/classify.h"
#include "doctor/logs/module_names.h"

// Modules that Python found under a name which another one should have: a script random.py is what every
// `import random` below it gets, since the directory of the script comes first on sys.path.
namespace scankit::logs {
namespace {

// A file of the user's: neither installed nor of Python itself.
bool is_own_file(std::string_view path) {
  return path.ends_with(".py") && path.find("-packages/") == std::string_view::npos &&
         path.find("-packages\\") == std::string_view::npos &&
         path.find("/lib/python") == std::string_view::npos;
}

std::string_view stem(std::string_view path) {
  path.remove_prefix(path.find_last_of("/\\") + 1);  // npos + 1 is 0
  return path.ends_with(".py") ? path.substr(0, path.size() - 3) : path;
}

// A name that somebody who imports it means as Python's or as a package's, whatever file has it.
bool is_known_elsewhere(const std::string& top) {
  return knowledge::is_of_python(top) || knowledge::is_package_with_names(top) ||
         knowledge::distribution_of_import_name(top).has_value();
}

}  // namespace

std::string hiding_file(const std::string& name, const std::string& place) {
  return is_own_file(place) && stem(place) == name && is_known_elsewhere(name) ? place : "";
}

Judged hidden_by(const std::string& file, const std::string& name) {
  return verdict("package_hidden", "certain",
                 message("Python found {} as the module {}: it hides the one that was meant", file, name));
}

Judged judge_hidden(const Captures& captures, const Surroundings& around) {
  const auto any_of = [&](std::initializer_list<const char*> groups) {
    const auto found =
        std::ranges::find_if(groups, [&](const char* group) { return !capture(captures, group).empty(); });
    return found == groups.end() ? std::string() : capture(captures, *found);
  };
  const std::string module = any_of({"module", "module2", "module3"});
  // A module that is half imported, and whose innermost frame is this very file: it imports its own name, so it means
  // another module of that name.
  const bool of_itself = is_own_file(around.caller) && stem(around.caller) == module;
  const std::string file = of_itself ? around.caller : hiding_file(module, any_of({"place", "place2"}));
  if (!file.empty() && !is_of_a_program(module)) return hidden_by(file, module);
  // "'torch' is not a package": what is imported as torch is a single file.
  const bool is_file = !capture(captures, "part").empty();
  if (is_file && is_known_elsewhere(module))
    return verdict(
        "package_hidden", "likely",
        message("Python found a single file as {}, which is a package: a file {}.py of the program hides it",
                module, module),
        message("print({}.__file__)", module));
  if (is_file)
    return verdict(
        "", "certain",
        message("Python found a single file as {}, which should be a package: often one of your own "
                "files with that name",
                module),
        message("print({}.__file__)", module));
  return verdict("", "likely",
                 message("a module was used before its import was complete: often one of your own files has "
                         "the name of a package"),
                 message("print(module.__file__) of that package"));
}

}  // namespace scankit::logs
