// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/command_line/command_line.h"
#include "doctor/shell/shell.h"

namespace scankit::shell {
namespace {

// Text for a manual page (groff_man(7)): a backslash begins an escape, a '-' would be printed as a
// hyphen, and a line that begins with '.' or ' is a request. \& is a character of no width that
// prevents this.
std::string roff(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\\')
      plain += "\\e";
    else if (c == '-')
      plain += "\\-";
    else if (c == '\n')
      plain += "\n.br\n";
    else if ((c == '.' || c == '\'') && (plain.empty() || plain.back() == '\n'))
      plain += std::string("\\&") + c;
    else
      plain += c;
  }
  return plain;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

// One tagged paragraph (.TP): the names on the first line, the text below. Choices that are already the
// name of the value are not repeated.
std::string entry(const OptionRow& option, bool positional) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + (positional ? italic(name) : bold(name));
  if (!positional && !option.value.empty()) names += " " + italic(option.value);
  std::string text = option.text;
  if (!option.choices.empty() && option.value != fmt::format("{}", fmt::join(option.choices, "|")))
    text += fmt::format(" ({})", fmt::join(option.choices, ", "));
  if (!option.fallback.empty()) text += " " + say("[default: {}]", option.fallback);
  return ".TP\n" + names + "\n" + roff(text) + "\n";
}

// Command lines as they are typed: .nf turns filling and hyphenation off.
std::string examples_of(const CommandRow& command) {
  if (command.examples.empty()) return "";
  std::string page = ".PP\n" + roff(say("Examples:")) + "\n.PP\n.RS\n.nf\n";
  for (const std::string& example : command.examples) page += roff(example) + "\n";
  return page + ".fi\n.RE\n";
}

std::string paragraph_of(const std::string& text) { return text.empty() ? "" : ".PP\n" + roff(text) + "\n"; }

std::string synopsis(const CommandRow& command) {
  std::string line = ".B scankit " + roff(command.path) + "\n";
  std::string rest = command.options.empty() ? "" : "[" + italic("OPTION") + "...]";
  for (const OptionRow& positional : command.positionals) {
    const std::string name = italic(positional.names.front());
    rest += (rest.empty() ? "" : " ") + (positional.required ? name : "[" + name + "]");
  }
  if (!command.trailing.empty()) rest += (rest.empty() ? "" : " ") + roff(command.trailing);
  return rest.empty() ? line : line + rest + "\n";
}

// The section of one command, in the order of its help page; --help is the same everywhere
// and is left out.
std::string section_of(const CommandRow& command) {
  std::string page =
      ".SS scankit " + roff(command.path) + "\n" + roff(command.text) + ".\n.PP\n" + synopsis(command);
  for (const OptionRow& positional : command.positionals) page += entry(positional, true);
  for (const OptionRow& option : command.options)
    if (option.names.back() != "--help") page += entry(option, false);
  return page + paragraph_of(combinations(command)) + examples_of(command) +
         paragraph_of(statuses_line(command));
}

std::string statuses_section() {
  std::string page;
  for (const auto& [status, text] : exit_statuses())
    page += fmt::format(".TP\n.B {}\n{}\n", status, roff(text));
  return page;
}

}  // namespace

std::vector<std::pair<int, std::string>> exit_statuses() {
  return {{kExitClean, say("Success; nothing was found at or above the severity of --fail-on")},
          {kExitFindings, say("Something was found, of at least the severity of --fail-on")},
          {kExitUsage, say("The command line, or a file that it refers to, is not usable")},
          {kExitInternal, say("An error in scankit itself, or its output could not be written")},
          {kExitInconclusive, say("A required fact could not be obtained")},
          {kExitBuildFailed, say("The build or the installation failed, and nothing was changed")},
          {kExitValidationFailed,
           say("The module computes wrong results, or is slower than the baseline allows")},
          {kExitDrift, say("The environment does not match its spec or lock")}};
}

// .TH without a date, so that the same version always writes the same page.
std::string manual_page(const CommandRow& table, std::string_view version) {
  std::string page = fmt::format(".TH SCANKIT 1 \"\" \"scankit {}\" \"\"\n.SH {}\nscankit \\- {}\n",
                                 roff(version), say("NAME"), roff(table.text));
  page +=
      ".SH " + say("SYNOPSIS") + "\n.B scankit\n" + italic("COMMAND") + " [" + italic("OPTION") + "...]\n";
  page += ".SH " + say("OPTIONS") + "\n";
  for (const OptionRow& option : table.options) page += entry(option, false);
  page += ".SH " + say("EXAMPLES") + "\n.nf\n";
  for (const std::string& example : table.examples) page += roff(example) + "\n";
  page += ".fi\n.SH " + say("COMMANDS") + "\n";
  for (const CommandRow* command : all_commands(table))
    if (!command->path.empty() && command->commands.empty()) page += section_of(*command);
  page += ".SH " + say("EXIT STATUS") + "\n" + statuses_section();
  return page;
}

}  // namespace scankit::shell
