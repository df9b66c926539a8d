// SPDX-License-Identifier: Apache-2.0
#include "kernels/causal_conv1d/binding_universal/conv_call.h"

#include "kernels/causal_conv1d/cpu/conv.h"
#include "kernels/causal_conv1d/cuda/launch.h"

// On the CPU the kernel runs here and now; on a GPU a plan is made from the shapes and launched on
// torch's current stream.
namespace scankit {

bool ConvCall::run(const Call& call, const causal_conv1d::Forward& conv) {
  if (on_cpu()) return cpu_done(call, cpu_forward(conv));
  device::Message message;
  device::Plan plan = {};
  return plan_forward(conv, &plan, &message) ? launch(call, &plan) : refuse(call, "%s", message.text);
}

bool ConvCall::run(const Call& call, const causal_conv1d::Backward& conv) {
  if (on_cpu()) return cpu_done(call, cpu_backward(conv));
  device::Message message;
  device::Plan plan = {};
  return plan_backward(conv, &plan, &message) ? launch(call, &plan) : refuse(call, "%s", message.text);
}

bool ConvCall::run(const Call& call, const causal_conv1d::Update& conv) {
  if (on_cpu()) return cpu_done(call, cpu_update(conv));
  device::Message message;
  device::Plan plan = {};
  return plan_update(conv, &plan, &message) ? launch(call, &plan) : refuse(call, "%s", message.text);
}

}  // namespace scankit
