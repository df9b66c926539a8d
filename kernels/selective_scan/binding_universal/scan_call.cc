// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/binding_universal/scan_call.h"

#include "kernels/selective_scan/cpu/scan.h"
#include "kernels/selective_scan/cuda/launch.h"

namespace scankit {
namespace {

// What the plans of a device do not do yet.
bool check_planned(const Call& call, const selective_scan::Common& c, bool last_state) {
  if (!c.initial_state.data && !c.packed.cu_seqlens && !last_state) return true;
  return refuse(call, "takes tensors on the CPU only so far; the device's kernels know no %s",
                c.packed.cu_seqlens ? "packed sequences" : "initial or last state");
}

}  // namespace

bool ScanCall::run(const Call& call, const selective_scan::Forward& scan) {
  if (on_cpu()) return cpu_done(call, cpu_forward(scan));
  if (!check_planned(call, scan.common, scan.last_state)) return false;
  device::Message message;
  device::Plan plan = {};
  return plan_forward(scan, facts(), &plan, &message) ? launch(call, &plan)
                                                      : refuse(call, "%s", message.text);
}

bool ScanCall::run(const Call& call, const selective_scan::Backward& scan) {
  if (on_cpu()) return cpu_done(call, cpu_backward(scan));
  if (!check_planned(call, scan.common, scan.dlast_state.data || scan.dinitial_state)) return false;
  device::Message message;
  device::Plan plan = {};
  return plan_backward(scan, facts(), &plan, &message) ? launch(call, &plan)
                                                       : refuse(call, "%s", message.text);
}

bool ScanCall::run(const Call& call, const selective_scan::Update& step) {
  if (on_cpu()) return cpu_done(call, cpu_update(step));
  return refuse(call, "takes tensors on the CPU only so far; the device's kernels know no single step");
}

}  // namespace scankit
