// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/binding_universal/scan_call.h"

#include "kernels/selective_scan/cpu/scan.h"
#include "kernels/selective_scan/cuda/launch.h"

// On the CPU the kernel runs here and now; on a GPU a plan is made from the shapes and launched on
// torch's current stream.
namespace scankit {

bool ScanCall::run(const Call& call, const selective_scan::Forward& scan) {
  if (on_cpu()) return cpu_done(call, cpu_forward(scan));
  device::Message message;
  device::Plan plan;  // not cleared: its ten launches are eight kilobytes
  return plan_forward(scan, facts(), &plan, &message) ? launch(call, &plan)
                                                      : refuse(call, "%s", message.text);
}

bool ScanCall::run(const Call& call, const selective_scan::Backward& scan) {
  if (on_cpu()) return cpu_done(call, cpu_backward(scan));
  device::Message message;
  device::Plan plan;  // not cleared: its ten launches are eight kilobytes
  return plan_backward(scan, facts(), &plan, &message) ? launch(call, &plan)
                                                       : refuse(call, "%s", message.text);
}

bool ScanCall::run(const Call& call, const selective_scan::Update& step) {
  if (on_cpu()) return cpu_done(call, cpu_update(step));
  device::Message message;
  device::Plan plan = {};
  return plan_update(step, facts(), &plan, &message) ? launch(call, &plan) : refuse(call, "%s", message.text);
}

}  // namespace scankit
