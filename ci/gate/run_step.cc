// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ci/gate/gate.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/model/json.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

// Runs one step and stores its answer, and writes to the job page of a CI server. For each step the
// directory has STEM.json, the answer, and STEM.step.json, how it ended, with the answer's hash.
namespace scankit::gate {
namespace {
using Json = nlohmann::ordered_json;

constexpr int kStepSchema = 1;
constexpr std::size_t kMostOfAnAnswer = 256u << 20;

std::string end_file(const std::string& folder, const StepCommand& command) {
  return path_join(folder, command.stem + ".step.json");
}

// At most 400 bytes.
std::string last_line(const std::string& text) {
  constexpr std::size_t kMost = 400;
  std::size_t end = text.find_last_not_of(" \r\n\t");
  if (end == std::string::npos) return "";
  const std::size_t start = text.find_last_of('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, std::min(end - start, kMost));
}

}  // namespace

// The statuses at which scankit's commands write their answer. 2 and 3 (usage, internal error) leave none.
bool StepEnd::has_answer() const {
  return !timed_out && signal == 0 &&
         (status == kExitClean || status == kExitFindings || status == kExitInconclusive ||
          status == kExitValidationFailed || status == kExitDrift);
}

std::string answer_file(const std::string& folder, const StepCommand& command) {
  return path_join(folder, command.stem + ".json");
}

// The key says that the inputs are the same, and the hash that the answer is the one that was written.
std::optional<StepEnd> finished_before(const std::string& folder, const StepCommand& command) {
  const auto text = read_whole_file(end_file(folder, command), 1u << 20);
  const auto answer = sha256_file(answer_file(folder, command));
  if (!text || !answer) return std::nullopt;
  const Json json = parse_json_or_discard<Json>(*text);
  if (!json.is_object() || json.value("schema", Json()) != kStepSchema ||
      json.value("key", Json()) != command.key || json.value("answer_sha256", Json()) != *answer)
    return std::nullopt;
  const Json status = json.value("status", Json()), seconds = json.value("seconds", Json());
  // A process ends with 0 to 255; what else stands there was written by nobody we know.
  if (!status.is_number_unsigned() || status > 255 || !seconds.is_number()) return std::nullopt;
  StepEnd end{.status = whole_number<int>(status), .seconds = seconds.get<double>()};
  return end.has_answer() ? std::optional(end) : std::nullopt;
}

Result<StepEnd> run_step(const std::string& folder, const StepCommand& command) {
  // An earlier answer must not look like that of this run if it is interrupted.
  ::unlink(end_file(folder, command).c_str());
  const std::string answer = answer_file(folder, command);
  ProcessRequest request;
  request.argv = command.argv;
  if (!command.answer_option.empty()) {
    ::unlink(answer.c_str());
    request.argv.push_back(command.answer_option);
    request.argv.push_back(answer);
  }
  request.timeout = command.timeout;
  request.output_limit = kMostOfAnAnswer;
  SCANKIT_TRY(const ProcessResult result, run_process(request));
  StepEnd end{.status = result.exit_code,
              .signal = result.signal,
              .timed_out = result.timed_out,
              .seconds = static_cast<double>(result.duration.count()) / 1000,
              .last_words = last_line(result.err)};
  if (!end.has_answer()) return end;
  if (command.answer_option.empty()) SCANKIT_CHECK(write_file_atomically(answer, result.out));
  auto hash = sha256_file(answer);
  if (!hash)
    return Error{Errc::ToolFailed, message("{} gave no answer: {}", command.name, hash.error().message), ""};
  const Json json{{"schema", kStepSchema}, {"key", command.key},     {"command", command.argv},
                  {"status", end.status},  {"seconds", end.seconds}, {"answer_sha256", *hash}};
  SCANKIT_CHECK(write_file_atomically(end_file(folder, command), json_document(json)));
  return end;
}

namespace {

// GitHub refuses a summary of more than 1 MiB for a step, as a whole.
constexpr std::size_t kMostOfASummary = 1000u << 10;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The whole report if it fits into `room` bytes, else its verdict, else nothing.
std::string summary_of(const Report& report, int exit_status, std::size_t room) {
  std::string text = report::render("markdown", report::doctor_views(report, exit_status));
  if (text.size() <= room) return text;
  text = "## " +
         say("scankit {}: {}", report::command_of(report),
             report::markdown_escaped(report::verdict_line(report))) +
         "\n\n" + report::markdown_escaped(report::counts_line(report)) + "\n\n" +
         report::markdown_escaped(
             say("The full report is too long for this page: --report markdown=FILE writes it.")) +
         "\n";
  return text.size() <= room ? text : "";
}

// Appends, as every step of a job does. A single write(2) with O_APPEND keeps two commands from
// mixing their text.
Result<void> append(const std::string& path, const Report& report, int exit_status) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
    return Error{Errc::Io, message("cannot open $GITHUB_STEP_SUMMARY ({}): {}", path, std::strerror(errno)),
                 ""};
  const auto there = static_cast<std::size_t>(S_ISREG(status.st_mode) ? status.st_size : 0);
  const std::string text =
      summary_of(report, exit_status, kMostOfASummary - std::min(kMostOfASummary, there));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Error{Errc::Io, message("cannot write $GITHUB_STEP_SUMMARY ({}): {}", path, std::strerror(errno)),
                 ""};
  return {};
}

}  // namespace

int tell_job_page(const Report& report, int exit_status, bool to_stdout) {
  if (variable("GITHUB_ACTIONS") == "true" && to_stdout)
    std::cout << report::render("github", report::doctor_views(report, exit_status)) << std::flush;
  const std::string summary = variable("GITHUB_STEP_SUMMARY");
  if (summary.empty()) return kExitClean;
  const auto written = append(summary, report, exit_status);
  if (written) return kExitClean;
  cli::report_error(written.error());
  return kExitInternal;
}

}  // namespace scankit::gate
