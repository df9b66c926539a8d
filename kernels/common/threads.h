// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

// What several threads share where no GIL keeps them apart. Nothing here waits for Python: a thread that does
// so with a lock in its hand can be waited for by a collection that stops all threads.
namespace scankit {

// A value that is found once and never changes. Threads that come first together may all find it; the first
// to say so wins, and the others' copies are freed.
template <class T>
class FoundOnce {
 public:
  // Null: not found yet.
  const T* get() const { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
  // What all threads see from now on; null where memory ran out.
  const T* keep(const T& value) {
    T* mine = static_cast<T*>(malloc(sizeof(T)));
    if (!mine) return nullptr;
    *mine = value;
    T* before = nullptr;
    if (__atomic_compare_exchange_n(&value_, &before, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return mine;
    free(mine);
    return before;
  }

 private:
  T* value_ = nullptr;
};

// Holds `flag`, if no other thread does: for a cache, which is skipped where it is in use.
class TryLock {
 public:
  explicit TryLock(int* flag) : flag_(flag), held_(__atomic_exchange_n(flag, 1, __ATOMIC_ACQUIRE) == 0) {}
  ~TryLock() {
    if (held_) __atomic_store_n(flag_, 0, __ATOMIC_RELEASE);
  }
  TryLock(const TryLock&) = delete;
  TryLock& operator=(const TryLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  int* flag_;
  bool held_;
};

// Waits until no other thread of this process has `owner`, which is the process that holds it, or 0. A child
// that was forked while a thread held it takes it over: that thread is not in the child.
class ProcessLock {
 public:
  explicit ProcessLock(pid_t* owner) : owner_(owner) {
    const pid_t self = getpid();
    pid_t holder = 0;
    while (!__atomic_compare_exchange_n(owner_, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      if (holder != self) continue;  // free or a parent's: taken over in the next turn
      holder = 0;
      sched_yield();
    }
  }
  ~ProcessLock() { __atomic_store_n(owner_, 0, __ATOMIC_RELEASE); }
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

 private:
  pid_t* owner_;
};

}  // namespace scankit
