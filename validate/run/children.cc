// SPDX-License-Identifier: Apache-2.0
#include "validate/run/children.h"

#include <algorithm>
#include <set>
#include <utility>

#include "doctor/base/say.h"
#include "validate/cases/data.h"

namespace scankit::validate {
namespace {

constexpr int kCrashesInARow = 5;  // each costs an import of torch; then the module has said enough

// How the child that died came to its end.
struct LostChild {
  const ChildStory& story;
  const ProcessResult& result;
  bool hung = false;  // the harness's own watchdog ended it
  std::string how;    // in one clause
};

// The phases of the harness's start in the user's language; anything else is the id of a case.
std::string phase_in_words(const std::string& what) {
  if (what.empty()) return say("start");
  if (what == "import torch") return say("import torch");
  return what == "import module" ? say("import module") : what;
}

// The watchdog prints the stack before it ends the process, so that the place is known.
LostChild lost_child(const Session& session, const ChildStory& story, const ProcessResult& result) {
  LostChild lost{story, result, ended_by_watchdog(result), {}};
  if (!lost.hung || result.timed_out) {
    lost.how = describe_end(result);
    return lost;
  }
  const auto seconds = session.request.each_case.count();
  const std::string where = where_it_was(result);
  lost.how = where.empty() ? say("the process hung and was stopped after {} s", seconds)
                           : say("the process hung and was stopped after {} s at {}", seconds, where);
  return lost;
}

CaseResult lost_case(const LostChild& lost) {
  CaseResult result;
  result.id = lost.story.started;
  result.device = lost.story.device;
  result.state = lost.hung ? CaseState::Hung : CaseState::Crashed;
  result.reasons = {lost.how};
  return result;
}

void without_against(Series& series) {
  series.against = false;
  std::erase_if(series.tasks, [](const Task& task) { return task.device.ends_with("@against"); });
  series.finished = series.tasks.empty();
}

// The child was in none of the tasks: at its start, or between two cases.
void blame_the_start(const Session& session, const LostChild& lost, Series& series) {
  const ChildStory& story = lost.story;
  if (series.guarded && story.cases_done == 0) {
    series.seen.notes.push_back(say("writes next to a result on the GPU are not detected: {}", lost.how));
    series.tasks.clear();
    series.finished = true;
    return;
  }
  if (story.cases_done > 0) return;  // left on purpose between two cases (a broken CUDA context)
  if (story.started == "import module" && story.device == "@against") {
    series.seen.against_problem = say("importing {}: {}", session.request.against, lost.how);
    without_against(series);
  } else if (story.started == "import module") {
    series.seen.module_problem = ModuleProblem::ImportFailed;
    series.seen.module_message = say("importing {}: {}", session.request.module, lost.how);
    series.finished = true;
  } else {
    series.seen.blocked = say("before the first case ({}) {}", phase_in_words(story.started), lost.how);
  }
}

// Finds out what a lost child was doing, blames that, and removes it from what the next child gets: a timing, the
// model, the import of a module, or one case. Many lost children in a row end the run.
void blame(const Session& session, const LostChild& lost, Series& series) {
  const ChildStory& story = lost.story;
  if (story.started == "timing") {
    series.seen.notes.push_back(say("no timing on {}: {}", story.device, describe_end(lost.result)));
    series.timing = false;
    series.finished = series.tasks.empty();
    return;
  }
  if (story.started.starts_with("model-")) {
    series.seen.cases.push_back(lost_case(lost));
    series.model = false;
    return;
  }
  const auto task = std::ranges::find_if(
      series.tasks, [&](const Task& t) { return t.what->id == story.started && t.device == story.device; });
  if (task == series.tasks.end()) return blame_the_start(session, lost, series);
  CaseResult result = lost_case(lost);
  if (lost.result.timed_out) result.state = CaseState::NotRun;
  series.seen.cases.push_back(std::move(result));
  series.tasks.erase(task);
  series.lost_in_a_row = story.cases_done > 0 ? 1 : series.lost_in_a_row + 1;
  if (series.lost_in_a_row >= kCrashesInARow)
    series.seen.blocked = say("stopped after {} lost processes in a row", series.lost_in_a_row);
}

// Removes what has a result. A device whose tensors the module refuses needs no further tasks.
void forget_done_tasks(Series& series) {
  std::set<std::pair<std::string, std::string>> done;
  for (const CaseResult& result : series.seen.cases) done.emplace(result.id, result.device);
  std::erase_if(series.tasks, [&](const Task& task) {
    const auto is_refused = [&](const auto& refused) { return refused.first == task.device; };
    return done.contains({task.what->id, task.device}) ||
           std::ranges::any_of(series.seen.refused, is_refused);
  });
}

// Without a GPU its tasks are dropped, with a note. Under --device cuda that leaves the run incomplete.
void drop_absent_devices(const Session& session, Series& series) {
  Validation& seen = series.seen;
  if (!seen.gpu.empty()) return;
  const auto dropped = std::erase_if(series.tasks, [](const Task& task) { return !on_cpu(task.device); });
  if (dropped == 0 || !seen.gpu_problem.empty()) return;
  if (session.request.require_cuda)
    seen.blocked = say("torch finds no CUDA device");
  else
    seen.notes.push_back(say("torch finds no CUDA device: only the CPU was validated"));
}

// Starts one child and waits for its end, then decides what is left to do.
void run_child(const Session& session, Series& series, const MakeJob& job, const OnNews& on_news) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(session.deadline - Clock::now());
  if (left.count() <= 0) {
    series.seen.blocked = say("stopped after {} s (--timeout)", session.request.total.count());
    return;
  }
  ChildStory story;
  std::string partial;  // the line of the channel that is not complete yet
  series.before_this_child = series.seen.cases.size();
  ProcessRequest process = python_request(session.request.python, {session.harness.script}, left);
  preload(process, session.harness.guard);
  process.standard_input = job_text(job(series));
  process.on_channel = [&](std::string_view piece) {
    partial += piece;
    const auto end = partial.rfind('\n');
    if (end != std::string::npos) {
      take_lines(std::string_view(partial).substr(0, end + 1), series.seen, story);
      partial.erase(0, end + 1);
    }
    on_news(story);
  };
  const auto result = run_process(process);
  if (!result) {
    series.seen.blocked = tr(result.error().message);
    return;
  }
  if (series.seen.left_out > 0)  // functions that the module does not have
    std::erase_if(series.tasks, [](const Task& task) { return task.what->stateful; });
  forget_done_tasks(series);
  if (story.without_bands) series.tasks.clear();
  if (story.ended) {
    drop_absent_devices(session, series);
    series.finished = true;
  } else {
    blame(session, lost_child(session, story, *result), series);
  }
}

}  // namespace

void run_children(const Session& session, Series& series, const MakeJob& job, const OnNews& on_news) {
  while (series.seen.blocked.empty() && !series.finished) run_child(session, series, job, on_news);
}

}  // namespace scankit::validate
