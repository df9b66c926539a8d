// SPDX-License-Identifier: Apache-2.0
#include "validate/run/run.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "validate/cases/data.h"
#include "validate/judge/judge.h"
#include "validate/judge/kernel_use.h"
#include "validate/judge/speed.h"
#include "validate/run/child.h"
#include "validate/run/harness_files.h"
#include "validate/run/protocol.h"
#include "validate/run/timing_gate.h"
#include "validate/run/upstream_tests.h"

// A run of `scankit validate` as a sequence of children. Each child gets all tasks that are left and works
// through them until it dies or is done, because importing torch takes seconds: a child for each case
// would be too slow, and one child for all would lose everything with the first crash.
namespace scankit::validate {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kCrashesInARow = 5;  // each costs an import of torch; then the module has said enough

// The phases of the harness's start in the user's language; anything else is the id of a case.
std::string phase_in_words(const std::string& what) {
  if (what.empty()) return say("start");
  if (what == "import torch") return say("import torch");
  return what == "import module" ? say("import module") : what;
}

bool is_against(const CaseResult& result) { return result.device.ends_with("@against"); }

// One run. The main Run owns a second one, beside_, for the cases with bands on the GPU, whose children
// run on another thread at the same time as the main ones where the GPU allows it. The two share nothing
// but request_ and the atomic counter done_; the results are merged when both are finished.
class Run {
 public:
  Run(const ValidateRequest& request, Harness harness)
      : request_(request), harness_(std::move(harness)), deadline_(Clock::now() + request.total) {
    seen_.python = request.python;
    seen_.module = request.module;
    seen_.mode = request.mode;
    seen_.seed = request.seed;
    seen_.deterministic = request.deterministic;
    seen_.against = request.against;
    seen_.baseline = request.baseline;
    tasks_ = tasks_of(request);
    banded_tasks_ = banded_tasks_of(request);
    if (!banded_tasks_.empty()) gate_.emplace(path_join(path_dirname(harness_.script), "timing.lock"));
  }

  // The order matters: sanitizer, kernels and upstream's tests only make sense once the cases have run,
  // and the verdict comes last, when all results are judged and those of the other module are separated.
  Validation run() {
    const auto start = Clock::now();
    seen_.blocked = why_python_does_not_work(request_.python);
    children();
    look_between_bands();
    if (!seen_.cases.empty()) leave_out_the_rest();
    for (CaseResult& result : seen_.cases)
      if (result.state == CaseState::Failed) judge_case(result, request_.deterministic);
    const bool gpu = !seen_.gpu.empty() && !on_cpu(request_.devices.back());
    if (request_.mode == "full" && gpu && seen_.blocked.empty() && !seen_.cases.empty())
      run_sanitizer(request_, harness_.script, seen_);
    if (gpu && seen_.blocked.empty()) look_at_kernels(request_, harness_, seen_);
    if (!request_.upstream_tests.empty() && seen_.blocked.empty()) {
      const std::chrono::duration<double> left = deadline_ - Clock::now();
      run_upstream_tests(request_, harness_, std::max(left.count(), 1.0), seen_);
    }
    if (seen_.blocked.empty()) seen_.blocked = seen_.gpu_problem;
    std::copy_if(seen_.cases.begin(), seen_.cases.end(), std::back_inserter(seen_.against_cases), is_against);
    std::erase_if(seen_.cases, is_against);
    explain_nothing_run();
    if (!request_.baseline.empty()) compare_with_baseline(seen_, request_.baseline_text);
    if (const std::string changes = clock_changes(seen_.timings); !changes.empty())
      seen_.notes.push_back(changes);
    seen_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    seen_.verdict = judge(seen_);
    return std::move(seen_);
  }

 private:
  // The run of the children with bands around every tensor on the GPU.
  Run(const Run& main, std::vector<Task> banded)
      : request_(main.request_),
        harness_(main.harness_),
        deadline_(main.deadline_),
        tasks_(std::move(banded)),
        finished_(tasks_.empty()),
        banded_(true) {
    seen_.module = request_.module;
  }

  void children() {
    while (seen_.blocked.empty() && !finished_) child();
  }

  // Once a case has run it is known whether there is a GPU, and a module.
  bool has_to_look_between_bands() const {
    return !banded_tasks_.empty() && !seen_.gpu.empty() && !seen_.cases.empty() && seen_.blocked.empty() &&
           seen_.module_problem == ModuleProblem::None;
  }

  void prepare_banded() {
    if (seen_.left_out > 0)  // of the functions that the module lacks
      std::erase_if(banded_tasks_, [](const Task& task) { return task.what->stateful; });
    beside_.reset(new Run(*this, banded_tasks_));
  }

  // Called for every line of a child. Starts the children with bands as soon as the first case has shown
  // that there is a GPU and a working module. While they run the gate is closed, and the main child does
  // what is not timed.
  void begin_beside() {
    if (!gate_ || !gate_->closed() || seen_.cases.empty() || beside_) return;
    if (!has_to_look_between_bands() || !seen_.gpu_shared) return gate_->open();
    prepare_banded();
    beside_done_ = std::async(std::launch::async, [this] {
      beside_->children();
      gate_->open();
    });
  }

  // Waits for the children with bands, or runs them now if they could not run at the same time (the GPU
  // takes one process, or its memory was full).
  void look_between_bands() {
    if (beside_) beside_done_.get();
    // One that did not get the GPU because the other child had all its memory gets it now.
    if (beside_ && beside_->seen_.gpu_problem.empty()) {
      take_over(beside_->seen_);
    } else if (has_to_look_between_bands()) {
      prepare_banded();
      beside_->tell_main_ = [this] { tell("", ""); };
      beside_->children();
      take_over(beside_->seen_);
    }
  }

  // Adds the results of the run with bands. Its notes are mostly those of this run again.
  void take_over(Validation& other) {
    std::move(other.cases.begin(), other.cases.end(), std::back_inserter(seen_.cases));
    std::move(other.refused.begin(), other.refused.end(), std::back_inserter(seen_.refused));
    for (const std::string& note : other.notes)
      if (std::find(seen_.notes.begin(), seen_.notes.end(), note) == seen_.notes.end())
        seen_.notes.push_back(note);
    if (seen_.blocked.empty()) seen_.blocked = other.blocked;
    if (seen_.gpu_problem.empty()) seen_.gpu_problem = other.gpu_problem;
    if (seen_.module_problem == ModuleProblem::None) {
      seen_.module_problem = other.module_problem;
      seen_.module_message = other.module_message;
    }
    tasks_.insert(tasks_.end(), beside_->tasks_.begin(), beside_->tasks_.end());
  }

  // Starts one child and waits for its end, then decides what is left to do. The deadline is that of
  // the whole run.
  void child() {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    if (left.count() <= 0) {
      seen_.blocked = say("stopped after {} s (--timeout)", request_.total.count());
      return;
    }
    ChildStory story;
    std::string partial;
    before_this_child_ = seen_.cases.size();
    ProcessRequest process = python_request(request_.python, {harness_.script}, left);
    preload(process, harness_.guard);
    process.standard_input = job_text(job());
    process.on_channel = [&](std::string_view piece) { listen(piece, partial, story); };
    const auto result = run_process(process);
    if (!result) {
      seen_.blocked = result.error().message;
      return;
    }
    if (seen_.left_out > 0) std::erase_if(tasks_, [](const Task& task) { return task.what->stateful; });
    forget_done_tasks();
    if (story.without_bands) tasks_.clear();
    if (story.ended) {
      drop_absent_devices();
      finished_ = true;
    } else {
      pick_up(story, *result);
    }
  }

  // The job of the next child: what is left, without what an earlier child failed at.
  Job job() const {
    Job job;
    job.module = request_.module;
    job.case_seconds = static_cast<int>(request_.each_case.count());
    job.tasks = tasks_;
    job.seed = request_.seed;
    if (banded_) {
      job.gpu_bands = harness_.guard;
      return job;
    }
    if (request_.model && model_) job.model_devices = request_.devices;
    job.upstream_model = request_.upstream_model;
    if (against_) job.against = request_.against;
    if (gate_ && gate_->closed()) job.alone = gate_->path();
    if (request_.timing && !timing_failed_) job.timed = request_.shapes;
    if (request_.timing && !timing_failed_ && job.timed.empty())
      for (const std::string& device : request_.devices)
        for (const TimedShape& shape : timed_shapes(device, request_.mode == "full"))
          job.timed.push_back(shape);
    return job;
  }

  // The channel arrives in pieces; `partial` keeps the line that is not complete yet.
  void listen(std::string_view piece, std::string& partial, ChildStory& story) {
    partial += piece;
    for (std::size_t end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
      take_line(std::string_view(partial).substr(0, end), seen_, story);
      partial.erase(0, end + 1);
    }
    done_ = seen_.cases.size();
    if (banded_) return tell_main_ ? tell_main_() : void();
    count_planned(story);
    begin_beside();
    if (story.greeted && !request_.baseline.empty() && !compared_devices_) {
      compared_devices_ = true;
      const std::string why = baseline_device_problem(seen_, request_.devices, request_.baseline_text);
      if (!why.empty()) tell(story.started, why);
    }
    tell(story.started, "");
  }

  void tell(const std::string& what, const std::string& warning) const {
    const std::size_t done = done_ + (beside_ ? beside_->done_.load() : 0);
    if (request_.progress) request_.progress({done, planned_, what, warning, node_deadline_of(what)});
  }

  // The harness's own time limit for a phase or case, for the progress line. 0 where it has none: the
  // length of a timing depends on what it measures.
  std::chrono::seconds node_deadline_of(const std::string& what) const {
    if (what.empty() || what == "timing") return {};
    return what.starts_with("import ") ? std::chrono::seconds(Job{}.start_seconds) : request_.each_case;
  }

  // How many cases the whole run will report: what this child has announced plus what the earlier ones
  // reported. Nothing is planned before a child has imported the module, since its functions decide which
  // cases there are.
  void count_planned(const ChildStory& story) {
    if (story.plan.empty()) return;
    planned_ = before_this_child_;
    for (const auto& [device, cases] : story.plan) planned_ += cases;
    if (seen_.gpu.empty()) return;
    planned_ += static_cast<std::size_t>(std::ranges::count_if(
        banded_tasks_, [&](const Task& task) { return seen_.left_out == 0 || !task.what->stateful; }));
  }

  // A child ended early. Finds out what it was doing, blames that, and removes it from what the next
  // child gets: a timing, the model, the import of a module, or one case. Many lost children in a row
  // end the run.
  void pick_up(const ChildStory& story, const ProcessResult& result) {
    const bool hung = ended_by_watchdog(result);
    if (story.started == "timing") {
      seen_.notes.push_back(say("no timing on {}: {}", story.device, describe_end(result)));
      timing_failed_ = true;
      finished_ = tasks_.empty();
      return;
    }
    if (story.started.starts_with("model-")) {
      CaseResult lost{story.started,
                      story.device,
                      hung ? CaseState::Hung : CaseState::Crashed,
                      {},
                      {},
                      {},
                      {},
                      {},
                      {},
                      0,
                      {}};
      lost.reasons = {end_of(hung, result)};
      seen_.cases.push_back(std::move(lost));
      model_ = false;
      return;
    }
    const auto task = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& t) {
      return t.what->id == story.started && t.device == story.device;
    });
    if (task == tasks_.end()) {
      if (banded_ && story.cases_done == 0) {
        seen_.notes.push_back(
            say("what is written beside a result on the GPU is not seen: {}", end_of(hung, result)));
        tasks_.clear();
        finished_ = true;
        return;
      }
      if (story.cases_done > 0) return;  // left on purpose between two cases (a broken CUDA context)
      if (story.started == "import module" && story.device == "@against") {
        seen_.against_problem = say("importing {}: {}", request_.against, end_of(hung, result));
        without_against();
      } else if (story.started == "import module") {
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

  void without_against() {
    against_ = false;
    std::erase_if(tasks_, [](const Task& task) { return task.device.ends_with("@against"); });
    finished_ = tasks_.empty();
  }

  // The watchdog of the harness prints the stack before it ends the process, so that the place is known.
  std::string end_of(bool hung, const ProcessResult& result) const {
    if (!hung || result.timed_out) return describe_end(result);
    const auto seconds = request_.each_case.count();
    const std::string where = where_it_was(result);
    return where.empty() ? say("the process hung and was stopped after {} s", seconds)
                         : say("the process hung and was stopped after {} s at {}", seconds, where);
  }

  // A device whose tensors the module refuses needs no further tasks.
  void forget_done_tasks() {
    std::set<std::pair<std::string, std::string>> done;
    for (const CaseResult& result : seen_.cases) done.emplace(result.id, result.device);
    std::erase_if(tasks_, [&](const Task& task) {
      const auto is_refused = [&](const auto& refused) { return refused.first == task.device; };
      return done.contains({task.what->id, task.device}) ||
             std::any_of(seen_.refused.begin(), seen_.refused.end(), is_refused);
    });
  }

  // Without a GPU its tasks are dropped, with a note. Under --device cuda that leaves the run incomplete.
  void drop_absent_devices() {
    if (!seen_.gpu.empty()) return;
    const auto dropped = std::erase_if(tasks_, [](const Task& task) { return !on_cpu(task.device); });
    if (dropped == 0) return;
    if (!seen_.gpu_problem.empty()) return;
    if (request_.require_cuda) {
      seen_.blocked = say("torch sees no CUDA device");
    } else {
      seen_.notes.push_back(say("torch sees no CUDA device: only the CPU was validated"));
    }
  }

  // What was never started counts as not run, so that the verdict cannot be Passed.
  void leave_out_the_rest() {
    for (const Task& task : tasks_) {
      if (!on_cpu(task.device) && seen_.gpu.empty()) continue;
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
  Harness harness_;
  Clock::time_point deadline_;
  std::vector<Task> tasks_, banded_tasks_;
  std::size_t planned_ = 0, before_this_child_ = 0;  // cases of the whole run; of the children before
  Validation seen_;
  bool finished_ = false, timing_failed_ = false, against_ = true, model_ = true, compared_devices_ = false,
       banded_ = false;  // the children have bands around tensors on the GPU
  int crashes_ = 0;
  std::atomic<std::size_t> done_ = 0;  // cases
  std::function<void()> tell_main_;    // of a run with bands that is not concurrent with `main`
  std::optional<Gate> gate_;
  std::unique_ptr<Run> beside_;    // with bands
  std::future<void> beside_done_;  // waits for it when it is destroyed
};

}  // namespace

Result<Validation> run_validation(const ValidateRequest& request) {
  SCANKIT_TRY(const auto directory, TemporaryDirectory::create("scankit-validate"));
  SCANKIT_TRY(auto harness, write_harness(directory.path()));
  return Run(request, std::move(harness)).run();
}

// Used by tests/cross_check_test.cc only.
Result<std::string> run_python_oracle(const std::string& python, const std::vector<Case>& cases) {
  SCANKIT_TRY(const auto directory, TemporaryDirectory::create("scankit-validate"));
  SCANKIT_TRY(const auto harness, write_harness(directory.path()));
  Job job;
  job.mode = "oracle";
  for (const Case& c : cases) job.tasks.push_back({&c, "cpu"});
  ProcessRequest process = python_request(python, {harness.script}, std::chrono::minutes(5));
  process.standard_input = job_text(job);
  process.output_limit = 256u << 20;
  SCANKIT_TRY(const auto result, run_process(process));
  if (!result.ok())
    return Error{Errc::ToolFailed, say("the Python oracle failed: {}", describe_end(result)), ""};
  return result.channel;
}

}  // namespace scankit::validate
