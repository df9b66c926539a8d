// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/device_call.h"

#include "kernels/binding/tensor.h"

namespace scankit {
namespace {

// torch's current stream of the tensor's device.
bool current_stream(const Call& call, int device, void** stream) {
  if (call.torch->dlpack) {
    if (call.torch->dlpack->current_stream(dlpack::kCuda, device, stream) == 0) return true;
    PyErr_Clear();
    return refuse(call, "torch names no current stream of cuda:%d", device);
  }
  if (!call.torch->raw_stream) return refuse(call, "this torch has no CUDA support");
  Ref index(PyLong_FromLong(device));
  Ref handle(index ? PyObject_CallFunctionObjArgs(call.torch->raw_stream, index.get(), nullptr) : nullptr);
  if (!handle) return false;
  *stream = reinterpret_cast<void*>(PyLong_AsUnsignedLongLong(handle.get()));
  return !PyErr_Occurred();
}

}  // namespace

DeviceCall::~DeviceCall() {
  if (entered_) device::guard_leave(&guard_);
}

bool DeviceCall::begin(const Call& call, const Tensor& beside) {
  beside_ = &beside;
  if (on_cpu()) return true;
  device::Message message;
  if (!device::device_prepare(beside.device, &facts_, &message)) return refuse(call, "%s", message.text);
  if (!device::guard_enter(beside.device, &guard_, &message)) return refuse(call, "%s", message.text);
  entered_ = true;
  // As long as torch has not made a context for a device, it only remembers that the device is its current
  // one, and does not see the context that was pushed here.
  call.torch_is_elsewhere = guard_.pushed && current_device(*call.torch) != beside.device;
  return true;
}

bool DeviceCall::launch(const Call& call, device::Plan* plan) {
  Output workspace;  // freed after the launch: torch's allocator reuses it in the stream's order
  if (plan->workspace_bytes && !allocate_bytes(call, *beside_, plan->workspace_bytes, &workspace))
    return false;
  void* stream = nullptr;
  if (!current_stream(call, beside_->device, &stream)) return false;
  device::Message message;
  // Entered again: allocations of torch set their own device and restore the one that torch takes for
  // the previous one.
  device::Guard guard;
  if (!device::guard_enter(beside_->device, &guard, &message)) return refuse(call, "%s", message.text);
  const bool ran = device::device_run(plan, beside_->device, stream, workspace.tensor.data, &message);
  device::guard_leave(&guard);
  return ran || refuse(call, "%s", message.text);
}

bool cpu_done(const Call& call, const char* failure) {
  return !failure || refuse_as(PyExc_MemoryError, call, "%s", failure);
}

}  // namespace scankit
