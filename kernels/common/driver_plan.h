// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

// Launches as data. A kernel's planner fills a Plan from parameters and DeviceFacts; whoever owns a stream
// runs it: device_run (driver_context.h) through the driver API, the torch binding through its own.
namespace scankit::device {

// The explanation of a failed call: one line for the user.
struct Message {
  char text[512];
  Message() { text[0] = '\0'; }  // not all of it: every call has one
};

struct DeviceFacts {
  int capability;  // 90 for sm_90
  int multiprocessors;
  int shared_per_block;           // the opt-in maximum, bytes
  int shared_per_multiprocessor;  // bytes
};

// Where a kernel is found: the compile unit (an image's name) and its symbol in it.
struct KernelName {
  const char* unit;
  const char* symbol;
};

inline constexpr int kMaxLaunches = 10, kMaxPlaces = 6;
inline constexpr size_t kArgumentCapacity = 768;

// One kernel launch. The kernel takes one structure by value, `argument_bytes` of `argument`. Its first eight
// bytes are the workspace pointer: set_workspace fills them once the memory is known.
struct Launch {
  int kernel;  // index into the module's KernelName table
  unsigned grid_x, grid_y = 1, block_x, shared_bytes;
  // May begin while the launch before it ends, where the device can do that: its kernel waits for that one
  // itself (next_launch.cuh). Never the first of a plan, which must wait for what is not the plan's.
  bool follows = false;
  unsigned argument_bytes;
  alignas(16) unsigned char argument[kArgumentCapacity];
};

// A pointer in a launch's argument, `at` bytes from its begin, that is to point into the workspace.
struct WorkspacePlace {
  int launch;
  unsigned at;
  size_t offset;
};

// Launches of one stream, in order. Zero launches is a valid plan: nothing to do.
struct Plan {
  int launch_count;
  Launch launches[kMaxLaunches];
  size_t workspace_bytes;  // device memory, 256-byte aligned, contents undefined before and after; 0: none
  int place_count = 0;     // of the next one
  WorkspacePlace places[kMaxPlaces];
};

// A plan of nothing. Its launches stay as they are: eight kilobytes that nobody reads.
inline void clear(Plan* plan) {
  plan->launch_count = 0;
  plan->workspace_bytes = 0;
  plan->place_count = 0;
}

// Before each run, with the run's own workspace, workspace_bytes long; may be called again.
inline void set_workspace(Plan& plan, void* workspace) {
  if (plan.workspace_bytes == 0)
    workspace = nullptr;  // kernels may be told addresses in place of offsets then
  for (int i = 0; i < plan.launch_count; ++i)
    __builtin_memcpy(plan.launches[i].argument, &workspace, sizeof workspace);
  for (int i = 0; i < plan.place_count; ++i) {
    const WorkspacePlace& place = plan.places[i];
    void* pointer = static_cast<char*>(workspace) + place.offset;
    __builtin_memcpy(plan.launches[place.launch].argument + place.at, &pointer, sizeof pointer);
  }
}

}  // namespace scankit::device
