// SPDX-License-Identifier: Apache-2.0
// What build, fix and restore share: errors, questions, output lines, and the build request.
#include "builder/cli/commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "builder/compile/cache.h"
#include "builder/installer/fetch/wheel_fetcher.h"
#include "builder/module/assemble.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"

namespace scankit::cli {
namespace {

// Each line indented, translated, and without control characters.
std::string lines_plain(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    out += "  " + report::plain(text.substr(at, end - at), false) + "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace

int report_error(const std::string& command, const Error& error, int status) {
  const std::string hint = tr(error.hint);
  const bool log = hint.find('\n') != std::string::npos;  // the compiler's own lines
  std::string line("scankit ");
  line.append(command).append(": ").append(tr(error.message));
  if (!hint.empty() && !log) line += "; " + hint;
  tell(line);
  if (log) std::fputs(lines_plain(hint).c_str(), stderr);
  return error.code == Errc::InvalidArgument ? kExitUsage : status;
}

void tell(const std::string& line) { report::progress_line(report::plain(line, false)); }

Answer ask(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) return Answer::Nobody;
  std::printf("%s ", question.c_str());
  std::fflush(stdout);
  // The whole line: what is left of it would answer the next question.
  const int answer = std::getchar();
  for (int rest = answer; rest != '\n' && rest != EOF;) rest = std::getchar();
  return answer == 'y' || answer == 'Y' ? Answer::Yes : Answer::No;
}

void print_line(const std::string& line) { std::printf("%s\n", report::plain(line, false).c_str()); }

Result<compile::BuildRequest> build_request(const std::string& module, const std::string& arch,
                                            const CompilationOptions& compilation) {
  compile::BuildRequest request;
  SCANKIT_TRY(request.module, module::bundled_module(module));
  if (!arch.empty()) {
    SCANKIT_TRY(request.targets, module::parse_targets(arch));
  }
  SCANKIT_TRY(request.cache_folder, compile::usable_cache_folder(compilation.cache_dir));
  SCANKIT_TRY(request.cache_size, compile::parse_cache_size(compilation.cache_size));
  request.jobs = compilation.jobs;
  if (compilation.timeout != 0) request.timeout = std::chrono::seconds(compilation.timeout);
  request.progress = tell;
  request.toolchain.fetch = installer::wheel_fetcher(request.cache_folder);
  return request;
}

Result<std::string> chosen_python(const Host& host, const std::string& asked) {
  BrokenEnvironment broken;
  return chosen_python(host, asked, broken);
}

Result<std::string> chosen_python(const Host& host, const std::string& asked, BrokenEnvironment& broken) {
  std::vector<Message> notes;
  auto python =
      probes::choose_python(host, asked.empty() ? std::nullopt : std::optional(asked), notes, &broken);
  for (const Message& note : notes) tell(tr(note));
  return python;
}

namespace {

void print_below(const std::string& line) { print_line("    " + line); }

std::string names(const std::vector<unsigned>& archs) {
  std::string text;
  for (const unsigned sm : archs) text += (text.empty() ? "sm_" : " sm_") + std::to_string(sm);
  return text;
}

// Which host compiler the candidate needs and gets; NVRTC needs none.
std::string host_compiler(const Host& host, const toolchain::Candidate& candidate) {
  if (candidate.kind == toolchain::Candidate::Kind::Nvrtc) return say("none needed");
  if (candidate.kind == toolchain::Candidate::Kind::Wheel && !candidate.wheel->nvcc)
    return say("none needed");
  if (candidate.kind == toolchain::Candidate::Kind::Wheel)
    return toolchain::shown(toolchain::host_compiler_range(host, {}, candidate.wheel->version));
  if (candidate.nvcc.host.path.empty()) return toolchain::shown(candidate.nvcc.takes);
  return say("{}; accepts {} {} ({})", toolchain::shown(candidate.nvcc.takes), candidate.nvcc.host.kind,
             candidate.nvcc.host.version, candidate.nvcc.host.path);
}

// By the file or the wheel: the version may not be known yet in one of the two.
bool same(const toolchain::Candidate& a, const toolchain::Candidate& b) {
  return a.kind == b.kind && a.nvrtc.path == b.nvrtc.path && a.nvcc.path == b.nvcc.path && a.wheel == b.wheel;
}

// The targets that a build makes with the candidate; "" if it is not used.
std::string taken_for(const toolchain::Toolchain& toolchain, const toolchain::Candidate& candidate) {
  std::vector<module::Target> targets;
  for (std::size_t i = 0; i < toolchain.made_by.size(); ++i)
    if (same(toolchain.compilers[toolchain.made_by[i]], candidate))
      targets.push_back(toolchain.choice.targets[i]);
  return module::names_of(targets, " ");
}

// Why a build takes this compiler, or why it does not.
std::string verdict(const toolchain::Candidate& candidate, const Result<module::TargetChoice>& choice,
                    const std::string& makes) {
  if (!makes.empty()) return say("selected: builds {}", makes);
  if (!choice) return say("not selected: {}", choice.error().message);
  if (choice->targets.empty()) return say("not selected: without device code no compiler is needed");
  if (candidate.kind == toolchain::Candidate::Kind::Wheel)
    return say("not selected: not installed; --allow-download fetches it ({} MB) if nothing else is suitable",
               candidate.wheel->download() / 1000000);
  if (choice->too_old) return say("not selected: {}", choice->notes.front());
  if (candidate.kind == toolchain::Candidate::Kind::Nvcc)
    return say("not selected: NVRTC builds the same device code without a host compiler");
  return say("not selected: a preferred one above is used, although this one is suitable as well");
}

void print_candidate(const Host& host, const toolchain::Candidate& candidate,
                     const Result<module::TargetChoice>& choice, const std::string& makes) {
  print_line(candidate.title());
  if (candidate.kind == toolchain::Candidate::Kind::Nvrtc)
    print_below(say("from: {}", candidate.nvrtc.origin));
  if (candidate.kind == toolchain::Candidate::Kind::Nvcc) print_below(say("from: {}", candidate.nvcc.origin));
  if (!candidate.archs().empty()) print_below(say("builds: {}", names(candidate.archs())));
  print_below(say("host compiler: {}", host_compiler(host, candidate)));
  print_below(verdict(candidate, choice, makes));
  if (!choice && makes.empty() && !choice.error().hint.empty())
    print_below(say("to use it: {}", choice.error().hint));
}

}  // namespace

// Judges every candidate, also those behind the one that is chosen.
int list_toolchains(const Host& host, const Snapshot& snapshot, const compile::BuildRequest& request) {
  const compile::Cache cache(request.cache_folder);
  auto found = toolchain::find_candidates(host, snapshot, request.toolchain, cache);
  if (!found) return report_error("build", found.error(), kExitBuildFailed);
  const auto chosen = toolchain::choose_toolchain(host, snapshot, request.targets, cache, request.toolchain);
  for (toolchain::Candidate& candidate : *found) {
    const auto choice = toolchain::judge(host, snapshot, request.targets, cache, candidate);
    print_candidate(host, candidate, choice, chosen ? taken_for(*chosen, candidate) : "");
  }
  return chosen ? kExitClean : report_error("build", chosen.error(), kExitBuildFailed);
}

int show_manifest(const std::string& path) {
  const auto manifest = module::read_manifest(path);
  if (!manifest) return report_error("build", manifest.error(), kExitUsage);
  std::fputs(manifest->c_str(), stdout);
  if (const auto good = module::check_against_manifest(path, *manifest); !good)
    return report_error("build", {Errc::Malformed, good.error().message, message("reinstall the module")},
                        kExitFindings);
  return kExitClean;
}

}  // namespace scankit::cli
