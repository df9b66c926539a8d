// SPDX-License-Identifier: Apache-2.0
#include <limits.h>

#include <initializer_list>

#include "kernels/binding/tensor.h"
#include "kernels/selective_scan/binding_universal/arguments.h"

// state_update: one step of decoding with the interface of mamba_ssm's selective_state_update, for
// (batch, dim) inputs.
namespace scankit {
namespace {

using selective_scan::Update;

struct Tensors {
  Tensor state, x, dt, A, B, C, D, z, dt_bias;
};

bool read_all(const Call& call, PyObject* const* arguments, Tensors* t, Update* step) {
  const struct {
    const char* name;
    Tensor* tensor;
    bool optional;
  } each[] = {{"state", &t->state, false}, {"x", &t->x, false}, {"dt", &t->dt, false},
              {"A", &t->A, false},         {"B", &t->B, false}, {"C", &t->C, false},
              {"D", &t->D, true},          {"z", &t->z, true},  {"dt_bias", &t->dt_bias, true}};
  for (int i = 0; i < 9; ++i) {
    Tensor* tensor = each[i].tensor;
    if (!(each[i].optional ? read_optional : read_tensor)(call, each[i].name, arguments[i], tensor))
      return false;
    if (*tensor && i > 1 && !check_device(call, *tensor, t->x)) return false;
  }
  const int softplus = read_flag(call, "dt_softplus", arguments[9]);
  step->softplus = softplus == 1;
  return softplus >= 0 && check_device(call, t->state, t->x);
}

bool check_x(const Call& call, const Tensor& x, Update* step) {
  if (!read_dtype(call, x, &step->dtype)) return false;
  if (x.dims != 2 || x.shape[0] > INT_MAX / 2 || x.shape[1] > INT_MAX / 2)
    return refuse(call, "x has shape %s, expected (batch, dim), one step", shape_text(x.shape, x.dims).text);
  step->batch = static_cast<int>(x.shape[0]);
  step->dim = static_cast<int>(x.shape[1]);
  step->x = {x.data, x.stride[0], x.stride[1]};
  return true;
}

// dt and z: one value a channel, as x.
bool check_step(const Call& call, const Tensor& x, const Tensor& t, selective_scan::Sequence* to) {
  if (!check_element(call, t, x.element, ", the dtype of x") ||
      !check_shape(call, t, x.shape, 2, "(batch, dim) as x"))
    return false;
  *to = {t.data, t.stride[0], t.stride[1]};
  return true;
}

bool check_A(const Call& call, const Tensor& A, Update* step) {
  if (A.element != Element::Float32)
    return refuse(call, "A is %s, expected float32%s", element_name(A.element),
                  A.element == Element::Complex64 ? "; a complex A is not supported in a single step" : "");
  if (A.dims != 2 || A.shape[0] != step->dim)
    return refuse(call, "A has shape %s, expected (%d, states): (dim, states)",
                  shape_text(A.shape, A.dims).text, step->dim);
  if (A.shape[1] < 1 || A.shape[1] > selective_scan::kMaxStates)
    return refuse(call, "A has %lld states; 1 to %d are supported", A.shape[1], selective_scan::kMaxStates);
  step->states = static_cast<int>(A.shape[1]);
  step->A = static_cast<const float*>(A.data);
  step->A_dim_stride = A.stride[0];
  step->A_state_stride = A.stride[1];
  return true;
}

// Tensors that may be float32 although the inputs have 16 bits: the state, D and dt_bias.
bool check_either(const Call& call, const Tensor& t, const Tensor& x, selective_scan::DType* dtype) {
  if (t.element == Element::Float32 || t.element == x.element) return read_dtype(call, t, dtype);
  return refuse(call, "%s is %s, expected %s%s, the dtype of x", t.name, element_name(t.element),
                x.element == Element::Float32 ? "" : "float32 or ", element_name(x.element));
}

// The state is written, so that no two of its elements may share memory, as those of an expanded tensor
// do. With the dimensions ordered by their strides, each stride must be at least the extent of the
// dimensions inside of it.
bool check_state(const Call& call, const Tensor& t, const Tensor& x, Update* step) {
  if (!check_either(call, t, x, &step->state_dtype)) return false;
  const Index shape[] = {step->batch, step->dim, step->states};
  if (!check_shape(call, t, shape, 3, "(batch, dim, states)")) return false;
  if (t.stride[2] != 1 && t.shape[2] > 1)
    return refuse(call,
                  "state has stride %lld in its last dimension, expected 1; it is changed in place, so keep "
                  "a contiguous one",
                  t.stride[2]);
  int inner = 1, outer = 0;  // by their strides
  if (t.shape[1] <= 1 || (t.shape[0] > 1 && t.stride[0] < t.stride[1])) inner = 0, outer = 1;
  Index extent = t.shape[2];
  for (const int i : {inner, outer}) {
    if (t.shape[i] <= 1) continue;
    if (t.stride[i] < extent)
      return refuse(call,
                    "state has stride %lld in dimension %d, so its elements share memory; pass a state "
                    "of its own, such as state.contiguous()",
                    t.stride[i], i);
    extent += t.stride[i] * (t.shape[i] - 1);
  }
  step->state = t.data;
  step->state_batch_stride = t.stride[0];
  step->state_dim_stride = t.stride[1];
  return true;
}

bool check_groups(const Call& call, const Tensor& B, Update* step) {
  step->groups = B.dims == 3 && B.shape[1] <= INT_MAX ? static_cast<int>(B.shape[1]) : 1;
  return (step->groups >= 1 && step->dim % step->groups == 0) ||
         refuse(call, "B has %d groups, which do not divide the %d channels of x", step->groups, step->dim);
}

// (batch, states) with one group, or (batch, groups, states).
bool check_projection(const Call& call, const Tensor& t, const Tensor& x, const Update& step,
                      selective_scan::StepProjection* to) {
  const bool grouped = t.dims == 3;
  const Index with_groups[] = {step.batch, step.groups, step.states};
  const Index without[] = {step.batch, step.states};
  if (!check_element(call, t, x.element, ", the dtype of x") ||
      !(grouped || step.groups > 1 ? check_shape(call, t, with_groups, 3, "(batch, groups, states)")
                                   : check_shape(call, t, without, 2, "(batch, states)")) ||
      !check_unit_stride(call, t))
    return false;
  *to = {t.data, t.stride[0], grouped ? t.stride[1] : 0};
  return true;
}

// D or dt_bias. Models that were converted to 16 bits have them in x's dtype.
bool check_parameter(const Call& call, const Tensor& t, const Tensor& x, const Update& step, const void** to,
                     selective_scan::DType* dtype) {
  if (!t) return true;
  const Index shape[] = {step.dim};
  if (!check_either(call, t, x, dtype)) return false;
  if (!check_shape(call, t, shape, 1, "(dim,)") || !check_unit_stride(call, t)) return false;
  *to = t.data;
  return true;
}

bool check_all(const Call& call, const Tensors& t, Update* step) {
  return check_x(call, t.x, step) && check_step(call, t.x, t.dt, &step->dt) && check_A(call, t.A, step) &&
         check_state(call, t.state, t.x, step) && check_groups(call, t.B, step) &&
         check_projection(call, t.B, t.x, *step, &step->B) &&
         check_projection(call, t.C, t.x, *step, &step->C) &&
         check_parameter(call, t.D, t.x, *step, &step->D, &step->D_dtype) &&
         check_parameter(call, t.dt_bias, t.x, *step, &step->dt_bias, &step->bias_dtype) &&
         (!t.z || check_step(call, t.x, t.z, &step->z));
}

PyObject* run(const Call& call, PyObject* const* arguments) {
  Tensors t;
  Update step = {};
  if (!read_all(call, arguments, &t, &step) || !check_all(call, t, &step)) return nullptr;
  ScanCall device;
  if (!device.begin(call, t.x)) return nullptr;
  Output out;
  if (!allocate_like(call, "out", t.x, &out)) return nullptr;
  step.out = {out.tensor.data, out.tensor.stride[0], out.tensor.stride[1]};
  return device.run(call, step) ? out.object.release() : nullptr;
}

}  // namespace

PyObject* state_update(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"state_update", torch};
  if (count != 10) {
    refuse_as(PyExc_TypeError, call,
              "takes 10 arguments (state, x, dt, A, B, C, D, z, dt_bias, dt_softplus), got %d",
              static_cast<int>(count));
    return nullptr;
  }
  return run(call, arguments);
}

}  // namespace scankit
