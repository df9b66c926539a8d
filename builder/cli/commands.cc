// SPDX-License-Identifier: Apache-2.0
#include "builder/cli/commands.h"

#include <unistd.h>

#include <cstdio>
#include <optional>

#include "builder/compile/cache.h"
#include "builder/installer/fetch/wheel_fetcher.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python_choice.h"
#include "doctor/report/plain.h"
#include "doctor/report/progress.h"

namespace scankit {
namespace {

std::string lines_plain(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    out += "  " + plain(retold(text.substr(at, end - at)), false) + "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace

int complain(const std::string& command, const Error& error, int status) {
  const bool log = error.hint.find('\n') != std::string::npos;  // the compiler's own lines
  std::string line("scankit ");
  line.append(command).append(": ").append(retold(error.message));
  if (!error.hint.empty() && !log) line += "; " + retold(error.hint);
  tell(line);
  if (log) std::fputs(lines_plain(error.hint).c_str(), stderr);
  return error.code == Errc::InvalidArgument ? kExitUsage : status;
}

void tell(const std::string& line) { progress_line(plain(line, false)); }

Answer ask(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) return Answer::Nobody;
  std::printf("%s ", question.c_str());
  std::fflush(stdout);
  // The whole line: what is left of it would answer the next question.
  const int answer = std::getchar();
  for (int rest = answer; rest != '\n' && rest != EOF;) rest = std::getchar();
  return answer == 'y' || answer == 'Y' ? Answer::Yes : Answer::No;
}

void print_line(const std::string& line) { std::printf("%s\n", plain(line, false).c_str()); }

Result<BuildRequest> build_request(const std::string& module, const std::string& arch,
                                   const CompilationOptions& compilation) {
  BuildRequest request;
  SCANKIT_TRY(request.module, shipped_module(module));
  if (!arch.empty()) {
    SCANKIT_TRY(request.targets, parse_targets(arch));
  }
  SCANKIT_TRY(request.cache_folder, usable_cache_folder(compilation.cache_dir));
  SCANKIT_TRY(request.cache_size, parse_cache_size(compilation.cache_size));
  request.jobs = compilation.jobs;
  if (compilation.timeout != 0) request.timeout = std::chrono::seconds(compilation.timeout);
  request.progress = tell;
  request.toolchain.fetch = wheel_fetcher(request.cache_folder);
  return request;
}

Result<std::string> chosen_python(const Host& host, const std::string& asked) {
  BrokenEnvironment broken;
  return chosen_python(host, asked, broken);
}

Result<std::string> chosen_python(const Host& host, const std::string& asked, BrokenEnvironment& broken) {
  std::vector<std::string> notes;
  auto python = choose_python(host, asked.empty() ? std::nullopt : std::optional(asked), notes, &broken);
  for (const std::string& note : notes) tell(note);
  return python;
}

}  // namespace scankit
