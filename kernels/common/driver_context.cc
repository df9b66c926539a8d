// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/driver_context.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/common/threads.h"

// Finds the driver's functions with dlsym(). The names are those that cuda.h maps to with its macros: the
// current version of a function often has a suffix ("_v2").
namespace scankit::device {
namespace {

template <class Function>
bool find(void* library, const char* name, Function* function) {
  void* address = dlsym(library, name);
  memcpy(function, &address, sizeof address);
  return address != nullptr;
}

// Returns the first name that the library lacks, or null. Without the suffix, push and pop would be the
// functions of CUDA 3.
const char* find_all(void* library, DriverApi* api) {
#define SCANKIT_FIND(member, name) \
  if (!find(library, name, &api->member)) return name
  SCANKIT_FIND(init, "cuInit");
  SCANKIT_FIND(driver_version, "cuDriverGetVersion");
  SCANKIT_FIND(device_get, "cuDeviceGet");
  SCANKIT_FIND(device_attribute, "cuDeviceGetAttribute");
  SCANKIT_FIND(primary_retain, "cuDevicePrimaryCtxRetain");
  SCANKIT_FIND(context_device, "cuCtxGetDevice");
  SCANKIT_FIND(context_push, "cuCtxPushCurrent_v2");
  SCANKIT_FIND(context_pop, "cuCtxPopCurrent_v2");
  SCANKIT_FIND(module_load, "cuModuleLoadData");
  SCANKIT_FIND(module_function, "cuModuleGetFunction");
  SCANKIT_FIND(function_read, "cuFuncGetAttribute");
  SCANKIT_FIND(function_attribute, "cuFuncSetAttribute");
  SCANKIT_FIND(launch, "cuLaunchKernel");
  SCANKIT_FIND(error_name, "cuGetErrorName");
  SCANKIT_FIND(error_string, "cuGetErrorString");
#undef SCANKIT_FIND
  find(library, "cuLaunchKernelEx", &api->launch_with);
  if (!find(library, "cuLibraryLoadData", &api->library_load) ||
      !find(library, "cuLibraryGetKernel", &api->library_kernel) ||
      !find(library, "cuKernelGetFunction", &api->kernel_function))
    api->library_load = nullptr;
  return nullptr;
}

DriverApi g_functions;
bool g_found = false;
pid_t g_finding = 0;  // ProcessLock's

}  // namespace

// A failure is not remembered, so that a later call tries again.
const DriverApi* driver_api(Message* message) {
  const ProcessLock lock(&g_finding);
  if (g_found) return &g_functions;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    snprintf(message->text, sizeof message->text,
             "cannot load the NVIDIA driver (%s): a CUDA tensor needs libcuda.so.1; run scankit doctor",
             why != nullptr ? why : "dlopen gave no reason");
    return nullptr;
  }
  if (const char* missing = find_all(library, &g_functions)) {
    snprintf(message->text, sizeof message->text,
             "the NVIDIA driver's libcuda.so.1 lacks %s: update the driver", missing);
    dlclose(library);
    return nullptr;
  }
  g_found = true;
  return &g_functions;
}

bool driver_failed(const DriverApi& api, CudaResult result, const char* what, Message* message) {
  const char *name = nullptr, *text = nullptr;
  if (api.error_name(result, &name) != 0 || name == nullptr) name = "unknown error";
  if (api.error_string(result, &text) != 0 || text == nullptr) text = "the driver gives no text";
  snprintf(message->text, sizeof message->text, "%s: %s (%d): %s", what, name, result, text);
  return false;
}

// The state of each device in this process. Everything that takes long happens once, in device_prepare():
// later calls look up a flag. Nothing is ever released.

namespace {

constexpr int kMostDevices = 64;

struct State {
  bool ready;  // atomic: what is below does not change any more
  CudaDevice device;
  CudaHandle context;
  CudaHandle* functions;  // one per kernel of the table
  DeviceFacts facts;
  int oldest_image;  // the least architecture of those that were loaded; 0: none
  bool overlaps;     // may_overlap()
};

int g_image_fd = -1;
const KernelName* g_kernels = nullptr;
int g_kernel_count = 0;
const DriverApi* g_api = nullptr;
pid_t g_process = 0;  // that initialised the driver; 0: none has
// 1 in the process that initialized the driver, and 0 in every process that was forked from it: the kernel
// clears the page in the child (madvise(2), MADV_WIPEONFORK, Linux 4.14). Null where that is not
// available. getpid() instead would cost a tiny call 0.13 us.
const volatile int* g_not_forked = nullptr;
State g_states[kMostDevices];
pid_t g_preparing = 0;  // ProcessLock's

void watch_for_fork() {
  __atomic_store_n(&g_process, getpid(), __ATOMIC_RELAXED);
#ifdef MADV_WIPEONFORK
  const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
    munmap(page, bytes);
    return;
  }
  *static_cast<int*>(page) = 1;
  __atomic_store_n(&g_not_forked, static_cast<int*>(page), __ATOMIC_RELEASE);
#endif
}

bool is_forked() {
  if (const volatile int* page = __atomic_load_n(&g_not_forked, __ATOMIC_ACQUIRE)) return *page == 0;
  const pid_t process = __atomic_load_n(&g_process, __ATOMIC_RELAXED);
  return process != 0 && process != getpid();
}

// Loads one image and looks up the unit's kernels in it. The driver copies what it needs, so that the
// image's memory can be freed.
CudaResult load_kernels(const DriverApi& api, const void* image, const char* unit, CudaHandle* functions) {
  CudaHandle holder = nullptr;
  // A wrong image is reported by the first look-up, not by cuLibraryLoadData.
  CudaResult result = api.library_load != nullptr
                          ? api.library_load(&holder, image, nullptr, nullptr, 0, nullptr, nullptr, 0)
                          : api.module_load(&holder, image);
  for (int i = 0; i < g_kernel_count && result == 0; ++i) {
    if (strcmp(g_kernels[i].unit, unit) != 0) continue;
    if (api.library_load == nullptr) {
      result = api.module_function(&functions[i], holder, g_kernels[i].symbol);
      continue;
    }
    CudaHandle kernel = nullptr;
    result = api.library_kernel(&kernel, holder, g_kernels[i].symbol);
    if (result == 0) result = api.kernel_function(&functions[i], kernel);
  }
  return result;
}

// Tries the unit's images from the best to the worst, until one loads.
bool load_unit(const DriverApi& api, const ImageIndex& index, const char* unit, State& state,
               Message* message) {
  for (int rank = 0;; ++rank) {
    const ImageEntry* entry = select_image(index, unit, state.facts.capability, rank);
    if (entry == nullptr) {
      if (rank > 0) return false;  // the message is the last candidate's
      return no_image(index, unit, state.facts.capability, message);
    }
    void* image = read_image(g_image_fd, *entry, message);
    if (image == nullptr) return false;
    const CudaResult result = load_kernels(api, image, unit, state.functions);
    free(image);
    if (result == 0) {
      const int sm = static_cast<int>(entry->sm);
      if (state.oldest_image == 0 || sm < state.oldest_image) state.oldest_image = sm;
      return true;
    }
    char what[128];
    snprintf(what, sizeof what, "cannot load the device image %s (%s %u)", unit,
             entry->kind == kImagePtx ? "PTX, compute" : "sm", entry->sm);
    driver_failed(api, result, what, message);
    // PTX of a newer toolkit than the driver knows: an older one may still do.
    if (entry->kind == kImagePtx && result != kCudaUnsupportedPtx) return false;
  }
}

// Loads all units at once instead of each at its first launch, because loading waits until the
// GPU is idle.
bool load_units(const DriverApi& api, State& state, Message* message) {
  ImageIndex index;
  if (!read_image_index(g_image_fd, &index, message)) return false;
  bool ok = true;
  for (int i = 0; i < g_kernel_count && ok; ++i) {
    bool first = true;
    for (int before = 0; before < i && first; ++before)
      first = strcmp(g_kernels[before].unit, g_kernels[i].unit) != 0;
    if (first) ok = load_unit(api, index, g_kernels[i].unit, state, message);
  }
  release_index(&index);
  for (int i = 0; i < g_kernel_count && ok; ++i) {
    // What a kernel declares itself counts against the same limit: more than the rest is an invalid value.
    int declared = 0;
    CudaResult result = api.function_read(&declared, kFunctionStaticShared, state.functions[i]);
    if (result == 0)
      result = api.function_attribute(state.functions[i], kFunctionMaxDynamicShared,
                                      state.facts.shared_per_block - declared);
    if (result != 0) ok = driver_failed(api, result, "cannot raise a kernel's shared memory limit", message);
  }
  return ok;
}

bool read_facts(const DriverApi& api, State* state, Message* message) {
  int major = 0, minor = 0;
  const struct {
    int attribute;
    int* value;
  } wanted[] = {{kAttributeMajor, &major},
                {kAttributeMinor, &minor},
                {kAttributeMultiprocessors, &state->facts.multiprocessors},
                {kAttributeSharedPerBlockOptin, &state->facts.shared_per_block},
                {kAttributeSharedPerMultiprocessor, &state->facts.shared_per_multiprocessor}};
  for (const auto& want : wanted) {
    const CudaResult result = api.device_attribute(want.value, want.attribute, state->device);
    if (result != 0) return driver_failed(api, result, "cannot read the GPU's properties", message);
  }
  state->facts.capability = major * 10 + minor;
  return true;
}

// May fail halfway and be called again: what was reached before is kept.
bool initialize(int device, State* state, Message* message) {
  const DriverApi* api = driver_api(message);
  if (api == nullptr) return false;
  CudaResult result = api->init(0);
  if (result == kCudaNotInitialized) {
    snprintf(message->text, sizeof message->text,
             "CUDA cannot be used in a process forked after CUDA was initialised: start it with the 'spawn' "
             "method");
    return false;
  }
  if (result != 0) return driver_failed(*api, result, "cannot initialise CUDA", message);
  if (g_api != api) g_api = api;  // read without a lock where a device is ready
  if (g_process == 0) watch_for_fork();
  if ((result = api->device_get(&state->device, device)) != 0)
    return driver_failed(*api, result, "no such CUDA device", message);
  if (!read_facts(*api, state, message)) return false;
  if (state->context == nullptr && (result = api->primary_retain(&state->context, state->device)) != 0)
    return driver_failed(*api, result, "cannot get the GPU's primary context", message);
  if (state->functions == nullptr)
    state->functions =
        static_cast<CudaHandle*>(calloc(static_cast<size_t>(g_kernel_count) + 1, sizeof(CudaHandle)));
  if (state->functions == nullptr) {
    snprintf(message->text, sizeof message->text, "no memory for the table of device kernels");
    return false;
  }
  if ((result = api->context_push(state->context)) != 0)
    return driver_failed(*api, result, "cannot enter the GPU's primary context", message);
  const bool ok = load_units(*api, *state, message);
  int version = 0;  // stays 0 where the driver does not say it: nothing overlaps then
  api->driver_version(&version);
  state->overlaps = may_overlap(api->launch_with != nullptr, version, state->oldest_image);
  CudaHandle popped = nullptr;
  api->context_pop(&popped);
  return ok;
}

}  // namespace

void device_register(int image_fd, const KernelName* kernels, int kernel_count) {
  g_image_fd = image_fd;
  g_kernels = kernels;
  g_kernel_count = kernel_count;
}

bool device_prepare(int device, DeviceFacts* facts, Message* message) {
  if (is_forked()) {
    snprintf(message->text, sizeof message->text,
             "CUDA was initialised in process %d, from which this one was forked, and cannot be used here: "
             "start it "
             "with the 'spawn' or 'forkserver' method",
             static_cast<int>(g_process));
    return false;
  }
  if (device < 0 || device >= kMostDevices) {
    snprintf(message->text, sizeof message->text, "CUDA device %d is outside 0 .. %d", device,
             kMostDevices - 1);
    return false;
  }
  State& state = g_states[device];
  if (!__atomic_load_n(&state.ready, __ATOMIC_ACQUIRE)) {
    const ProcessLock lock(&g_preparing);
    if (!state.ready) {
      if (!initialize(device, &state, message)) return false;
      __atomic_store_n(&state.ready, true, __ATOMIC_RELEASE);
    }
  }
  *facts = state.facts;
  return true;
}

bool guard_enter(int device, Guard* guard, Message* message) {
  // Compares devices, not context handles: a green context of the same device stays current.
  CudaDevice current = -1;
  const State& state = g_states[device];
  guard->pushed = g_api->context_device(&current) != 0 || current != state.device;
  if (!guard->pushed) return true;
  const CudaResult result = g_api->context_push(state.context);
  if (result == 0) return true;
  guard->pushed = false;
  return driver_failed(*g_api, result, "cannot enter the GPU's primary context", message);
}

void guard_leave(Guard* guard) {
  CudaHandle popped = nullptr;
  if (guard->pushed) g_api->context_pop(&popped);
  guard->pushed = false;
}

namespace {

CudaResult run_launch(const State& state, Launch& launch, CudaHandle stream) {
  void* parameters[] = {launch.argument};
  const CudaHandle function = state.functions[launch.kernel];
  if (!launch.follows || !state.overlaps)
    return g_api->launch(function, launch.grid_x, launch.grid_y, 1, launch.block_x, 1, 1, launch.shared_bytes,
                         stream, parameters, nullptr);
  LaunchAttribute overlap = {6, {}};
  overlap.value.allowed = 1;
  const LaunchConfig config = {launch.grid_x, launch.grid_y, 1, launch.block_x, 1, 1, launch.shared_bytes,
                               stream,        &overlap,      1};
  return g_api->launch_with(&config, function, parameters, nullptr);
}

}  // namespace

bool device_run(Plan* plan, int device, void* stream, void* workspace, Message* message) {
  set_workspace(*plan, workspace);
  for (int i = 0; i < plan->launch_count; ++i) {
    Launch& launch = plan->launches[i];
    const CudaResult result = run_launch(g_states[device], launch, static_cast<CudaHandle>(stream));
    if (result == 0) continue;
    char what[128];
    snprintf(what, sizeof what, "cannot launch %s (%u blocks of %u)", g_kernels[launch.kernel].symbol,
             launch.grid_x, launch.block_x);
    return driver_failed(*g_api, result, what, message);
  }
  return true;
}

}  // namespace scankit::device
