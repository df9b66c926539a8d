// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that stands in for the driver in gpu_guard_test.py and driver_state_test.py: what those call, on the
// host's memory. It is no GPU: all is done at once, whatever the stream. What it does check as a driver would:
// a context on each thread, addresses that are its own, and how much memory there is.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { kInvalid = 1, kNoMemory = 2, kNoContext = 201, kMost = 4096 };
typedef unsigned long long address;

static struct {
  char* begin;
  size_t size;
} blocks[kMost];
static size_t taken, limit = (size_t)1 << 26;
static int broken, waits, primary;
static int init_status, mode, retain_status;
static void* last_stream;
static __thread void* current;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int cuInit(unsigned flags) { return init_status ? init_status : (int)flags; }
static int gpus(void) {
  const char* of_a_child = getenv("SCANKIT_STUB_GPUS");
  return of_a_child ? atoi(of_a_child) : 1;
}
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal >= gpus() ? 101 : 0; }
int cuDeviceGetCount(int* count) { return *count = gpus(), init_status; }
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return *context = &primary, device < gpus() ? retain_status : 101;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return device < gpus() ? 0 : 101; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const char* of_a_child = getenv("SCANKIT_STUB_MODE");
  return *value = attribute != 20 ? 0 : of_a_child ? atoi(of_a_child) : mode, device < gpus() ? 0 : 101;
}
int cuCtxSynchronize(void) { return ++waits, broken ? broken : current ? 0 : kNoContext; }

int cuMemAlloc_v2(address* place, size_t size) {
  if (!current) return kNoContext;
  int status = kNoMemory;
  pthread_mutex_lock(&mutex);
  if (size <= limit - taken)
    for (int i = 0; i < kMost && status != 0; ++i)
      if (!blocks[i].begin) {
        blocks[i].begin = aligned_alloc(512, (size + 511) / 512 * 512);
        blocks[i].size = size, taken += size, status = 0;
        *place = (address)blocks[i].begin;
      }
  pthread_mutex_unlock(&mutex);
  return status;
}

int cuMemFree_v2(address place) {
  int status = current ? kInvalid : kNoContext;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMost && status == kInvalid; ++i)
    if (blocks[i].begin && (address)blocks[i].begin == place) {
      free(blocks[i].begin);
      blocks[i].begin = NULL, taken -= blocks[i].size, status = 0;
    }
  pthread_mutex_unlock(&mutex);
  return status;
}

// Whether all of it lies in one allocation.
static int known(address place, size_t size) {
  int found = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMost && !found; ++i)
    found = blocks[i].begin && place >= (address)blocks[i].begin &&
            place + size <= (address)blocks[i].begin + blocks[i].size;
  pthread_mutex_unlock(&mutex);
  return found;
}
int cuMemsetD8Async(address place, unsigned char value, size_t size, void* stream) {
  if (!current || !known(place, size)) return current ? kInvalid : kNoContext;
  return last_stream = stream, memset((char*)place, value, size), 0;
}
int cuMemcpyDtoH_v2(void* to, address place, size_t size) {
  if (!current || !known(place, size)) return current ? kInvalid : kNoContext;
  return memcpy(to, (const char*)place, size), 0;
}

// For the tests.
void stub_state(int init, int compute_mode, int retain) {
  init_status = init, mode = compute_mode, retain_status = retain;
}
void stub_limit(size_t bytes) { limit = bytes; }
void stub_break(int status) { broken = status; }
size_t stub_taken(void) { return taken; }
int stub_waits(void) { return waits; }
void* stub_last_stream(void) { return last_stream; }
