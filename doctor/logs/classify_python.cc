// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "doctor/base/message.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/logs/classify.h"
#include "doctor/logs/module_names.h"
#include "doctor/logs/name_history.h"

// What Python's own modules lack, or which of them is missing: another version has it, a distribution ships it as a package
// of its own, Python was built without it, or it is of another system.
namespace scankit::logs {
namespace {

// Names of modules that older versions of Python had and that programs give to their own files.
bool is_named_like_a_program(std::string_view module) {
  constexpr std::array kListed{"parser", "symbol", "formatter", "commands", "compiler",  "user",
                               "new",    "sets",   "repr",      "mutex",    "exceptions"};
  return std::ranges::find(kListed, module) != kListed.end();
}

}  // namespace

Judged judge_part_of_python(const std::string& module, const std::string& name, const Surroundings& around) {
  const NameHistory history = history_of(module, name);
  const bool own = name.empty() && is_named_like_a_program(module) && !is_called_by_a_package(around);
  // What came with 3.0 is in every Python that is in use: where it is missing, it is not installed (tkinter).
  const bool known = !history.gone.empty() || (!history.first.empty() && history.first != "3");
  if (known && !own)
    return verdict("python_unsupported", "likely", lacking_because(history, module, name, {}),
                   message("python --version"));
  if (name.empty() && is_of_windows(module))
    return verdict("", "certain", message("{} is a part of Python on Windows only", module),
                   message("the system on which the program runs"));
  if (own)
    return verdict("", "likely",
                   message("the program does not find its own {}: it was started in another directory, or "
                           "its directory is not on sys.path",
                           module),
                   message("the current directory, and PYTHONPATH"));
  if (name.empty())
    return verdict("missing_python_dependency", "likely",
                   message("this Python has no {}, which belongs to Python itself", module),
                   message("which Python ran: sys.executable"));
  return verdict("", "likely",
                 message("no version of Python has {} in {}: one of your own files may have the name {}",
                         name, module, module),
                 message("print({}.__file__)", module));
}

}  // namespace scankit::logs
