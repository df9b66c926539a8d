// SPDX-License-Identifier: Apache-2.0
#include "doctor/shell/shell.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace scankit::shell {
namespace {

using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStdout;

struct Example {
  CLI::App app{"An example: it's [small]", "scankit"};
  std::string color, out, kind;
  std::vector<std::string> modules;
  bool verbose = false, hidden = false;

  Example() {
    CLI::App* doctor = app.add_subcommand("doctor", "Why?");
    doctor->add_option("--color", color, "auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    doctor->add_option("--out", out, "Where to")->type_name("FILE");
    doctor->add_option("--module", modules, "Which")->type_name("M");
    doctor->add_flag("-v,--verbose", verbose, "More");
    doctor->add_flag("--secret", hidden, "Not told")->group("");
    app.add_subcommand("node", "")->group("");
    CLI::App* ci = app.add_subcommand("ci", "A gate");
    CLI::App* init = ci->add_subcommand("init", "Write it");
    init->add_option("kind", kind, "Of what")->required()->check(CLI::IsMember({"github", "gitlab"}));
  }
};

TEST(CommandTable, HoldsWhatTheParserKnows) {
  Example example;
  const CommandRow table = command_table(example.app);
  ASSERT_EQ(table.commands.size(), 2u);
  const CommandRow& doctor = table.commands[0];
  EXPECT_EQ(doctor.path, "doctor");
  ASSERT_EQ(doctor.options.size(), 5u);  // with --help, without the hidden one
  EXPECT_EQ(doctor.options[1].choices, (std::vector<std::string>{"auto", "always", "never"}));
  EXPECT_EQ(doctor.options[1].value, "auto|always|never");
  EXPECT_TRUE(takes_path(doctor.options[2]));
  EXPECT_FALSE(doctor.options[2].repeats);
  EXPECT_TRUE(doctor.options[3].repeats);
  EXPECT_EQ(doctor.options[4].names, (std::vector<std::string>{"-v", "--verbose"}));
  EXPECT_EQ(doctor.options[4].value, "");
  const CommandRow& init = table.commands[1].commands.at(0);
  EXPECT_EQ(init.path, "ci init");
  EXPECT_EQ(init.name(), "init");
  ASSERT_EQ(init.positionals.size(), 1u);
  EXPECT_TRUE(init.positionals[0].required);
  EXPECT_EQ(init.positionals[0].names, std::vector<std::string>{"kind"});
  EXPECT_EQ(all_commands(table).size(), 4u);
}

TEST(Completion, QuotesWhatTheShellsTakeForTheirOwn) {
  Example example;
  example.app.get_subcommand("doctor")->description("Isn't it [a:b]?");
  const CommandRow table = command_table(example.app);
  EXPECT_NE(zsh_completion(table).find("'doctor:Isn'\\''t it \\[a\\:b\\]?'"), std::string::npos);
  EXPECT_NE(fish_completion(table).find("-a doctor -d 'Isn\\'t it [a:b]?'"), std::string::npos);
  EXPECT_EQ(bash_completion(table).find("Isn't"), std::string::npos);
}

TEST(Completion, NoOtherShell) {
  EXPECT_FALSE(completion_of("tcsh", {}));
  EXPECT_TRUE(completion_of("bash", {}));
}

TEST(ManualPage, EscapesWhatRoffTakesForItsOwn) {
  Example example;
  example.app.get_subcommand("doctor")->description(".begins with a dot, has C:\\ and --x");
  const std::string page = manual_page(command_table(example.app), "1.2.3");
  EXPECT_NE(page.find("\\&.begins with a dot, has C:\\e and \\-\\-x."), std::string::npos);
  EXPECT_NE(page.find(".TH SCANKIT 1"), std::string::npos);
  EXPECT_NE(page.find("\\fB\\-\\-color\\fR \\fIauto|always|never\\fR"), std::string::npos);
  EXPECT_NE(page.find(".SS scankit ci init"), std::string::npos);
}

TEST(ManualPage, ShowsExamplesDefaultsAndStatuses) {
  CommandRow table;
  CommandRow doctor;
  doctor.path = "doctor";
  doctor.text = "why";
  doctor.examples = {"scankit doctor --log build.log", ".begins with a dot"};
  doctor.statuses = {{0, "healthy"}, {1, "broken"}};
  OptionRow color, log;
  color.names = {"--color"};
  color.text = "colour";
  color.value = "WHEN";
  color.fallback = "auto";
  color.excludes = {"--log"};
  log.names = {"--log"};
  log.text = "a log";
  doctor.options = {color, log};
  table.commands = {doctor};
  const std::string page = manual_page(table, "1.2.3");
  EXPECT_NE(page.find(".nf\nscankit doctor \\-\\-log build.log\n\\&.begins with a dot\n.fi\n"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("colour [default: auto]\n"), std::string::npos);
  EXPECT_NE(page.find("\\-\\-color cannot be used with \\-\\-log."), std::string::npos);
  EXPECT_NE(page.find("Exit status: 0 healthy, 1 broken\n"), std::string::npos);
}

TEST(CommandData, HasWhatTheHelpHasAndNothingHidden) {
  Example example;
  const auto data = nlohmann::json::parse(commands_json(command_table(example.app), "1.2.3"));
  EXPECT_EQ(data["$schema"], "urn:scankit:commands:1");
  EXPECT_EQ(data["tool_version"], "1.2.3");
  EXPECT_EQ(data["exit_statuses"].size(), 8u);
  ASSERT_EQ(data["commands"].size(), 4u);  // scankit itself, doctor, ci, ci init
  const auto& doctor = data["commands"][1];
  EXPECT_EQ(doctor["path"], "doctor");
  ASSERT_EQ(doctor["options"].size(), 5u);
  EXPECT_EQ(doctor["options"][2]["value"], "<FILE>");
  EXPECT_EQ(doctor["options"][4]["names"], (std::vector<std::string>{"-v", "--verbose"}));
  EXPECT_EQ(data["commands"][2]["commands"], std::vector<std::string>{"ci init"});
  EXPECT_TRUE(data["commands"][3]["arguments"][0]["required"]);
}

TEST(ShellCommands, TellOfThemselvesToo) {
  Example example;
  int status = 7;
  add_shell_commands(example.app, status);
  CaptureStdout();
  example.app.parse("completion bash");
  const std::string script = GetCapturedStdout();
  EXPECT_EQ(status, 0);
  EXPECT_NE(script.find("words='doctor ci completion man'"), std::string::npos);
  EXPECT_NE(script.find("words='bash zsh fish'"), std::string::npos);
  EXPECT_THROW(example.app.parse("completion tcsh"), CLI::ParseError);
}

}  // namespace
}  // namespace scankit::shell
