// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processor: its vector instructions, and threads that share work.
//
// Which vector instructions processor and system offer, by cpuid and xgetbv. __builtin_cpu_supports()
// would need libgcc's __cpu_model, which does not link everywhere (zig, -nostdlib).
namespace scankit {

enum class CpuLevel : int {
  Portable = 0,  // what every processor has: SSE2 on x86-64, NEON on aarch64
  Avx2 = 1,
  Avx512 = 2
};  // Avx2: with FMA and F16C; Avx512: F, BW, DQ, VL

CpuLevel cpu_level();
// The same, or the lesser one that the environment variable SCANKIT_CPU_ISA names; read at every call.
CpuLevel chosen_cpu_level();
const char* cpu_level_name(CpuLevel level);  // "avx512", "avx2", "portable"; on aarch64 "neon"

// Numbered tasks run on all processors that the process may use. The threads are made at the first use, and
// again in a forked child.

// OMP_NUM_THREADS if it is a number above 0, else the number of processors in sched_getaffinity(). Read
// again at every call.
int thread_limit();

using Task = void (*)(void* context, int task, int thread);

// Runs task 0 .. count - 1, each once, in any order, on at most `threads` threads, the caller being thread 0;
// returns when all are done. A call from within a task, or while another thread is in here, runs everything
// on the caller.
void run_tasks(int count, int threads, Task task, void* context);

}  // namespace scankit
