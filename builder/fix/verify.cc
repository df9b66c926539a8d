// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/verify.h"

#include <array>
#include <string_view>

#include "builder/fix/verify_program.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"

extern "C" char** environ;

namespace scankit {
namespace {

// The user's environment, since PYTHONPATH and the loader's variables are part of the question, without the
// variables that make Python run or print other things.
std::vector<std::string> child_variables() {
  constexpr std::array<std::string_view, 4> kDropped = {
      "PYTHONSTARTUP=", "PYTHONINSPECT=", "PYTHONVERBOSE=", "PYTHONDONTWRITEBYTECODE="};
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool dropped = false;
    for (std::string_view name : kDropped) dropped = dropped || std::string_view(*variable).starts_with(name);
    if (!dropped) kept.emplace_back(*variable);
  }
  kept.emplace_back("PYTHONDONTWRITEBYTECODE=1");
  return kept;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1).substr(0, 400);
}

std::string how_it_ended(const ProcessResult& ran) {
  if (ran.timed_out) return say("it exceeded its time limit of {} s", ran.duration.count() / 1000);
  if (ran.signal != 0) return say("it was killed by signal {}", ran.signal);
  return say("it exited with status {}: {}", ran.exit_code, last_line(ran.err));
}

// Runs in "/", so that no file of the current directory is imported. The answer comes on descriptor 3, since
// torch and other libraries may print to the other two.
Result<ProcessResult> run_python(const std::string& python, const char* program,
                                 std::vector<std::string> arguments, std::chrono::milliseconds timeout) {
  ProcessRequest request;
  request.argv = {python, "-c", program};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  request.environment = child_variables();
  request.working_directory = "/";
  request.timeout = timeout;
  request.capture_channel = true;
  return run_process(request);
}

}  // namespace

Result<void> verify_loads(const std::string& python, const std::string& module, const std::string& file,
                          bool with_torch) {
  const std::vector<std::string> arguments = {module, file, with_torch ? "torch" : ""};
  const auto timeout = with_torch ? std::chrono::minutes(5) : std::chrono::seconds(30);
  SCANKIT_TRY(const ProcessResult ran, run_python(python, kLoadProgram, arguments, timeout));
  if (ran.channel == "ok") return {};
  return Error{Errc::ToolFailed, say("the built module does not load in {}: {}", python, how_it_ended(ran)),
               ""};
}

Result<void> verify_import(const std::string& python, const std::string& module, const std::string& expected,
                           const std::string& extra_path) {
  SCANKIT_TRY(const ProcessResult ran, run_python(python, kImportAndCallProgram,
                                                  {module, expected, extra_path}, std::chrono::minutes(5)));
  const std::string kind = ran.channel.substr(0, ran.channel.find('\n'));
  const std::string text = kind.size() < ran.channel.size() ? ran.channel.substr(kind.size() + 1) : "";
  if (kind == "ok") return {};
  if (kind == "other file")
    return Error{Errc::Conflict, say("`import {}` imports {}, not {}", module, text, expected),
                 say("that copy comes first on the import path: move it away, or see `scankit doctor`")};
  if (kind == "wrong numbers") {
    const auto blank = text.find(' ');
    return Error{Errc::Malformed,
                 say("the forward result on {} differs from its definition by {}", text.substr(0, blank),
                     blank == std::string::npos ? "" : text.substr(blank + 1)),
                 say("please report this")};
  }
  const std::string why = kind == "failed" ? text : how_it_ended(ran);
  return Error{Errc::ToolFailed, say("`import torch; import {}` failed after the fix: {}", module, why),
               say("see `scankit doctor`")};
}

Result<void> verify_statement(const std::string& python, const std::string& statement) {
  // By reference: of a moved result gcc 12 takes the short
  // string's bytes for uninitialised when it optimises.
  const auto result = run_python(python, kStatementProgram, {statement}, std::chrono::minutes(5));
  if (!result) return result.error();
  const ProcessResult& ran = *result;
  if (ran.channel == "ok") return {};
  const std::string why = ran.channel.empty() ? how_it_ended(ran) : ran.channel;
  return Error{Errc::ToolFailed, say("`{}` failed after the fix: {}", statement, why),
               say("see `scankit doctor`")};
}

}  // namespace scankit
