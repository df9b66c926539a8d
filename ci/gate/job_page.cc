// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/job_page.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

// GitHub refuses a summary of more than 1 MiB for a step, as a whole.
constexpr std::size_t kMostOfASummary = 1000u << 10;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string summary_of(const Diagnosis& diagnosis, const SinkOptions& sink, std::size_t room) {
  std::string text = diagnosis.rendered("markdown", sink);
  if (text.size() <= room) return text;
  text = diagnosis.text([](const Report& report) {
    return "## " + say("scankit {}: {}", command_of(report), markdown_escaped(verdict_line(report))) +
           "\n\n" + markdown_escaped(counts_line(report)) + "\n\n" +
           markdown_escaped(
               say("The whole report is too long for this page: --report markdown=FILE writes it.")) +
           "\n";
  });
  return text.size() <= room ? text : "";
}

// Appended, as every step of a job does; in one write(2), so that two commands of a step do not mix.
Result<void> append(const std::string& path, const Diagnosis& diagnosis, const SinkOptions& sink) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
    return Error{Errc::Io, say("cannot open $GITHUB_STEP_SUMMARY ({}): {}", path, std::strerror(errno)), ""};
  const auto there = static_cast<std::size_t>(S_ISREG(status.st_mode) ? status.st_size : 0);
  const std::string text = summary_of(diagnosis, sink, kMostOfASummary - std::min(kMostOfASummary, there));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Error{Errc::Io, say("cannot write $GITHUB_STEP_SUMMARY ({}): {}", path, std::strerror(errno)), ""};
  return {};
}

}  // namespace

int tell_job_page(const Diagnosis& diagnosis, const SinkOptions& sink, bool to_stdout) {
  if (variable("GITHUB_ACTIONS") == "true" && to_stdout)
    std::cout << diagnosis.rendered("github", sink) << std::flush;
  const std::string summary = variable("GITHUB_STEP_SUMMARY");
  if (summary.empty()) return kExitClean;
  const auto written = append(summary, diagnosis, sink);
  if (written) return kExitClean;
  complain(written.error());
  return kExitInternal;
}

}  // namespace scankit
