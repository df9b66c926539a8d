// SPDX-License-Identifier: Apache-2.0
#include "validate/run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "validate/child.h"
#include "validate/harness_files.h"
#include "validate/judge.h"
#include "validate/progress.h"
#include "validate/protocol.h"

namespace scankit::validate {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kCrashesInARow = 5;  // each costs an import of torch; then the module has said enough

// Runs children until no task is left: a crash or hang costs its own case, and the next child goes on behind
// it.
class Run {
 public:
  Run(const ValidateRequest& request, std::string script)
      : request_(request), script_(std::move(script)), deadline_(Clock::now() + request.total) {
    seen_.python = request.python;
    seen_.module = request.module;
    seen_.mode = request.mode;
    seen_.seed = request.seed;
    seen_.deterministic = request.deterministic;
    // One case after the other on all devices: the harness computes the exact result once for them all.
    for (const Case& c : request.cases)
      for (const std::string& device : request.devices) tasks_.push_back({&c, device});
    total_ = tasks_.size();
  }

  Validation run() {
    const auto start = Clock::now();
    seen_.blocked = why_python_does_not_work(request_.python);
    while (seen_.blocked.empty() && !finished_) child();
    if (!seen_.cases.empty()) leave_out_the_rest();
    for (CaseResult& result : seen_.cases)
      if (result.state == CaseState::Failed) judge_case(result, request_.deterministic);
    explain_nothing_run();
    seen_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    seen_.verdict = judge(seen_);
    return std::move(seen_);
  }

 private:
  void child() {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    if (left.count() <= 0) {
      seen_.blocked = say("stopped after {} s (--timeout)", request_.total.count());
      return;
    }
    ChildStory story;
    std::string partial;
    ProcessRequest process = python_request(request_.python, {script_}, left);
    process.standard_input = job_text(job());
    process.on_channel = [&](std::string_view piece) { listen(piece, partial, story); };
    const auto result = run_process(process);
    if (!result) {
      seen_.blocked = result.error().message;
      return;
    }
    if (seen_.left_out > 0) std::erase_if(tasks_, [](const Task& task) { return task.what->stateful; });
    forget_done_tasks();
    if (story.ended) {
      drop_absent_devices();
      finished_ = true;
    } else {
      pick_up(story, *result);
    }
  }

  Job job() const {
    Job job;
    job.module = request_.module;
    job.case_seconds = static_cast<int>(request_.each_case.count());
    job.tasks = tasks_;
    if (request_.timing && !timing_failed_) job.timed_devices = request_.devices;
    job.seed = request_.seed;
    return job;
  }

  void listen(std::string_view piece, std::string& partial, ChildStory& story) {
    partial += piece;
    for (std::size_t end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
      take_line(std::string_view(partial).substr(0, end), seen_, story);
      partial.erase(0, end + 1);
    }
    if (request_.progress) request_.progress({seen_.cases.size(), expected(), story.started});
  }

  std::size_t expected() const {
    if (seen_.python_version.empty() || !seen_.gpu.empty()) return total_ - seen_.left_out;
    const auto devices = std::count(request_.devices.begin(), request_.devices.end(), "cpu");
    return request_.cases.size() * static_cast<std::size_t>(devices) - seen_.left_out;
  }

  // A child that ended before its time.
  void pick_up(const ChildStory& story, const ProcessResult& result) {
    const bool hung = ended_by_watchdog(result);
    if (story.started == "timing") {
      seen_.notes.push_back(say("no timing on {}: {}", story.device, describe_end(result)));
      timing_failed_ = true;
      finished_ = tasks_.empty();
      return;
    }
    const auto task = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& t) {
      return t.what->id == story.started && t.device == story.device;
    });
    if (task == tasks_.end()) {
      if (story.cases_done > 0) return;  // left on purpose between two cases (a broken CUDA context)
      if (story.started == "import module") {
        seen_.module_problem = ModuleProblem::ImportFailed;
        seen_.module_message = say("importing {}: {}", request_.module, end_of(hung, result));
        finished_ = true;
      } else {
        seen_.blocked =
            say("before the first case ({}) {}", phase_in_words(story.started), end_of(hung, result));
      }
      return;
    }
    CaseResult lost;
    lost.id = story.started;
    lost.device = story.device;
    const bool out_of_time = result.timed_out;
    lost.state = out_of_time ? CaseState::NotRun : hung ? CaseState::Hung : CaseState::Crashed;
    lost.reasons = {end_of(hung, result)};
    seen_.cases.push_back(std::move(lost));
    tasks_.erase(task);
    crashes_ = story.cases_done > 0 ? 1 : crashes_ + 1;
    if (crashes_ >= kCrashesInARow) seen_.blocked = say("gave up after {} lost processes in a row", crashes_);
  }

  std::string end_of(bool hung, const ProcessResult& result) const {
    if (!hung || result.timed_out) return describe_end(result);
    const auto seconds = request_.each_case.count();
    const std::string where = where_it_was(result);
    return where.empty() ? say("the process hung and was stopped after {} s", seconds)
                         : say("the process hung and was stopped after {} s at {}", seconds, where);
  }

  void forget_done_tasks() {
    std::set<std::pair<std::string, std::string>> done;
    for (const CaseResult& result : seen_.cases) done.emplace(result.id, result.device);
    std::erase_if(tasks_, [&](const Task& task) {
      const auto is_refused = [&](const auto& refused) { return refused.first == task.device; };
      return done.contains({task.what->id, task.device}) ||
             std::any_of(seen_.refused.begin(), seen_.refused.end(), is_refused);
    });
  }

  void drop_absent_devices() {
    if (!seen_.gpu.empty()) return;
    const auto dropped = std::erase_if(tasks_, [](const Task& task) { return task.device != "cpu"; });
    if (dropped == 0) return;
    if (request_.require_cuda) {
      seen_.blocked = say("torch sees no CUDA device");
    } else {
      seen_.notes.push_back(say("torch sees no CUDA device: only the CPU was validated"));
    }
  }

  void leave_out_the_rest() {
    for (const Task& task : tasks_) {
      if (task.device != "cpu" && seen_.gpu.empty()) continue;
      CaseResult result;
      result.id = task.what->id;
      result.device = task.device;
      result.reasons = {say("not run")};
      seen_.cases.push_back(std::move(result));
    }
  }

  void explain_nothing_run() {
    if (!seen_.cases.empty() || !seen_.blocked.empty()) return;
    if (seen_.module_problem == ModuleProblem::NotFound) {
      seen_.blocked = seen_.module_message;
    } else if (!seen_.refused.empty()) {
      seen_.blocked = say("the module takes no tensor of any device that is here");
    }
  }

  const ValidateRequest& request_;
  std::string script_;
  Clock::time_point deadline_;
  std::vector<Task> tasks_;
  std::size_t total_ = 0;
  Validation seen_;
  bool finished_ = false, timing_failed_ = false;
  int crashes_ = 0;
};

}  // namespace

Result<Validation> run_validation(const ValidateRequest& request) {
  SCANKIT_TRY(const auto directory, TemporaryDirectory::create("scankit-validate"));
  SCANKIT_TRY(auto script, write_harness(directory.path()));
  return Run(request, std::move(script)).run();
}

Result<std::string> run_python_oracle(const std::string& python, const std::vector<Case>& cases) {
  SCANKIT_TRY(const auto directory, TemporaryDirectory::create("scankit-validate"));
  SCANKIT_TRY(const auto script, write_harness(directory.path()));
  Job job;
  job.mode = "oracle";
  for (const Case& c : cases) job.tasks.push_back({&c, "cpu"});
  ProcessRequest process = python_request(python, {script}, std::chrono::minutes(5));
  process.standard_input = job_text(job);
  process.output_limit = 256u << 20;
  SCANKIT_TRY(const auto result, run_process(process));
  if (!result.ok())
    return Error{Errc::ToolFailed, say("the Python oracle failed: {}", describe_end(result)), ""};
  return result.channel;
}

}  // namespace scankit::validate
