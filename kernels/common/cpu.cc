// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/cpu.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace scankit {
namespace {

#ifdef __x86_64__

// Register state that the system saves: a processor may have AVX under a system that does not.
unsigned enabled_state() {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// By Intel's rules for detecting AVX: the CPU must have the instructions, and the system must save the
// registers (OSXSAVE, then XCR0).
CpuLevel find_cpu_level() {
  constexpr unsigned kAvxState = 0x6,
                     kAvx512State = 0xe6;  // XCR0: SSE and AVX; opmask and both upper ZMM parts too
  constexpr unsigned kFirst = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
  constexpr unsigned kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kFirst) != kFirst) return CpuLevel::Portable;
  const unsigned state = enabled_state();
  if ((state & kAvxState) != kAvxState) return CpuLevel::Portable;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return CpuLevel::Portable;
  return (b & kAvx512) == kAvx512 && (state & kAvx512State) == kAvx512State ? CpuLevel::Avx512
                                                                            : CpuLevel::Avx2;
}

#else

// aarch64: NEON is part of every processor.
CpuLevel find_cpu_level() { return CpuLevel::Portable; }

#endif

}  // namespace

// The result is kept: in a virtual machine each cpuid is a trap, and the five of them take longer than
// a small scan.
CpuLevel cpu_level() {
  static int found = -1;  // atomic; threads that come first together find the same
  int level = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (level < 0) {
    level = static_cast<int>(find_cpu_level());
    __atomic_store_n(&found, level, __ATOMIC_RELAXED);
  }
  return static_cast<CpuLevel>(level);
}

const char* cpu_level_name(CpuLevel level) {
  switch (level) {
    case CpuLevel::Avx512:
      return "avx512";
    case CpuLevel::Avx2:
      return "avx2";
    case CpuLevel::Portable:
      break;
  }
#ifdef __aarch64__
  return "neon";
#else
  return "portable";
#endif
}

CpuLevel chosen_cpu_level() {
  const CpuLevel best = cpu_level(), lesser[] = {CpuLevel::Portable, CpuLevel::Avx2};
  const char* wanted = getenv("SCANKIT_CPU_ISA");
  for (const CpuLevel level : lesser)
    if (wanted && level < best && strcmp(wanted, cpu_level_name(level)) == 0) return level;
  return best;
}

// A pool of detached threads that sleep between jobs. One job runs at a time; its tasks are distributed by
// an atomic counter, and every worker that was asked to take part must report back before the job ends.
// Plain pthreads, because libstdc++ and OpenMP's runtime would be further libraries to load.
namespace {

constexpr int kMaxThreads = 256;

struct Pool {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
  pid_t owner = 0;
  int workers = 0;        // threads made, thread i + 1 for worker i
  unsigned long job = 0;  // changes with each job
  int wanted = 0;         // workers that may take part in it
  int running = 0;        // of those, how many have not finished
  Task task = nullptr;
  void* context = nullptr;
  int count = 0;
  int next = 0;  // atomic
};
Pool pool;
pid_t busy = 0;  // atomic: the process of which a thread is in run_tasks; 0: none is

void take_tasks(Task task, void* context, int count, int thread) {
  for (;;) {
    const int mine = __atomic_fetch_add(&pool.next, 1, __ATOMIC_RELAXED);
    if (mine >= count) return;
    task(context, mine, thread);
  }
}

// A worker's loop. It takes part in a job only if its number is below pool.wanted, and leaves the pool's
// fields alone while it runs tasks, except for the counter.
void* work(void* argument) {
  const int worker = (int)(long)argument;
  unsigned long seen = 0;
  pthread_mutex_lock(&pool.mutex);
  for (;;) {
    while (pool.job == seen || worker >= pool.wanted) {
      seen = pool.job;
      pthread_cond_wait(&pool.work, &pool.mutex);
    }
    seen = pool.job;
    const Task task = pool.task;
    void* const context = pool.context;
    const int count = pool.count;
    pthread_mutex_unlock(&pool.mutex);
    take_tasks(task, context, count, worker + 1);
    pthread_mutex_lock(&pool.mutex);
    if (--pool.running == 0) pthread_cond_signal(&pool.done);
  }
}

// Makes threads up to `wanted`, or fewer if the system gives no more. All signals are blocked in them:
// Python handles signals in its main thread.
void make_workers(int wanted) {
  if (pool.workers >= wanted) return;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  while (pool.workers < wanted && pthread_create(&thread, &attributes, work, (void*)(long)pool.workers) == 0)
    ++pool.workers;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

void run_on_pool(int count, int threads, Task task, void* context) {
  // A forked child has a copy of the parent's memory, but none of its threads, and perhaps a mutex that
  // one of them had locked. So the child begins with a new pool.
  const pid_t self = getpid();
  if (pool.owner != self) {
    pool = Pool{};
    pool.owner = self;
  }
  pthread_mutex_lock(&pool.mutex);
  make_workers(threads - 1);
  pool.wanted = pool.running = threads - 1 < pool.workers ? threads - 1 : pool.workers;
  pool.task = task;
  pool.context = context;
  pool.count = count;
  pool.next = 0;
  ++pool.job;
  pthread_cond_broadcast(&pool.work);
  pthread_mutex_unlock(&pool.mutex);
  take_tasks(task, context, count, 0);
  pthread_mutex_lock(&pool.mutex);
  while (pool.running > 0) pthread_cond_wait(&pool.done, &pool.mutex);
  pthread_mutex_unlock(&pool.mutex);
}

}  // namespace

int thread_limit() {
  // OMP_NUM_THREADS may be a list ("4,2"): the first number counts. Not strtol(): compiled against glibc
  // 2.38 or newer it would be a symbol of that version (__isoc23_strtol).
  int asked = 0;
  const char* digit = getenv("OMP_NUM_THREADS");
  for (; digit && *digit >= '0' && *digit <= '9' && asked < kMaxThreads; ++digit)
    asked = asked * 10 + (*digit - '0');
  if (asked > 0) return asked < kMaxThreads ? asked : kMaxThreads;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;  // over 1024 processors: the kernel's mask is longer
  const int allowed = CPU_COUNT(&set);
  return allowed < 1 ? 1 : allowed < kMaxThreads ? allowed : kMaxThreads;
}

// Whoever finds the pool busy runs its tasks on its own thread: waiting could deadlock if a task
// itself calls this.
void run_tasks(int count, int threads, Task task, void* context) {
  if (threads > count) threads = count;
  if (threads > kMaxThreads) threads = kMaxThreads;
  const pid_t self = getpid();
  pid_t holder = __atomic_load_n(&busy, __ATOMIC_RELAXED);
  // Of another process: this one was forked while a thread that is not in it was in here.
  if (threads > 1 && holder != self &&
      __atomic_compare_exchange_n(&busy, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    run_on_pool(count, threads, task, context);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    return;
  }
  for (int i = 0; i < count; ++i) task(context, i, 0);
}

}  // namespace scankit
