// SPDX-License-Identifier: Apache-2.0
#include "kernels/causal_conv1d/binding_universal/arguments.h"

#include "kernels/causal_conv1d/cpu/conv.h"
#include "kernels/causal_conv1d/cuda/launch.h"

// Reads and checks the arguments that the module's functions share, against the contract of
// causal_conv1d's own module. What the kernels allow beyond it, such as any strides, is accepted.
namespace scankit {
namespace {

using causal_conv1d::DType;

bool read_dtype(const Call& call, const Tensor& t, DType* to) {
  switch (t.element) {
    case Element::Float32:
      *to = DType::F32;
      return true;
    case Element::Float16:
      *to = DType::F16;
      return true;
    case Element::Bfloat16:
      *to = DType::BF16;
      return true;
    default:
      return refuse(call, "%s is %s; float32, float16 and bfloat16 are supported", t.name,
                    element_name(t.element));
  }
}

bool read_x(const Call& call, PyObject* object, ConvInputs* in) {
  causal_conv1d::Common& c = in->common;
  Tensor& x = in->x;
  if (!read_tensor(call, "x", object, &x) || !read_dtype(call, x, &c.dtype)) return false;
  if (!read_sizes(call, x, &c.batch, &c.dim, &c.length)) return false;
  c.x = signal(x);
  return true;
}

// weight may have another dtype than x.
bool read_weight(const Call& call, PyObject* object, ConvInputs* in) {
  causal_conv1d::Common& c = in->common;
  Tensor& weight = in->weight;
  if (!read_tensor(call, "weight", object, &weight) || !read_dtype(call, weight, &c.weight_dtype) ||
      !check_device(call, weight, in->x))
    return false;
  if (weight.dims != 2 || weight.shape[0] != c.dim)
    return refuse(call, "weight has shape %s, expected (%d, width): (dim, width)",
                  shape_text(weight.shape, weight.dims).text, c.dim);
  if (weight.shape[1] < causal_conv1d::kMinWidth || weight.shape[1] > causal_conv1d::kMaxWidth)
    return refuse(call, "weight has width %lld; %d to %d are supported", weight.shape[1],
                  causal_conv1d::kMinWidth, causal_conv1d::kMaxWidth);
  c.width = static_cast<int>(weight.shape[1]);
  c.weight = weight.data;
  c.weight_dim_stride = weight.stride[0];
  c.weight_tap_stride = weight.stride[1];
  return true;
}

bool read_bias(const Call& call, PyObject* object, ConvInputs* in) {
  Tensor& bias = in->bias;
  if (!read_optional(call, "bias", object, &bias)) return false;
  if (!bias) return true;
  const Index shape[] = {in->common.dim};
  if (!check_element(call, bias, in->weight.element, ", the dtype of weight") ||
      !check_device(call, bias, in->x) || !check_shape(call, bias, shape, 1, "(dim,)") ||
      !check_unit_stride(call, bias))
    return false;
  in->common.bias = bias.data;
  return true;
}

}  // namespace

causal_conv1d::Signal signal(const Tensor& t) { return {t.data, t.stride[0], t.stride[1], t.stride[2]}; }
causal_conv1d::SignalOut signal_out(const Tensor& t) {
  return {t.data, t.stride[0], t.stride[1], t.stride[2]};
}

bool read_conv(const Call& call, PyObject* const* x_weight_bias, ConvInputs* in) {
  in->common = {};
  return read_x(call, x_weight_bias[0], in) && read_weight(call, x_weight_bias[1], in) &&
         read_bias(call, x_weight_bias[2], in);
}

bool read_silu(const Call& call, PyObject* silu, ConvInputs* in) {
  const int flag = read_flag(call, "silu_activation", silu);
  in->common.silu = flag == 1;
  return flag >= 0;
}

bool check_signal(const Call& call, const ConvInputs& in, const Tensor& t, int steps) {
  const Index shape[] = {in.common.batch, in.common.dim, steps};
  return check_element(call, t, in.x.element, ", the dtype of x") && check_device(call, t, in.x) &&
         check_shape(call, t, shape, 3,
                     steps == in.common.length ? "(batch, dim, length) as x" : "(batch, dim, width - 1)");
}

// seq_idx is int32 (batch, length), contiguous because the kernels index it without strides.
bool read_history(const Call& call, PyObject* sequence, PyObject* initial, ConvInputs* in) {
  causal_conv1d::Common& c = in->common;
  if (!read_optional(call, "seq_idx", sequence, &in->sequence) ||
      !read_optional(call, "initial_states", initial, &in->initial))
    return false;
  if (in->initial) {
    if (!check_signal(call, *in, in->initial, c.width - 1)) return false;
    c.initial = signal(in->initial);
  }
  if (!in->sequence) return true;
  const Tensor& t = in->sequence;
  const Index shape[] = {c.batch, c.length};
  if (!check_element(call, t, Element::Int32, "") || !check_device(call, t, in->x) ||
      !check_shape(call, t, shape, 2, "(batch, length)"))
    return false;
  if (c.batch > 1 && c.length > 0 && t.stride[0] != c.length)
    return refuse(call, "seq_idx is not contiguous; pass seq_idx.contiguous()");
  if (!check_unit_stride(call, t)) return false;
  c.sequence = static_cast<const int*>(t.data);
  return true;
}

bool read_numbers(const Call& call, const char* name, PyObject* object, const ConvInputs& in, Tensor* t) {
  if (!read_optional(call, name, object, t)) return false;
  if (!*t) return true;
  const Index shape[] = {in.common.batch};
  return check_element(call, *t, Element::Int32, "") && check_device(call, *t, in.x) &&
         check_shape(call, *t, shape, 1, "(batch,)") && check_unit_stride(call, *t);
}

// On the CPU the kernel runs here and now; on a GPU a plan is made from the shapes and launched on
// torch's current stream.

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
