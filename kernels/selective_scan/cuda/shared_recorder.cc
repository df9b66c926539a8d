// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/shared_recorder.h"

#include <cstdint>
#include <map>
#include <tuple>

namespace scankit::selective_scan {
namespace {

// A thread's way through the code since the last barrier.
struct Thread {
  std::vector<std::uintptr_t> calls;  // the way to where it is
  unsigned barriers = 0;
  std::map<std::uintptr_t, unsigned> times;  // by place, since the last barrier
};
// What tells one instruction of a warp from another: lanes with the same key took part in one.
struct Key {
  unsigned warp, barriers, times;
  std::uintptr_t place;
  unsigned bytes;
  auto tied() const { return std::tie(warp, barriers, place, times, bytes); }
  bool operator<(const Key& other) const { return tied() < other.tied(); }
};

std::uintptr_t first = 0, count = 0;
int (*running)() = nullptr;
std::vector<Thread> threads;
std::map<Key, std::vector<LaneAccess>> requests;
bool inside = false;  // what is called from here may itself be compiled to call us

Thread* thread() {
  const int number = running();
  const auto index = static_cast<std::size_t>(number);
  if (number < 0) return nullptr;
  if (index >= threads.size()) threads.resize(index + 1);
  return &threads[index];
}

std::uintptr_t mixed(std::uintptr_t seed, std::uintptr_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15u + (seed >> 29);
}

// One access of the running thread, by the instruction at `code`. Those outside shared memory are
// not counted.
void access(const void* pointer, std::size_t bytes, const void* code) {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  if (inside || count == 0 || at < first || at - first >= count) return;
  inside = true;
  if (Thread* const mine = thread()) {
    std::uintptr_t place = reinterpret_cast<std::uintptr_t>(code);
    for (const std::uintptr_t call : mine->calls) place = mixed(place, call);
    const auto index = static_cast<unsigned>(running()), size = static_cast<unsigned>(bytes);
    requests[{index / 32, mine->barriers, mine->times[place]++, place, size}].push_back(
        {index % 32, static_cast<unsigned>(at - first)});
  }
  inside = false;
}

}  // namespace

void record_shared(const void* begin, std::size_t bytes, int (*thread_of)()) {
  first = reinterpret_cast<std::uintptr_t>(begin), count = bytes, running = thread_of;
  threads.clear();
  requests.clear();
}

void record_barrier() {
  if (count == 0) return;
  inside = true;
  if (Thread* const mine = thread()) {
    ++mine->barriers;
    mine->times.clear();
  }
  inside = false;
}

Recorded recorded() {
  Recorded sum;
  for (const auto& [key, lanes] : requests) {
    const Wavefronts one = wavefronts_of(lanes, key.bytes);
    ++sum.requests;
    sum.wavefronts.least += one.least;
    sum.wavefronts.needed += one.needed;
  }
  count = 0;
  return sum;
}

}  // namespace scankit::selective_scan

// What the compiler calls.
using scankit::selective_scan::access;
// NOLINTBEGIN(bugprone-reserved-identifier): the compiler's names.
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void* call) {
  using namespace scankit::selective_scan;
  if (inside || count == 0) return;
  inside = true;
  if (auto* const mine = thread()) mine->calls.push_back(reinterpret_cast<std::uintptr_t>(call));
  inside = false;
}
void __tsan_func_exit() {
  using namespace scankit::selective_scan;
  if (inside || count == 0) return;
  inside = true;
  auto* const mine = thread();
  if (mine != nullptr && !mine->calls.empty()) mine->calls.pop_back();
  inside = false;
}
#define SCANKIT_ACCESS(name, bytes)                                                       \
  void __tsan_##name##bytes(void* at) { access(at, bytes, __builtin_return_address(0)); } \
  void __tsan_unaligned_##name##bytes(void* at) { access(at, bytes, __builtin_return_address(0)); }
#define SCANKIT_ACCESSES(name) \
  SCANKIT_ACCESS(name, 1)      \
  SCANKIT_ACCESS(name, 2)      \
  SCANKIT_ACCESS(name, 4) SCANKIT_ACCESS(name, 8) SCANKIT_ACCESS(name, 16)
SCANKIT_ACCESSES(read)
SCANKIT_ACCESSES(write)
void __tsan_read_range(void* at, std::size_t bytes) { access(at, bytes, __builtin_return_address(0)); }
void __tsan_write_range(void* at, std::size_t bytes) { access(at, bytes, __builtin_return_address(0)); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
unsigned char __tsan_atomic8_load(const volatile unsigned char* at, int) { return *at; }
}
// NOLINTEND(bugprone-reserved-identifier)
