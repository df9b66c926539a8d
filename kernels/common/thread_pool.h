// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs numbered tasks on all processors that the process may use. The threads are made at the first use,
// and again in a forked child.
namespace scankit {

// OMP_NUM_THREADS if it is a number above 0, else the number of processors in sched_getaffinity(). Read
// again at every call.
int thread_limit();

using Task = void (*)(void* context, int task, int thread);

// Runs task 0 .. count - 1, each once, in any order, on at most `threads` threads, the caller being thread 0;
// returns when all are done. A call from within a task, or while another thread is in here, runs everything
// on the caller.
void run_tasks(int count, int threads, Task task, void* context);

}  // namespace scankit
