// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <sstream>
#include <thread>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "kernels/common/driver_context.h"
#include "kernels/common/image_file_test.h"
#include "kernels/selective_scan/cuda/check.h"
#include "kernels/selective_scan/cuda/launch.h"

namespace scankit::selective_scan {
namespace {

using device::CudaHandle;
using device::CudaResult;
using DevicePointer = unsigned long long;

struct Extra {
  CudaResult (*allocate)(DevicePointer*, std::size_t);
  CudaResult (*release)(DevicePointer);
  CudaResult (*fill)(DevicePointer, unsigned char, std::size_t);
  CudaResult (*to_device)(DevicePointer, const void*, std::size_t);
  CudaResult (*to_host)(void*, DevicePointer, std::size_t);
  CudaResult (*synchronize)();
  CudaResult (*event_create)(CudaHandle*, unsigned);
  CudaResult (*event_record)(CudaHandle, CudaHandle);
  CudaResult (*event_elapsed)(float*, CudaHandle, CudaHandle);
  CudaResult (*event_destroy)(CudaHandle);
  CudaResult (*device_name)(char*, int, device::CudaDevice);
  CudaResult (*memory)(std::size_t*, std::size_t*);
};
Extra g_extra;
const device::DriverApi* g_api = nullptr;

void must(CudaResult result, const char* what) {
  if (result == 0) return;
  device::Message message;
  device::driver_failed(*g_api, result, what, &message);
  std::fprintf(stderr, "%s\n", message.text);
  std::exit(1);
}
DevicePointer as_device(const void* p) { return reinterpret_cast<DevicePointer>(p); }

template <class Function>
bool find(void* library, const char* name, Function* function) {
  void* address = dlsym(library, name);
  std::memcpy(function, &address, sizeof address);
  return address != nullptr;
}
bool find_extra() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return library != nullptr && find(library, "cuMemAlloc_v2", &g_extra.allocate) &&
         find(library, "cuMemFree_v2", &g_extra.release) && find(library, "cuMemsetD8_v2", &g_extra.fill) &&
         find(library, "cuMemcpyHtoD_v2", &g_extra.to_device) &&
         find(library, "cuMemcpyDtoH_v2", &g_extra.to_host) &&
         find(library, "cuCtxSynchronize", &g_extra.synchronize) &&
         find(library, "cuEventCreate", &g_extra.event_create) &&
         find(library, "cuEventRecord", &g_extra.event_record) &&
         find(library, "cuEventElapsedTime", &g_extra.event_elapsed) &&
         find(library, "cuEventDestroy_v2", &g_extra.event_destroy) &&
         find(library, "cuDeviceGetName", &g_extra.device_name) &&
         find(library, "cuMemGetInfo_v2", &g_extra.memory);
}

struct Unit {
  std::string name, defines;
};
Result<std::vector<Unit>> read_units(const std::string& path, const std::string& more) {
  const auto text = read_whole_file(path);
  if (!text)
    return Error{Errc::InvalidArgument, text.error().message, ""};  // NotFound is kept for the compiler
  std::vector<Unit> units;
  const std::regex line("UNIT\\(([a-z0-9_]+), \"([^\"]*)\"\\)");
  for (std::sregex_iterator it(text->begin(), text->end(), line), end; it != end; ++it)
    units.push_back({(*it)[1], std::string((*it)[2]) + " " + more});
  return units;
}

Result<void> compile(const Unit& unit, const std::string& source, const std::string& folder, int capability) {
  ProcessRequest request;
  // PATH, or where the toolkit's own installer puts it.
  request.argv = {access("/usr/local/cuda/bin/nvcc", X_OK) == 0 ? "/usr/local/cuda/bin/nvcc" : "nvcc",
                  "-std=c++20", "-cubin", "-arch=sm_" + std::to_string(capability)};
  std::istringstream words(unit.defines);
  for (std::string word; words >> word;) request.argv.push_back(word);
  request.argv.insert(request.argv.end(), {"-o", path_join(folder, unit.name + ".cubin"), source});
  request.timeout = std::chrono::minutes(5);
  SCANKIT_TRY(const ProcessResult result, run_process(request));
  if (!result.ok())
    return Error{Errc::ToolFailed, "nvcc failed on unit " + unit.name + ": " + result.err, ""};
  return {};
}

Result<void> compile_all(const std::vector<Unit>& units, const std::string& source, const std::string& folder,
                         int capability) {
  std::vector<Result<void>> results(units.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < units.size(); ++i)
    threads.emplace_back([&, i] { results[i] = compile(units[i], source, folder, capability); });
  for (std::thread& thread : threads) thread.join();
  for (const Result<void>& result : results) SCANKIT_CHECK(result);
  return {};
}

}  // namespace

Result<Gpu> Gpu::open() {
  device::Message message;
  g_api = device::driver_api(&message);
  if (g_api == nullptr) return Error{Errc::NotFound, message.text, ""};
  Gpu gpu;
  device::CudaDevice handle = 0;
  CudaHandle context = nullptr;
  int major = 0, minor = 0;
  const CudaResult result = g_api->init(0);
  if (result != 0 || g_api->device_get(&handle, 0) != 0) {
    device::driver_failed(*g_api, result, "no CUDA device", &message);
    return Error{Errc::NotFound, message.text, ""};
  }
  must(g_api->device_attribute(&major, device::kAttributeMajor, handle), "compute capability");
  must(g_api->device_attribute(&minor, device::kAttributeMinor, handle), "compute capability");
  must(g_api->primary_retain(&context, handle), "primary context");
  must(g_api->context_push(context), "primary context");
  if (!find_extra()) return Error{Errc::NotFound, "libcuda.so.1 lacks a function that the check needs", ""};
  gpu.capability_ = major * 10 + minor;
  return gpu;
}

std::string Gpu::name() const {
  char text[256] = "";
  must(g_extra.device_name(text, sizeof text - 1, 0), "the device's name");
  return text;
}
long long Gpu::free_bytes() const {
  std::size_t free = 0, total = 0;
  must(g_extra.memory(&free, &total), "free memory");
  return static_cast<long long>(free);
}

void* Gpu::allocate(std::size_t bytes) {
  DevicePointer memory = 0;
  must(g_extra.allocate(&memory, bytes > 0 ? bytes : 1), "device memory");
  return reinterpret_cast<void*>(memory);
}
void Gpu::release(void* memory) { must(g_extra.release(as_device(memory)), "release"); }
void Gpu::fill(void* memory, unsigned char value, std::size_t bytes) {
  if (bytes > 0) must(g_extra.fill(as_device(memory), value, bytes), "fill");
}
void Gpu::to_device(void* device, const void* host, std::size_t bytes) {
  if (bytes > 0) must(g_extra.to_device(as_device(device), host, bytes), "copy to the device");
}
void Gpu::to_host(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) must(g_extra.to_host(host, as_device(device), bytes), "copy from the device");
}

void Gpu::run(device::Plan& plan) {
  device::Message message;
  void* workspace = allocate(plan.workspace_bytes);
  fill(workspace, 0xff, plan.workspace_bytes);  // NaN: nothing may rely on what the memory held
  if (!device::device_run(&plan, 0, nullptr, workspace, &message)) {
    std::fprintf(stderr, "%s\n", message.text);
    std::exit(1);
  }
  must(g_extra.synchronize(), "running the plan");
  release(workspace);
}

std::vector<float> Gpu::time(device::Plan& plan, void* workspace, int warm, int runs) {
  device::Message message;
  std::vector<float> times;
  CudaHandle begin = nullptr, end = nullptr;
  must(g_extra.event_create(&begin, 0), "event");
  must(g_extra.event_create(&end, 0), "event");
  for (int i = 0; i < warm + runs; ++i) {
    must(g_extra.event_record(begin, nullptr), "event");
    if (!device::device_run(&plan, 0, nullptr, workspace, &message)) must(1, message.text);
    must(g_extra.event_record(end, nullptr), "event");
    must(g_extra.synchronize(), "running the plan");
    float milliseconds = 0;
    must(g_extra.event_elapsed(&milliseconds, begin, end), "event");
    if (i >= warm) times.push_back(milliseconds);
  }
  must(g_extra.event_destroy(begin), "event");
  must(g_extra.event_destroy(end), "event");
  return times;
}

Result<void> compile_units(const std::string& source, const std::string& units_file,
                           const std::string& folder, int capability, const std::string& more) {
  SCANKIT_TRY(const std::vector<Unit> units, read_units(units_file, more));
  return compile_all(units, source, folder, capability);
}

Result<void> load_units(const std::string& source, const std::string& units_file, const std::string& cubins,
                        int capability, const std::string& more) {
  SCANKIT_TRY(const std::vector<Unit> units, read_units(units_file, more));
  SCANKIT_TRY(const TemporaryDirectory folder, TemporaryDirectory::create("scankit-device-check"));
  const std::string from = cubins.empty() ? folder.path() : cubins;
  if (cubins.empty()) SCANKIT_CHECK(compile_all(units, source, from, capability));
  std::vector<TestImage> images;
  for (const Unit& unit : units) {
    auto cubin = read_whole_file(path_join(from, unit.name + ".cubin"));
    if (cubin) {
      images.push_back(
          {device::kImageCubin, static_cast<unsigned>(capability), unit.name, *std::move(cubin)});
      continue;
    }
    SCANKIT_TRY(std::string ptx, read_whole_file(path_join(from, unit.name + ".ptx")));
    images.push_back(
        {device::kImagePtx, 50, unit.name, std::move(ptx)});  // the driver checks the real target
  }
  const std::string file = path_join(folder.path(), "module");
  SCANKIT_CHECK(write_file_atomically(file, image_file(images)));
  // Kept open by the loader; the name may go.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error{Errc::Io, "cannot open " + file, ""};
  device::device_register(fd, kCudaKernels, kCudaKernelCount);
  device::DeviceFacts facts;
  device::Message message;
  if (!device::device_prepare(0, &facts, &message)) return Error{Errc::ToolFailed, message.text, ""};
  return {};
}

}  // namespace scankit::selective_scan
