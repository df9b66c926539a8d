// SPDX-License-Identifier: Apache-2.0
#include "validate/run/run.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "validate/cases/data.h"
#include "validate/judge/judge.h"
#include "validate/judge/kernel_use.h"
#include "validate/run/children.h"

namespace scankit::validate {

// The lock for which a child waits before it times anything (harness/timing.py): it is held while another
// child of the same run computes. flock() locks end with the last process that has the open file, however
// that process ends.
class Gate {
 public:
  explicit Gate(std::string path) : path_(std::move(path)) {
    file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    closed_ = file_.get() >= 0 && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
  }
  // Unlocks explicitly: closing the descriptor is not enough, because the process that watches over
  // scankit's children may have inherited it.
  void open() {
    if (closed_.exchange(false)) ::flock(file_.get(), LOCK_UN);
  }
  bool closed() const { return closed_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  std::atomic<bool> closed_{false};
};

// A run of `scankit validate`: the cases by the children of children.h, once more with guard regions on a GPU,
// then what only makes sense when the cases have run, and the verdict.

namespace {

// The cases once more with guard regions around every tensor on the GPU. Its children run on another thread at the
// same time as the main ones where the GPU takes two processes, else after them.
struct GuardedRun {
  Series series;
  std::atomic<std::size_t> done = 0;  // cases; read by the main thread for the progress line
  std::future<void> ended;            // waits for the thread when it is destroyed
};

// What the main series knows of the guarded one.
struct Guarding {
  std::vector<Task> tasks;   // empty: there is no GPU to guard, or nobody asked
  std::optional<Gate> gate;  // closed while both compute: then nothing is timed
  std::unique_ptr<GuardedRun> run;
};

// Cases of the whole run, for the progress line.
struct Counts {
  std::size_t done = 0, planned = 0;
};

bool is_against(const CaseResult& result) { return result.device.ends_with("@against"); }

Validation begun(const ValidateRequest& request) {
  Validation seen;
  seen.python = request.python;
  seen.module = request.module;
  seen.mode = request.mode;
  seen.seed = request.seed;
  seen.deterministic = request.deterministic;
  seen.against = request.against;
  seen.baseline = request.baseline;
  seen.blocked = why_python_does_not_work(request.python);
  return seen;
}

// The job of the next child: what is left, without what an earlier child failed at.
Job main_job(const ValidateRequest& request, const Series& series, const std::optional<Gate>& gate) {
  Job job;
  job.module = request.module;
  job.case_seconds = static_cast<int>(request.each_case.count());
  job.tasks = series.tasks;
  job.seed = request.seed;
  if (request.model && series.model) job.model_devices = request.devices;
  job.upstream_model = request.upstream_model;
  if (series.against) job.against = request.against;
  if (gate && gate->closed()) job.alone = gate->path();
  if (!request.timing || !series.timing) return job;
  job.timed = request.shapes;
  if (job.timed.empty())
    for (const std::string& device : request.devices)
      if (on_cpu(device) || device == first_gpu(request.devices))
        for (const TimedShape& shape : timed_shapes(device, request.mode == "full"))
          job.timed.push_back(shape);
  return job;
}

Job guarded_job(const Session& session, const Series& series) {
  Job job;
  job.module = session.request.module;
  job.case_seconds = static_cast<int>(session.request.each_case.count());
  job.tasks = series.tasks;
  job.seed = session.request.seed;
  job.gpu_bands = session.harness.guard;
  return job;
}

// The harness's own time limit for a phase or case, for the progress line. 0 where it has none: the
// length of a timing depends on what it measures.
std::chrono::seconds limit_of(const ValidateRequest& request, const std::string& what) {
  if (what.empty() || what == "timing") return {};
  return what.starts_with("import ") ? std::chrono::seconds(Job{}.start_seconds) : request.each_case;
}

void tell(const ValidateRequest& request, const Counts& counts, const Guarding& guarding,
          const std::string& what, const std::string& warning) {
  const std::size_t done = counts.done + (guarding.run ? guarding.run->done.load() : 0);
  if (request.progress) request.progress({done, counts.planned, what, warning, limit_of(request, what)});
}

// How many cases the whole run will report: what this child has announced plus what the earlier ones
// reported. Nothing is planned before a child has imported the module, since its functions decide which
// cases there are.
void count_planned(const ChildStory& story, const Series& main, const Guarding& guarding, Counts& counts) {
  if (story.plan.empty()) return;
  counts.planned = main.before_this_child;
  for (const auto& [device, cases] : story.plan) counts.planned += cases;
  if (main.seen.gpu.empty()) return;
  counts.planned += static_cast<std::size_t>(std::ranges::count_if(
      guarding.tasks, [&](const Task& task) { return main.seen.left_out == 0 || !task.what->stateful; }));
}

// Once a case has run it is known whether there is a GPU, and a module.
bool has_to_be_guarded(const Series& main, const Guarding& guarding) {
  return !guarding.tasks.empty() && !main.seen.gpu.empty() && !main.seen.cases.empty() &&
         main.seen.blocked.empty() && main.seen.module_problem == ModuleProblem::None;
}

std::unique_ptr<GuardedRun> guarded_run(const Session& session, const Series& main, Guarding& guarding) {
  if (main.seen.left_out > 0)  // functions that the module does not have
    std::erase_if(guarding.tasks, [](const Task& task) { return task.what->stateful; });
  auto run = std::make_unique<GuardedRun>();
  run->series.tasks = guarding.tasks;
  run->series.guarded = true;
  run->series.finished = guarding.tasks.empty();
  run->series.seen.module = session.request.module;
  return run;
}

void run_guarded(const Session& session, GuardedRun& run, const std::function<void()>& on_news) {
  run_children(
      session, run.series, [&](const Series& series) { return guarded_job(session, series); },
      [&](const ChildStory&) {
        run.done = run.series.seen.cases.size();
        if (on_news) on_news();
      });
}

// Called for every line of a main child. Starts the guarded children as soon as the first case has shown
// that there is a GPU and a working module. While they run the gate is closed, and the main child does
// what is not timed.
void begin_guarded(const Session& session, const Series& main, Guarding& guarding) {
  if (!guarding.gate || !guarding.gate->closed() || main.seen.cases.empty() || guarding.run) return;
  if (!has_to_be_guarded(main, guarding) || !main.seen.gpu_shared) return guarding.gate->open();
  guarding.run = guarded_run(session, main, guarding);
  guarding.run->ended = std::async(std::launch::async, [&session, &guarding] {
    run_guarded(session, *guarding.run, {});
    guarding.gate->open();
  });
}

// Adds the results of the guarded series. Its notes are mostly those of the main one again.
void take_over(Series& main, Series& guarded) {
  Validation& seen = main.seen;
  Validation& other = guarded.seen;
  std::ranges::move(other.cases, std::back_inserter(seen.cases));
  std::ranges::move(other.refused, std::back_inserter(seen.refused));
  for (const std::string& note : other.notes)
    if (std::ranges::find(seen.notes, note) == seen.notes.end()) seen.notes.push_back(note);
  if (seen.blocked.empty()) seen.blocked = other.blocked;
  if (seen.gpu_problem.empty()) seen.gpu_problem = other.gpu_problem;
  if (seen.module_problem == ModuleProblem::None) {
    seen.module_problem = other.module_problem;
    seen.module_message = other.module_message;
  }
  main.tasks.insert(main.tasks.end(), guarded.tasks.begin(), guarded.tasks.end());
}

// Waits for the guarded children, or runs them now if they could not run at the same time (the GPU takes one
// process, or its memory was full).
void end_guarded(const Session& session, Series& main, Guarding& guarding, const Counts& counts) {
  if (guarding.run) guarding.run->ended.get();
  if (guarding.run && guarding.run->series.seen.gpu_problem.empty())
    return take_over(main, guarding.run->series);
  if (!has_to_be_guarded(main, guarding)) return;
  guarding.run = guarded_run(session, main, guarding);
  run_guarded(session, *guarding.run, [&] { tell(session.request, counts, guarding, "", ""); });
  take_over(main, guarding.run->series);
}

// All cases, by both series.
Series run_cases(const Session& session) {
  const ValidateRequest& request = session.request;
  Series main;
  main.tasks = tasks_of(request);
  main.seen = begun(request);
  Guarding guarding{banded_tasks_of(request), std::nullopt, nullptr};
  if (!guarding.tasks.empty())
    guarding.gate.emplace(path_join(path_dirname(session.harness.script), "timing.lock"));
  Counts counts;
  bool compared_devices = request.baseline.empty();
  const auto on_news = [&](const ChildStory& story) {
    counts.done = main.seen.cases.size();
    count_planned(story, main, guarding, counts);
    begin_guarded(session, main, guarding);
    if (story.greeted && !compared_devices) {
      compared_devices = true;
      const std::string why = baseline_device_problem(main.seen, request.devices, request.baseline_text);
      if (!why.empty()) tell(request, counts, guarding, story.started, why);
    }
    tell(request, counts, guarding, story.started, "");
  };
  run_children(
      session, main, [&](const Series& series) { return main_job(request, series, guarding.gate); }, on_news);
  end_guarded(session, main, guarding, counts);
  return main;
}

// What was never started counts as not run, so that the verdict cannot be Passed.
void leave_out_the_rest(const std::vector<Task>& tasks, Validation& seen) {
  if (seen.cases.empty()) return;
  for (const Task& task : tasks) {
    if (is_absent(task.device, seen)) continue;
    CaseResult result;
    result.id = task.what->id;
    result.device = task.device;
    result.reasons = {say("not run")};
    seen.cases.push_back(std::move(result));
  }
}

// What only makes sense once the cases have run: compute-sanitizer, the kernels' use of the GPU, upstream's tests.
void look_further(const Session& session, Validation& seen) {
  const ValidateRequest& request = session.request;
  if (!seen.blocked.empty()) return;
  const bool gpu = !seen.gpu.empty() && !first_gpu(request.devices).empty();
  if (request.mode == "full" && gpu && !seen.cases.empty())
    run_sanitizer(request, session.harness.script, seen);
  if (gpu && seen.blocked.empty()) look_at_kernels(request, session.harness, seen);
  if (request.upstream_tests.empty() || !seen.blocked.empty()) return;
  const std::chrono::duration<double> left = session.deadline - Clock::now();
  run_upstream_tests(request, session.harness, std::max(left.count(), 1.0), seen);
}

void explain_nothing_run(Validation& seen) {
  if (!seen.cases.empty() || !seen.blocked.empty()) return;
  if (seen.module_problem == ModuleProblem::NotFound) {
    seen.blocked = seen.module_message;
  } else if (!seen.refused.empty()) {
    seen.blocked = say("the module accepts tensors of no device on this machine");
  }
}

// The verdict comes last, when all results are judged and those of the other module are separated.
Validation validated(const Session& session) {
  const ValidateRequest& request = session.request;
  const auto start = Clock::now();
  Series series = run_cases(session);
  Validation& seen = series.seen;
  leave_out_the_rest(series.tasks, seen);
  for (CaseResult& result : seen.cases)
    if (result.state == CaseState::Failed) judge_case(result, request.deterministic);
  look_further(session, seen);
  if (seen.blocked.empty()) seen.blocked = seen.gpu_problem;
  std::ranges::copy_if(seen.cases, std::back_inserter(seen.against_cases), is_against);
  std::erase_if(seen.cases, is_against);
  explain_nothing_run(seen);
  if (!request.baseline.empty()) compare_with_baseline(seen, request.baseline_text);
  if (const std::string changes = clock_changes(seen.timings); !changes.empty())
    seen.notes.push_back(changes);
  seen.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  seen.verdict = judge(seen);
  return std::move(seen);
}

// With "cuda", which stands for every GPU, by the name of each; at least one, so that its absence is told. A child
// without torch counts them, since the cases are made before the first import of torch.
std::vector<std::string> each_device(const ValidateRequest& request, const Harness& harness) {
  std::vector<std::string> devices;
  for (const std::string& device : request.devices) {
    if (device != "cuda") {
      devices.push_back(device);
      continue;
    }
    Job job;
    job.mode = "devices";
    ProcessRequest process = python_request(request.python, {harness.script}, std::chrono::seconds(60));
    process.standard_input = job_text(job);
    ChildStory story;
    Validation heard;
    if (const auto result = run_process(process)) take_lines(result->channel, heard, story);
    for (int gpu = 0; gpu < std::max(story.gpus, 1); ++gpu) devices.push_back("cuda:" + std::to_string(gpu));
  }
  return devices;
}

}  // namespace

Result<Validation> run_validation(const ValidateRequest& asked) {
  SCANKIT_TRY(const auto directory, TemporaryDirectory::create("scankit-validate"));
  SCANKIT_TRY(const Harness harness, write_harness(directory.path()));
  ValidateRequest request = asked;
  request.devices = each_device(asked, harness);
  return validated({request, harness, Clock::now() + request.total});
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
    return Error{Errc::ToolFailed, message("the Python oracle failed: {}", describe_end(result)), ""};
  return result.channel;
}

}  // namespace scankit::validate
