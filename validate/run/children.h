// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <vector>

#include "validate/run/child.h"
#include "validate/run/protocol.h"
#include "validate/run/run.h"

// The cases of a run, worked through by a series of children. Each child gets all tasks that are left and works
// until it dies or is done, because importing torch takes seconds: a child for each case would be too slow, and one
// child for all would lose everything with the first crash.
namespace scankit::validate {

using Clock = std::chrono::steady_clock;

// What all children of a run share.
struct Session {
  const ValidateRequest& request;
  const Harness& harness;
  Clock::time_point deadline;  // of the whole run
};

// One series of children: what is left to do, what was seen, and what lost children taught about the next one.
struct Series {
  std::vector<Task> tasks;  // that no child has finished
  Validation seen;
  bool guarded = false;  // the children have guard regions around every tensor on the GPU
  bool finished = false;
  bool timing = true, against = true, model = true;  // still asked for: no child was lost over it
  int lost_in_a_row = 0;
  std::size_t before_this_child = 0;  // results of earlier children
};

using MakeJob = std::function<Job(const Series&)>;
// Called for each piece of a child's channel, on the thread that runs the series.
using OnNews = std::function<void(const ChildStory&)>;

// Starts children until nothing is left to do or `seen.blocked` says why no more are started.
void run_children(const Session& session, Series& series, const MakeJob& job, const OnNews& on_news);

}  // namespace scankit::validate
