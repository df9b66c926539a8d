// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/ran_command.h"

#include <csignal>
#include <nlohmann/json.hpp>

#include "doctor/base/text.h"
#include "doctor/report/doctor_document.h"

namespace scankit {
namespace {
using Json = nlohmann::ordered_json;

// "SIGSEGV"; the numbers are Linux's. sigabbrev_np(3) needs a newer glibc than some build hosts have.
std::string signal_name(int number) {
  constexpr std::pair<int, const char*> kNames[] = {
      {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
      {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
      {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
      {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
      {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
  for (const auto& [known, name] : kNames)
    if (known == number) return name;
  return "";
}

Json place_json(const std::optional<CommandPlace>& at) {
  if (!at) return nullptr;
  return {{"importing", at->importing}, {"module", or_null(at->module)},     {"file", at->file},
          {"line", at->line},           {"function", or_null(at->function)}, {"source", or_null(at->source)}};
}

std::string place_in_words(const CommandPlace& at) {
  const std::string where = at.file + ":" + std::to_string(at.line);
  if (at.importing && !at.module.empty()) return say("importing {} at {}", at.module, where);
  if (at.importing) return say("importing at {}", where);
  return at.function.empty() ? where : say("in {} at {}", at.function, where);
}

}  // namespace

Json command_json(const RanCommand& command) {
  Json interpreters = Json::array();
  for (const CommandInterpreter& each : command.interpreters)
    interpreters.push_back({{"python", each.path},
                            {"directory", or_null(each.directory)},
                            {"container", each.other_root},
                            {"last_modules", each.modules}});
  return {{"argv", command.words},
          {"directory", command.directory},
          {"exit_status", command.exit_status ? Json(*command.exit_status) : Json(nullptr)},
          {"signal", command.signal == 0 ? Json(nullptr) : Json(command.signal)},
          {"signal_name", or_null(signal_name(command.signal))},
          {"end", english(command.end)},
          {"duration_ms", command.duration_ms},
          {"output", {{"bytes", command.output_bytes}, {"cut", command.output_cut}}},
          {"memory_kills", command.memory_kills},
          {"memory_kills_of_machine", command.memory_kills_of_machine},
          {"crashed_in", or_null(command.crashed_in)},
          {"at", place_json(command.at)},
          {"examined", or_null(command.examined)},
          {"interpreters", std::move(interpreters)},
          {"programs", command.programs}};
}

std::vector<std::pair<std::string, std::string>> command_rows(const RanCommand& command) {
  std::vector<std::pair<std::string, std::string>> rows{
      {say("command"), shell_line(command.words)},
      {say("directory"), command.directory},
      {say("end"), tr(command.end)},
      {say("duration"), say("{:.1f} s", static_cast<double>(command.duration_ms) / 1000.0)}};
  if (command.at) rows.emplace_back(say("Python"), place_in_words(*command.at));
  for (const CommandInterpreter& each : command.interpreters)
    rows.emplace_back(say("interpreter"), each.path);
  if (command.output_cut)
    rows.emplace_back(say("output"),
                      say("{} bytes, of which the first error and the end were kept", command.output_bytes));
  return rows;
}

}  // namespace scankit
