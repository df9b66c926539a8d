// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/binding_universal/device_call.h"

#include "kernels/selective_scan/binding_universal/allocate.h"
#include "kernels/selective_scan/cpu/scan.h"
#include "kernels/selective_scan/cuda/launch.h"

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

bool on_cpu(const Call& call, const char* failure) {
  return !failure || refuse_as(PyExc_MemoryError, call, "%s", failure);
}

}  // namespace

DeviceCall::~DeviceCall() {
  if (entered_) device::guard_leave(&guard_);
}

bool DeviceCall::begin(const Call& call, const Tensor& u) {
  u_ = &u;
  if (u.kind == DeviceKind::Cpu) return true;
  device::Message message;
  if (!device::device_prepare(u.device, &facts_, &message)) return refuse(call, "%s", message.text);
  if (!device::guard_enter(u.device, &guard_, &message)) return refuse(call, "%s", message.text);
  entered_ = true;
  return true;
}

bool DeviceCall::launch(const Call& call, device::Plan* plan) {
  Output workspace;  // freed after the launch: torch's allocator reuses it in the stream's order
  if (plan->workspace_bytes && !allocate_bytes(call, *u_, plan->workspace_bytes, &workspace)) return false;
  void* stream = nullptr;
  if (!current_stream(call, u_->device, &stream)) return false;
  device::Message message;
  return device::device_run(plan, u_->device, stream, workspace.tensor.data, &message) ||
         refuse(call, "%s", message.text);
}

bool DeviceCall::run(const Call& call, const selective_scan::Forward& scan) {
  if (u_->kind == DeviceKind::Cpu) return on_cpu(call, cpu_forward(scan));
  device::Message message;
  device::Plan plan = {};
  return plan_forward(scan, facts_, &plan, &message) ? launch(call, &plan) : refuse(call, "%s", message.text);
}

bool DeviceCall::run(const Call& call, const selective_scan::Backward& scan) {
  if (u_->kind == DeviceKind::Cpu) return on_cpu(call, cpu_backward(scan));
  device::Message message;
  device::Plan plan = {};
  return plan_backward(scan, facts_, &plan, &message) ? launch(call, &plan)
                                                      : refuse(call, "%s", message.text);
}

}  // namespace scankit
