// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>

#include "doctor/cli/run.h"
#include "doctor/run/deaths.h"
#include "doctor/run/interpreters.h"

namespace scankit {
namespace {

CommandInterpreter interpreter_facts(const SeenInterpreter& seen) {
  constexpr std::size_t kModules = 8;
  CommandInterpreter facts{seen.path, seen.directory, seen.other_root, {}};
  for (auto module = seen.modules.rbegin(); module != seen.modules.rend() && facts.modules.size() < kModules;
       ++module)
    facts.modules.push_back(*module);
  return facts;
}

// The traceback before the error that decides, if the rules know one; faulthandler's dump comes after its
// "Fatal Python error". The error names the module better than the line of the source, which may import
// several.
std::optional<CommandPlace> place_facts(const CommandRun& run, const Log& log) {
  const LogHit* root = root_hit(log);
  const bool follows = root == nullptr || root->text.find("Fatal Python error") != std::string::npos;
  auto place = python_place(run.output.text, follows ? 0 : root->line);
  if (!place) place = python_place(run.output.text);
  if (!place) return std::nullopt;
  CommandPlace facts{place->file,   place->line,      place->function,
                     place->source, place->importing, place->module};
  if (facts.importing && root != nullptr && !root->module.empty()) facts.module = root->module;
  const std::string crashed = module_of_crash_file(run);
  if (facts.importing && facts.module.empty()) facts.module = crashed;
  return facts;
}

}  // namespace

RanCommand command_facts(const std::vector<std::string>& words, const std::string& directory,
                         const CommandRun& run, const Log& log) {
  RanCommand facts{.words = words, .directory = directory};
  if (WIFEXITED(run.status)) facts.exit_status = WEXITSTATUS(run.status);
  facts.signal = signal_of(run.status);
  facts.end = end_of_command(words, run, log);
  facts.duration_ms = static_cast<std::uint64_t>(run.seconds * 1000);
  facts.output_bytes = run.output.bytes;
  facts.output_cut = run.output.cut;
  facts.memory_kills = run.memory_kills;
  facts.memory_kills_of_machine = run.memory_kills_of_machine;
  facts.crashed_in = run.crashed_in;
  facts.programs = run.programs;
  for (const SeenInterpreter& seen : run.interpreters) facts.interpreters.push_back(interpreter_facts(seen));
  facts.at = place_facts(run, log);
  return facts;
}

}  // namespace scankit
