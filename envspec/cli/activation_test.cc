// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "builder/fix/local_package.h"
#include "envspec/cli/create_answer.h"

namespace scankit::envspec {
namespace {

std::string line_in(const std::string& shell, const CreateResult& made, const std::string& folder = "new") {
  const fix::WithVariables set(std::vector<std::pair<std::string, std::string>>{{"SHELL", "/bin/" + shell}});
  return activation_line(made, folder);
}

TEST(Activation, OfAVenvIsForTheUsersShell) {
  const CreateResult made{.folder = "/w/new", .installer = "uv"};
  EXPECT_EQ(line_in("bash", made), "source new/bin/activate");
  EXPECT_EQ(line_in("zsh", made), "source new/bin/activate");
  EXPECT_EQ(line_in("dash", made), ". new/bin/activate");
  EXPECT_EQ(line_in("fish", made), "source new/bin/activate.fish");
  EXPECT_EQ(line_in("csh", made, "a b"), "source 'a b/bin/activate.csh'");
  EXPECT_EQ(line_in("tcsh", made), "source new/bin/activate.csh");
}

// The shell has conda's function where CONDA_EXE or MAMBA_EXE was exported by it.
TEST(Activation, OfCondaNeedsItsShellFunction) {
  CreateResult made{.folder = "/w/a b",
                    .python_program = "/opt/bin/conda",
                    .python_found_by = "CONDA_EXE",
                    .installer = "conda"};
  for (const char* shell : {"bash", "fish", "tcsh"})
    EXPECT_EQ(line_in(shell, made), "conda activate '/w/a b'") << shell;
  made.python_found_by = "PATH";
  EXPECT_EQ(line_in("bash", made), "eval \"$(conda shell.bash hook)\" && conda activate '/w/a b'");
  EXPECT_EQ(line_in("zsh", made), "eval \"$(conda shell.zsh hook)\" && conda activate '/w/a b'");
  EXPECT_EQ(line_in("dash", made), "eval \"$(conda shell.posix hook)\" && conda activate '/w/a b'");
  EXPECT_EQ(line_in("fish", made), "conda shell.fish hook | source; and conda activate '/w/a b'");
  EXPECT_EQ(line_in("csh", made), "conda run --no-capture-output --prefix '/w/a b' csh");
  EXPECT_EQ(line_in("tcsh", made), "conda run --no-capture-output --prefix '/w/a b' tcsh");
}

// mamba 1 is conda's solver in another program, and has no shell function of its own.
TEST(Activation, OfMamba1IsByConda) {
  CreateResult made{.folder = "/w/new",
                    .python_program = "/opt/bin/mamba",
                    .python_found_by = "PATH",
                    .installer = "conda"};
  EXPECT_EQ(line_in("bash", made), "eval \"$(conda shell.bash hook)\" && conda activate /w/new");
  EXPECT_EQ(line_in("tcsh", made), "conda run --no-capture-output --prefix /w/new tcsh");
  made.libmamba = true;  // mamba 2
  EXPECT_EQ(line_in("bash", made), "eval \"$(mamba shell hook --shell bash)\" && mamba activate /w/new");
  EXPECT_EQ(line_in("tcsh", made), "mamba run --prefix /w/new tcsh");
  made.python_program = "/opt/bin/micromamba";
  made.python_found_by = "MAMBA_EXE";
  EXPECT_EQ(line_in("tcsh", made), "micromamba activate /w/new");
}

}  // namespace
}  // namespace scankit::envspec
