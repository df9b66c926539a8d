// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/binding_universal/arguments.h"

#include <limits.h>

#include "kernels/binding/tensor.h"
#include "kernels/selective_scan/cpu/scan.h"
#include "kernels/selective_scan/cuda/launch.h"

// Reads and checks the arguments of fwd and bwd against the contract of upstream's module (mamba_ssm's
// csrc/selective_scan). Where the kernels can do more, such as strides, more is accepted.
namespace scankit {
namespace {

bool check_u(const Call& call, const Tensor& u, selective_scan::Common* c) {
  if (!read_dtype(call, u, &c->dtype)) return false;
  return read_sizes(call, u, &c->batch, &c->dim, &c->length) && check_unit_stride(call, u);
}

// (dim, states) of float32 or complex64, with strides in float32 numbers. The pointer is never null, even
// for an empty tensor, since null would mean that the matrix is absent.
selective_scan::Matrix matrix(const Tensor& t) {
  static const float kNothing = 0;
  const int parts = t.element == Element::Complex64 ? 2 : 1;
  return {t.data ? static_cast<const float*>(t.data) : &kNothing, t.stride[0] * parts, t.stride[1] * parts};
}

bool check_A(const Call& call, const Inputs& in, selective_scan::Common* c) {
  const Tensor& A = in.A;
  if (A.element != Element::Complex64 && A.element != Element::Float32)
    return refuse(call, "A is %s, expected float32 or complex64", element_name(A.element));
  if (!check_device(call, A, in.u)) return false;
  c->complex = A.element == Element::Complex64;
  if (A.dims != 2 || A.shape[0] != c->dim)
    return refuse(call, "A has shape %s, expected (%d, states): (dim, states)",
                  shape_text(A.shape, A.dims).text, c->dim);
  if (A.shape[1] < 1 || A.shape[1] > selective_scan::kMaxStates)
    return refuse(call, "A has %lld states; 1 to %d are supported", A.shape[1], selective_scan::kMaxStates);
  c->states = static_cast<int>(A.shape[1]);
  const selective_scan::Matrix rates = matrix(A);
  c->A = rates.data;
  c->A_dim_stride = rates.dim_stride;
  c->A_state_stride = rates.state_stride;
  return true;
}

bool check_constant(const Call& call, const Inputs& in, const Tensor& t, selective_scan::Matrix* to) {
  const Index shape[] = {in.common.dim, in.common.states};
  if (!check_element(call, t, in.A.element, ", the dtype of A, since it is constant") ||
      !check_device(call, t, in.u) || !check_shape(call, t, shape, 2, "(dim, states) where constant"))
    return false;
  *to = matrix(t);
  return true;
}

// B or C that varies with the step: four dimensions, of u's dtype.
bool check_variable(const Call& call, const Inputs& in, const Tensor& t, selective_scan::Projection* to) {
  const selective_scan::Common& c = in.common;
  if (!check_element(call, t, in.u.element, ", the dtype of u") || !check_device(call, t, in.u)) return false;
  const Index shape[] = {c.batch, c.groups, c.states, c.length * Index{parts_of(c)}};
  const char* meaning = in.B.dims == 2 ? "(batch, 1, states, length); with a constant B there is one group"
                        : c.complex    ? "(batch, groups, states, 2 length), real and imaginary parts in turn"
                                       : "(batch, groups, states, length)";
  if (!check_shape(call, t, shape, 4, meaning) || !check_unit_stride(call, t)) return false;
  *to = {t.data, t.stride[0], t.stride[1], t.stride[2]};
  return true;
}

bool check_projection(const Call& call, const Inputs& in, const Tensor& t,
                      selective_scan::Projection* variable, selective_scan::Matrix* constant) {
  return t.dims == 2 ? check_constant(call, in, t, constant) : check_variable(call, in, t, variable);
}

// The number of groups is B's; a constant B has one.
bool check_groups(const Call& call, const Inputs& in, selective_scan::Common* c) {
  c->groups = in.B.dims == 4 && in.B.shape[1] <= INT_MAX ? static_cast<int>(in.B.shape[1]) : 1;
  if (c->groups < 1 || c->dim % c->groups != 0)
    return refuse(call, "B has %d groups, which do not divide the %d channels of u", c->groups, c->dim);
  return true;
}

// D or delta_bias: (dim), float32.
bool check_channels(const Call& call, const Inputs& in, const Tensor& t, const float** to) {
  if (!t) return true;
  const Index shape[] = {in.common.dim};
  if (!check_element(call, t, Element::Float32, "") || !check_device(call, t, in.u)) return false;
  if (!check_shape(call, t, shape, 1, "(dim,)") || !check_unit_stride(call, t)) return false;
  *to = static_cast<const float*>(t.data);
  return true;
}

}  // namespace

bool read_dtype(const Call& call, const Tensor& t, selective_scan::DType* dtype) {
  using selective_scan::DType;
  switch (t.element) {
    case Element::Float32:
      *dtype = DType::F32;
      return true;
    case Element::Float16:
      *dtype = DType::F16;
      return true;
    case Element::Bfloat16:
      *dtype = DType::BF16;
      return true;
    default:
      return refuse(call, "%s is %s; float32, float16 and bfloat16 are supported", t.name,
                    element_name(t.element));
  }
}

bool check_sequence(const Call& call, const Inputs& in, const Tensor& t) {
  const Index shape[] = {in.common.batch, in.common.dim, in.common.length};
  return check_element(call, t, in.u.element, ", the dtype of u") && check_device(call, t, in.u) &&
         check_shape(call, t, shape, 3, "(batch, dim, length) as u") && check_unit_stride(call, t);
}

selective_scan::Sequence sequence(const Tensor& t) { return {t.data, t.stride[0], t.stride[1]}; }
selective_scan::SequenceOut sequence_out(const Tensor& t) { return {t.data, t.stride[0], t.stride[1]}; }
selective_scan::SavedStates saved_states(const Tensor& x) {
  const int parts = x.element == Element::Complex64 ? 2 : 1;  // of the strides, which count numbers
  return {static_cast<float*>(x.data), x.stride[0] * parts, x.stride[1] * parts, x.stride[2] * parts};
}

// The order of the checks matters: u gives batch, dim and length, A the states, B the groups, and later
// checks rely on them.
bool read_inputs(const Call& call, PyObject* const* arguments, PyObject* softplus, Inputs* in) {
  const struct {
    const char* name;
    Tensor* tensor;
    bool optional;
  } each[] = {{"u", &in->u, false}, {"delta", &in->delta, false},
              {"A", &in->A, false}, {"B", &in->B, false},
              {"C", &in->C, false}, {"D", &in->D, true},
              {"z", &in->z, true},  {"delta_bias", &in->delta_bias, true}};
  for (int i = 0; i < 8; ++i)
    if (!(each[i].optional ? read_optional : read_tensor)(call, each[i].name, arguments[i], each[i].tensor))
      return false;
  const int flag = read_flag(call, "delta_softplus", softplus);
  if (flag < 0) return false;
  selective_scan::Common& c = in->common;
  c = {};
  c.softplus = flag == 1;
  if (!check_u(call, in->u, &c) || !check_sequence(call, *in, in->delta)) return false;
  if (!check_A(call, *in, &c) || !check_groups(call, *in, &c)) return false;
  if (!check_projection(call, *in, in->B, &c.B, &c.constant_B) ||
      !check_projection(call, *in, in->C, &c.C, &c.constant_C))
    return false;
  if (!check_channels(call, *in, in->D, &c.D) || !check_channels(call, *in, in->delta_bias, &c.delta_bias))
    return false;
  if (in->z && !check_sequence(call, *in, in->z)) return false;
  c.u = sequence(in->u);
  c.delta = sequence(in->delta);
  if (in->z) c.z = sequence(in->z);
  return true;
}

// Initial states and packed sequences, which upstream's two functions do not take.

namespace {

using selective_scan::Common;

// Checks the values of cu_seqlens on the CPU. On a device that would have to wait for it; the kernels keep
// what they read within the row instead.
bool check_bounds(const Call& call, const Tensor& t, const Common& c) {
  const int* bounds = static_cast<const int*>(t.data);
  const Index sequences = t.shape[0] - 1;
  if (bounds[0] != 0) return refuse(call, "cu_seqlens begins with %d, expected 0", bounds[0]);
  for (Index s = 0; s < sequences; ++s)
    if (bounds[s + 1] < bounds[s])
      return refuse(call,
                    "cu_seqlens falls from %d to %d at entry %lld; it contains where each sequence begins, "
                    "and the end of the last one",
                    bounds[s], bounds[s + 1], s + 1);
  return bounds[sequences] == c.length ||
         refuse(call, "cu_seqlens ends with %d, expected %d, the length of u", bounds[sequences], c.length);
}

}  // namespace

// The number of tasks, sequences times dim, must fit into an int.
bool check_packed(const Call& call, const Tensor& t, const Inputs& in, Common* c) {
  if (!check_element(call, t, Element::Int32, "") || !check_device(call, t, in.u)) return false;
  if (t.dims != 1 || t.shape[0] < 1)
    return refuse(call, "cu_seqlens has shape %s, expected (sequences + 1,)",
                  shape_text(t.shape, t.dims).text);
  if (!check_unit_stride(call, t)) return false;
  if (c->batch != 1)
    return refuse(call, "u has a batch of %d, expected 1: with cu_seqlens all sequences are in one row",
                  c->batch);
  const Index sequences = t.shape[0] - 1;
  if (sequences == 0 && c->length > 0)
    return refuse(call, "cu_seqlens has one entry, so it names no sequence, but u has %d steps", c->length);
  if (sequences > INT_MAX / (c->dim > 0 ? c->dim : 1) || sequences > INT_MAX / 2)
    return refuse(call, "cu_seqlens names %lld sequences, more than is supported", sequences);
  if (t.kind == DeviceKind::Cpu && !check_bounds(call, t, *c)) return false;
  c->packed = {static_cast<const int*>(t.data), static_cast<int>(sequences)};
  return true;
}

bool read_states(const Call& call, const char* name, PyObject* object, const Inputs& in, Tensor* t,
                 selective_scan::States* to) {
  if (!read_optional(call, name, object, t)) return false;
  if (!*t) return true;
  const Common& c = in.common;
  const Index shape[] = {sequences_of(c), c.dim, c.states};
  if (!check_element(call, *t, in.A.element, ", the dtype of A") || !check_device(call, *t, in.u) ||
      !check_shape(call, *t, shape, 3, in.cu_seqlens ? "(sequences, dim, states)" : "(batch, dim, states)") ||
      !check_unit_stride(call, *t))
    return false;
  const int parts = parts_of(c);
  *to = {static_cast<const float*>(t->data), t->stride[0] * parts, t->stride[1] * parts};
  return true;
}

bool read_sequences(const Call& call, PyObject* initial_state, PyObject* cu_seqlens, Inputs* in) {
  if (!read_optional(call, "cu_seqlens", cu_seqlens, &in->cu_seqlens)) return false;
  if (in->cu_seqlens && !check_packed(call, in->cu_seqlens, *in, &in->common)) return false;
  return read_states(call, "initial_state", initial_state, *in, &in->initial_state,
                     &in->common.initial_state);
}

bool allocate_given(const Call& call, const char* name, const Inputs& in, Output* output) {
  const Common& c = in.common;
  const Index shape[] = {sequences_of(c), c.dim, c.states};
  return allocate_number(call, name, in.A, shape, nullptr, 3, output);
}

// On the CPU the kernel runs here and now; on a GPU a plan is made from the shapes and launched on
// torch's current stream.

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
