// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "doctor/base/text.h"
#include "envspec/cli/create_answer.h"

namespace scankit::envspec {
namespace {

bool is_csh(const std::string& shell) { return shell == "csh" || shell == "tcsh"; }

// Only the shell function of conda activates, and CONDA_EXE or MAMBA_EXE tells that the shell has it. In a shell without it,
// the program prints the function. conda takes a directory for one where it has a slash in it.
// mamba 1 activates nothing itself: conda, which is next to it, does. csh and tcsh look for aliases before they run a line,
// so that no line can both get the function and use it: there, a shell is started in the environment.
std::string activation_of_conda(const CreateResult& made, const std::string& shell) {
  const std::string name = made.libmamba ? shell_quoted(path_basename(made.python_program)) : "conda";
  const std::string activate = fmt::format("{} activate {}", name, shell_quoted(made.folder));
  if (made.python_found_by != "PATH") return activate;
  if (is_csh(shell))
    return fmt::format("{} run {}--prefix {} {}", name, made.libmamba ? "" : "--no-capture-output ",
                       shell_quoted(made.folder), shell);
  const bool fish = shell == "fish";
  const std::string known = fish || shell == "zsh" || shell == "bash" ? shell : "posix";
  const std::string hook = made.libmamba ? fmt::format("{} shell hook --shell {}", name, known)
                                         : fmt::format("{} shell.{} hook", name, known);
  return fish ? fmt::format("{} | source; and {}", hook, activate)
              : fmt::format("eval \"$({})\" && {}", hook, activate);
}

}  // namespace

std::string activation_line(const CreateResult& made, const std::string& folder) {
  const char* shell = std::getenv("SHELL");
  const std::string name = path_basename(shell == nullptr ? "" : shell);
  if (made.installer == "conda") return activation_of_conda(made, name);
  const auto line = [](const std::string& word, const std::string& file) {
    return shell_line(std::vector<std::string>{word, file});
  };
  const std::string script = path_join(folder, "bin/activate");
  if (name == "fish") return line("source", script + ".fish");
  if (is_csh(name)) return line("source", script + ".csh");
  return line(name == "bash" || name == "zsh" ? "source" : ".", script);
}

}  // namespace scankit::envspec
