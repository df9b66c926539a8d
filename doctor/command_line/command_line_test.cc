// SPDX-License-Identifier: Apache-2.0
#include "doctor/command_line/command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace scankit {
namespace {

struct Example {
  CLI::App app{"an example", "scankit"};
  std::string python, log, from, color, left, right;
  double timeout = 0;
  bool json = false, quiet = false;
  std::vector<std::string> modules;
  int status = -1;

  Example() {
    set_help_style(app);
    app.require_subcommand(0, 1);
    CLI::App* doctor = app.add_subcommand("doctor", "find out why an import fails");
    begin_group(*doctor, "Input");
    doctor->add_option("--python", python, "the Python to look at [default: PATH]")->type_name("PATH");
    auto* from_option = doctor->add_option("--from", from, "diagnose a stored snapshot")->type_name("FILE");
    doctor->add_option("--log", log, "explain an error log")->type_name("FILE")->excludes(from_option);
    doctor->add_option("--module", modules, "module under diagnosis")->type_name("NAME")->excludes("--log");
    begin_group(*doctor, "Output");
    doctor->add_option("--color", color, "when to use colour")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    doctor->add_option("--timeout", timeout, "seconds that one import may take [default: 60]")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.1, 86400.0));
    auto* json_flag = doctor->add_flag("--json", json, "print JSON");
    doctor
        ->add_flag("-q,--quiet", quiet,
                   "print the verdict only, which takes one line and leaves out every fact "
                   "that led to it")
        ->needs(json_flag);
    note(*doctor,
         {.examples = {"scankit doctor"}, .statuses = {{0, "healthy"}, {1, "broken"}}, .trailing = {}});
    CLI::App* env = app.add_subcommand("env", "pin an environment");
    env->require_subcommand(1);
    CLI::App* diff = env->add_subcommand("diff", "compare two environments");
    diff->add_option("a", left, "left-hand side")->required();
    diff->add_option("b", right, "right-hand side")->required();
    env->add_subcommand("check", "compare with the spec");
    app.add_subcommand("secret", "")->group("");
    add_help_command(app, status);
  }

  std::string problem(std::vector<std::string> words) {
    std::ranges::reverse(words);  // CLI11 takes a vector from its end
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return usage_problem(app, error);
    }
    return "";
  }
};

std::string problem(const std::vector<std::string>& words) { return Example().problem(words); }

TEST(UsageProblem, SaysWhatWasProbablyMeant) {
  EXPECT_EQ(problem({"docter"}),
            "unexpected argument 'docter'; did you mean 'doctor'? (see: scankit --help)");
  EXPECT_EQ(problem({"doctor", "--pyton", "x"}),
            "unexpected argument '--pyton'; did you mean '--python'? (see: scankit doctor --help)");
  EXPECT_EQ(problem({"doctor", "--pyton=x", "--jsn"}),
            "unexpected argument '--pyton=x'; did you mean '--python'? (see: scankit doctor --help)");
  EXPECT_EQ(problem({"env", "chekc"}),
            "unexpected argument 'chekc'; did you mean 'check'? (see: scankit env --help)");
  EXPECT_EQ(problem({"doctor", "selective_scan_cuda"}),
            "unexpected argument 'selective_scan_cuda' (see: scankit doctor --help)");
  EXPECT_EQ(problem({"doctor", "--lgs"}),
            "unexpected argument '--lgs'; did you mean '--log'? (see: scankit doctor --help)");
  EXPECT_EQ(problem({"doctor", "--fog"}),
            "unexpected argument '--fog'; did you mean '--log'? (see: scankit doctor "
            "--help)");
  EXPECT_EQ(problem({"doctor", "--bogus"}), "unexpected argument '--bogus' (see: scankit doctor --help)");
  EXPECT_EQ(problem({"secrte"}), "unexpected argument 'secrte' (see: scankit --help)");
  EXPECT_EQ(problem({"help", "env", "dif"}),
            "unexpected argument 'dif'; did you mean 'diff'? (see: scankit help --help)");
}

TEST(UsageProblem, SaysPlainlyWhatIsMissingOrTooMuch) {
  EXPECT_EQ(problem({"env", "diff", "x"}), "missing argument <B> (see: scankit env diff --help)");
  EXPECT_EQ(problem({"doctor", "--from", "a", "--log", "b"}),
            "--from and --log cannot be used together (see: scankit doctor --help)");
  EXPECT_EQ(problem({"doctor", "--python", "a", "--python", "b"}),
            "--python was given 2 times and is accepted once (see: scankit doctor --help)");
  EXPECT_EQ(problem({"doctor", "--python"}),
            "missing value for --python <PATH> (see: scankit doctor --help)");
  EXPECT_EQ(problem({"doctor", "--quiet"}),
            "--quiet can only be used with --json (see: scankit doctor --help)");
  EXPECT_EQ(problem({"doctor", "--timeout", "0"}),
            "invalid value '0' for --timeout: it must be between 0.1 and 86400 (see: scankit doctor --help)");
  EXPECT_EQ(
      problem({"doctor", "--color", "alwyas"}),
      "invalid value 'alwyas' for --color; did you mean 'always'? (choose from auto, always, never) (see: "
      "scankit doctor --help)");
}

TEST(HelpPage, GroupsWrapsAndEndsWithExamplesAndStatuses) {
  Example example;
  const std::string page = help_page(command_table(*example.app.get_subcommand("doctor")));
  EXPECT_EQ(
      page,
      "find out why an import fails\n"
      "\n"
      "Usage: scankit doctor [OPTIONS]\n"
      "\n"
      "Input:\n"
      "      --python <PATH>              the Python to look at [default: PATH]\n"
      "      --from <FILE>                diagnose a stored snapshot\n"
      "      --log <FILE>                 explain an error log\n"
      "      --module <NAME>              module under diagnosis\n"
      "\n"
      "Output:\n"
      "      --color <auto|always|never>  when to use colour\n"
      "      --timeout <SECONDS>          seconds that one import may take [default: 60]\n"
      "      --json                       print JSON\n"
      "  -q, --quiet                      print the verdict only, which takes one line and leaves out every\n"
      "                                   fact that led to it\n"
      "\n"
      "Options:\n"
      "  -h, --help                       print help\n"
      "\n"
      "Examples:\n"
      "  scankit doctor\n"
      "\n"
      "--log cannot be used with --from or --module. --quiet can only be used with --json.\n"
      "\n"
      "Exit status: 0 healthy, 1 broken\n");
}

TEST(HelpPage, ShowsArgumentsAndCommands) {
  Example example;
  CLI::App* env = example.app.get_subcommand("env");
  EXPECT_NE(
      help_page(command_table(*env)).find("Usage: scankit env <COMMAND>\n\nCommands:\n  diff   compare"),
      std::string::npos);
  const std::string diff = help_page(command_table(*env->get_subcommand("diff")));
  EXPECT_NE(diff.find("Usage: scankit env diff [OPTIONS] <A> <B>\n\nArguments:\n  <A>  left-hand side\n"),
            std::string::npos)
      << diff;
  EXPECT_EQ(help_page(command_table(example.app)).find("secret"), std::string::npos);
}

TEST(HelpCommand, PrintsTheHelpOfTheCommandThatItNames) {
  Example example;
  testing::internal::CaptureStdout();
  EXPECT_EQ(example.problem({"help", "env", "diff"}), "");
  EXPECT_NE(testing::internal::GetCapturedStdout().find("Usage: scankit env diff"), std::string::npos);
  EXPECT_EQ(example.status, 0);
}

TEST(BareGroup, ListsItsCommands) {
  Example bare, other, leaf;
  EXPECT_NE(bare.problem({"env"}), "");
  EXPECT_NE(help_of_bare_group(bare.app).find("diff   compare two environments"), std::string::npos);
  EXPECT_NE(other.problem({"env", "chekc"}), "");
  EXPECT_EQ(help_of_bare_group(other.app), "");
  EXPECT_NE(leaf.problem({"doctor", "--timeout", "0"}), "");
  EXPECT_EQ(help_of_bare_group(leaf.app), "");
}

}  // namespace
}  // namespace scankit
