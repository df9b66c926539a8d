// SPDX-License-Identifier: Apache-2.0
// What calls share, from many threads at once under ThreadSanitizer: the pool of the CPU's threads, the caches
// of launch choices, and common/threads.h. No Python: an interpreter that was not built for the sanitizer hides
// from it what orders its threads.
#include "kernels/common/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernels/common/cpu.h"
#include "kernels/selective_scan/cuda/choice.h"

namespace scankit {
namespace {

constexpr int kThreads = 8, kRounds = 300, kTasks = 37;

pthread_barrier_t together;
int failures = 0;  // atomic

void expect(bool right, const char* what) {
  if (right) return;
  __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
  fprintf(stderr, "FAILED: %s\n", what);
}

// Every task once, whoever has the pool.
void run_each_task_once() {
  int counts[kTasks] = {};
  run_tasks(
      kTasks, 4,
      [](void* context, int task, int) {
        __atomic_fetch_add(static_cast<int*>(context) + task, 1, __ATOMIC_RELAXED);
      },
      counts);
  for (const int count : counts) expect(count == 1, "a task ran once");
}

selective_scan::Common problem(int number) {
  selective_scan::Common c = {};
  c.batch = 1 + number % 3;
  c.dim = 64 * (1 + number % 5);
  c.groups = 1;
  c.states = 16;
  c.length = 128 << number % 4;
  return c;
}

// The choice that a cache gives is that which was made without one.
void choose_the_same(int number) {
  const device::DeviceFacts facts = {90, 132, 232448, 233472};
  const selective_scan::Common common = problem(number);
  selective_scan::Choice cached = {}, alone = {};
  expect(selective_scan::choose_forward(common, facts, &cached, true) &&
             selective_scan::choose_forward_by(selective_scan::kForwardMeasured, common, facts, &alone),
         "a forward variant is there");
  expect(memcmp(&cached, &alone, sizeof cached) == 0, "the forward choice is the same");
  expect(selective_scan::choose_backward(common, facts, &cached, true) &&
             selective_scan::choose_backward_by(selective_scan::kBackwardMeasured, common, facts, &alone),
         "a backward variant is there");
  expect(memcmp(&cached, &alone, sizeof cached) == 0, "the backward choice is the same");
}

FoundOnce<int> found;
pid_t owner = 0;  // ProcessLock's
int guarded = 0;  // by it

void* work(void* argument) {
  const int mine = *static_cast<int*>(argument);
  pthread_barrier_wait(&together);
  const int* first = found.keep(mine);
  for (int i = 0; i < kRounds; ++i) {
    expect(found.get() == first, "what was found first stays");
    run_each_task_once();
    choose_the_same(mine + i);
    const ProcessLock lock(&owner);
    ++guarded;
  }
  return nullptr;
}

int run() {
  pthread_t threads[kThreads];
  int numbers[kThreads];
  pthread_barrier_init(&together, nullptr, kThreads);
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    if (pthread_create(&threads[i], nullptr, work, &numbers[i]) != 0) return 2;
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  expect(guarded == kThreads * kRounds, "the lock lets one in at a time");
  printf("%d threads, %d rounds: %d failures\n", kThreads, kRounds, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace scankit

int main() { return scankit::run(); }
