// SPDX-License-Identifier: Apache-2.0
// Whether what was made works: compared with its lock, diagnosed, and its kernels' results checked. The
// commands run as children, as a user would run them, so that nothing that they import stays in this process.
#include <nlohmann/json.hpp>
#include <set>

#include "builder/compile/cache.h"
#include "builder/fix/install_target.h"
#include "builder/fix/transaction.h"
#include "builder/module/bundled.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/report/progress.h"
#include "envspec/create/create.h"
#include "envspec/lock/install_metadata.h"

extern "C" char** environ;

namespace scankit::envspec {
namespace {

using AnswerJson = nlohmann::json;

constexpr std::chrono::minutes kLongestProof{20};

// Byte code would contain the path where the environment was made.
std::vector<std::string> variables_without_byte_code() {
  std::vector<std::string> all = {"PYTHONDONTWRITEBYTECODE=1"};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("PYTHONDONTWRITEBYTECODE=")) all.emplace_back(*variable);
  return all;
}

}  // namespace

Result<ProcessResult> run_ourselves(std::vector<std::string> words) {
  SCANKIT_TRY(const std::string program, own_program());
  words.insert(words.begin(), program);
  ProcessRequest request;
  request.argv = std::move(words);
  request.environment = variables_without_byte_code();
  request.timeout = kLongestProof;
  request.output_limit = 64u << 20;
  SCANKIT_TRY(ProcessResult result, run_process(request));
  SCANKIT_CHECK(fix::Interruption::check());
  return result;
}

// The sentence of a report's root cause, or else why its verdict is not a clean one.
Message why_of(const ProcessResult& result) {
  if (result.timed_out) return message("no answer within {} minutes", kLongestProof.count());
  const AnswerJson json = parse_json_or_discard<AnswerJson>(result.out);
  if (json.is_object()) {
    for (const char* key : {"root", "findings", "unknown", "problems"}) {
      const AnswerJson part = json.value(key, AnswerJson());
      const AnswerJson& one = part.is_array() && !part.empty() ? part[0] : part;
      for (const char* text : {"summary", "why", "message"})
        if (const std::string sentence = json_text(one, text); !sentence.empty()) return sentence;
    }
    for (const char* text : {"message", "verdict"})
      if (const std::string sentence = json_text(json, text); !sentence.empty()) return sentence;
  }
  const std::string_view said = trimmed(result.err);
  return std::string(said.substr(said.rfind('\n') + 1));
}

namespace {

double seconds_of(const ProcessResult& result) { return static_cast<double>(result.duration.count()) / 1000; }

ProofStep judged(const std::string& what, const Result<ProcessResult>& result) {
  if (!result) return {what, "failed", result.error().message, 0};
  const double seconds = seconds_of(*result);
  if (result->ok()) return {what, "passed", "", seconds};
  const bool open = !result->timed_out && result->signal == 0 && result->exit_code == kExitInconclusive;
  return {what, open ? "not_verified" : "failed", why_of(*result), seconds};
}

// An environment without torch and extensions is none of doctor's, and no fault.
ProofStep by_doctor(const std::string& python) {
  const auto result = run_ourselves({"doctor", "--json", "--allow-empty", "--python", python});
  ProofStep step = judged("doctor", result);
  if (step.state == "passed" &&
      json_text(parse_json_or_discard<AnswerJson>(result->out), "verdict") == "empty") {
    step.state = "nothing_to_check";
    step.detail = message("neither torch nor a compiled CUDA extension is installed");
  }
  return step;
}

// The packages, torch's build and every compiled file; what the machine has otherwise is no fault of the
// environment.
ProofStep against_lock(const Subject& subject, const ReadLock& lock, const std::string& cache_dir) {
  const auto begin = std::chrono::steady_clock::now();
  ProofStep step{"lock", "passed", "", 0};
  const LockView view{lock.file, lock.lock, subject};
  const auto folder = compile::usable_cache_folder(cache_dir);  // without one every file is read
  HashCache cache(folder ? *folder : "");
  for (const Outcome& outcome :
       {locked_torch(view), locked_packages(view), locked_files(view, *subject.host, cache)}) {
    if (step.state == "failed") break;
    if (outcome.state == CheckState::Unknown) step = {"lock", "failed", outcome.why, 0};
    for (const Finding& finding : outcome.findings)
      if (finding.severity() == Severity::Error) step = {"lock", "failed", finding.summary, 0};
  }
  step.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return step;
}

// The modules of the environment that `validate` has cases for.
std::set<std::string> validated_modules_of(const Host& host, const Snapshot& snapshot) {
  std::set<std::string> names;
  for (const PlacedLibrary& one : placed_libraries(host, snapshot).libraries) {
    const std::string file = path_basename(one.inner);
    for (const module::BundledModule& known : module::bundled_modules())
      if (one.inner == file && file.starts_with(known.name + ".")) names.insert(known.name);
  }
  return names;
}

Result<void> add_step(std::vector<ProofStep>& steps, ProofStep step) {
  steps.push_back(step);
  SCANKIT_CHECK(fix::Interruption::check());
  if (step.state != "failed") return {};
  return Error{Errc::Malformed, message("the environment does not pass {}: {}", step.what, step.detail), ""};
}

}  // namespace

Result<std::vector<ProofStep>> prove(const Subject& made, const ReadLock& lock,
                                     const std::string& cache_dir) {
  std::vector<ProofStep> steps;
  const std::string python = fix::interpreter_of(made.snapshot.python.value);
  report::Progress progress;
  progress.act(say("checking the environment: every compiled file is the locked one"));
  SCANKIT_CHECK(add_step(steps, against_lock(made, lock, cache_dir)));
  progress.act(say("checking the environment: doctor"));
  SCANKIT_CHECK(add_step(steps, by_doctor(python)));
  const std::set<std::string> modules = validated_modules_of(*made.host, made.snapshot);
  if (modules.empty())
    steps.push_back(
        {"validate", "nothing_to_check", message("no module that it has cases for is installed"), 0});
  for (const std::string& module : modules) {
    progress.act(say("checking the environment: validate --quick of {}", module));
    SCANKIT_CHECK(add_step(steps, judged(fmt::format("validate {}", module),
                                         run_ourselves({"validate", "--quick", "--no-timing", "--json",
                                                        "--module", module, "--python", python}))));
  }
  return steps;
}

}  // namespace scankit::envspec
