// SPDX-License-Identifier: Apache-2.0
// fwd_fp64 and bwd_fp64: the scan in float64 on the CPU, for gradcheck. Upstream's two functions refuse
// float64, and so do ours.
#include <limits.h>
#include <string.h>

#include "kernels/binding/device_call.h"
#include "kernels/binding/tensor.h"
#include "kernels/selective_scan/binding_universal/arguments.h"
#include "kernels/selective_scan/cpu/scan.h"

namespace scankit {
namespace {

using selective_scan::Array64;
using selective_scan::Projection64;
using selective_scan::Scan64;

// The tensors as they were passed, and the scan that they describe.
struct Inputs64 {
  Tensor u, delta, A, B, C, D, z, delta_bias, initial_state, cu_seqlens;
  Scan64 scan;
};

int parts_of(const Inputs64& in) { return in.scan.complex ? 2 : 1; }

// Of a tensor of up to three dimensions, in doubles.
Array64 array(const Tensor& t) {
  Array64 a = {static_cast<double*>(t.data), {}};
  for (int i = 0; i < t.dims && i < 3; ++i)
    a.stride[i] = t.stride[i] * (t.element == Element::Complex128 ? 2 : 1);
  return a;
}

// B or C, constant or variable, with strides in doubles.
Projection64 projection(const Tensor& t, int parts) {
  auto* data = static_cast<double*>(t.data);
  if (t.dims == 2) return {data, true, 0, t.stride[0] * parts, t.stride[1] * parts, 0};
  return {data, false, t.stride[0], t.stride[1], t.stride[2], parts};
}

// Dtype, device and shape. Strides are free, except that the steps of a variable B or C must be adjacent.
bool check(const Call& call, const Inputs64& in, const Tensor& t, Element element, const Index* shape,
           int dims, const char* meaning) {
  return check_element(call, t, element, "") && check_device(call, t, in.u) &&
         check_shape(call, t, shape, dims, meaning);
}

bool check_sequence(const Call& call, const Inputs64& in, const Tensor& t) {
  const Scan64& s = in.scan;
  const Index shape[] = {s.batch, s.dim, s.length};
  return check(call, in, t, Element::Float64, shape, 3, "(batch, dim, length)");
}

// Sets batch, dim, length, states and complex, on which all other checks rely.
bool check_u_and_A(const Call& call, Inputs64* in) {
  const Tensor &u = in->u, &A = in->A;
  Scan64& s = in->scan;
  if (u.kind != DeviceKind::Cpu)
    return refuse(call, "u is on cuda:%d; float64 is computed on the CPU alone; pass u.cpu()", u.device);
  if (!check_element(call, u, Element::Float64, "")) return false;
  if (!read_sizes(call, u, &s.batch, &s.dim, &s.length)) return false;
  s.complex = A.element == Element::Complex128;
  if (!s.complex && A.element != Element::Float64)
    return refuse(call, "A is %s, expected float64 or complex128", element_name(A.element));
  if (!check_device(call, A, u)) return false;
  if (A.dims != 2 || A.shape[0] != s.dim || A.shape[1] < 1 || A.shape[1] > selective_scan::kMaxStates)
    return refuse(call, "A has shape %s, expected (%d, states) with 1 to %d states",
                  shape_text(A.shape, A.dims).text, s.dim, selective_scan::kMaxStates);
  s.states = static_cast<int>(A.shape[1]);
  return true;
}

bool check_projection(const Call& call, const Inputs64& in, const Tensor& t) {
  const Scan64& s = in.scan;
  const Index constant[] = {s.dim, s.states};
  if (t.dims == 2) return check(call, in, t, in.A.element, constant, 2, "(dim, states) where constant");
  const Index variable[] = {s.batch, s.groups, s.states, Index{s.length} * parts_of(in)};
  return check(call, in, t, Element::Float64, variable, 4,
               s.complex ? "(batch, groups, states, 2 length)" : "(batch, groups, states, length)") &&
         check_unit_stride(call, t);
}

// Sets the groups; a constant B has one.
bool check_projections(const Call& call, Inputs64* in) {
  Scan64& s = in->scan;
  s.groups = in->B.dims == 4 && in->B.shape[1] <= INT_MAX ? static_cast<int>(in->B.shape[1]) : 1;
  if (s.groups < 1 || s.dim % s.groups != 0)
    return refuse(call, "B has %d groups, which do not divide the %d channels of u", s.groups, s.dim);
  return check_projection(call, *in, in->B) && check_projection(call, *in, in->C);
}

bool check_optional(const Call& call, const Inputs64& in) {
  const Index channels[] = {in.scan.dim};
  const Tensor* const each[] = {&in.D, &in.delta_bias};
  for (const Tensor* t : each)
    if (*t && !check(call, in, *t, Element::Float64, channels, 1, "(dim,)")) return false;
  return !in.z || check_sequence(call, in, in.z);
}

bool check_state(const Call& call, const Inputs64& in, const Tensor& t) {
  const Index shape[] = {in.scan.sequences, in.scan.dim, in.scan.states};
  return !t || check(call, in, t, in.A.element, shape, 3,
                     in.cu_seqlens ? "(sequences, dim, states)" : "(batch, dim, states)");
}

bool read_all(const Call& call, PyObject* const* arguments, PyObject* softplus, PyObject* const* sequences,
              Inputs64* in) {
  const struct {
    const char* name;
    Tensor* tensor;
    PyObject* object;
    bool optional;
  } each[] = {{"u", &in->u, arguments[0], false},
              {"delta", &in->delta, arguments[1], false},
              {"A", &in->A, arguments[2], false},
              {"B", &in->B, arguments[3], false},
              {"C", &in->C, arguments[4], false},
              {"D", &in->D, arguments[5], true},
              {"z", &in->z, arguments[6], true},
              {"delta_bias", &in->delta_bias, arguments[7], true},
              {"initial_state", &in->initial_state, sequences[0], true},
              {"cu_seqlens", &in->cu_seqlens, sequences[1], true}};
  for (const auto& one : each)
    if (!(one.optional ? read_optional : read_tensor)(call, one.name, one.object, one.tensor)) return false;
  const int flag = read_flag(call, "delta_softplus", softplus);
  in->scan = {};
  in->scan.softplus = flag == 1;
  return flag >= 0;
}

// `sequences` points to initial_state and cu_seqlens, which follow each other in both functions.
bool read_inputs64(const Call& call, PyObject* const* arguments, PyObject* softplus,
                   PyObject* const* sequences, Inputs64* in) {
  if (!read_all(call, arguments, softplus, sequences, in) || !check_u_and_A(call, in) ||
      !check_sequence(call, *in, in->delta) || !check_projections(call, in) || !check_optional(call, *in))
    return false;
  Scan64& s = in->scan;
  s.sequences = s.batch;
  if (in->cu_seqlens) {
    Inputs shape = {};  // what check_packed looks at
    shape.u = in->u;
    shape.common.batch = s.batch;
    shape.common.dim = s.dim;
    shape.common.length = s.length;
    if (!check_packed(call, in->cu_seqlens, shape, &shape.common)) return false;
    s.cu_seqlens = shape.common.packed.cu_seqlens;
    s.sequences = shape.common.packed.sequences;
  }
  if (!check_state(call, *in, in->initial_state)) return false;
  s.u = array(in->u), s.delta = array(in->delta), s.z = array(in->z), s.A = array(in->A);
  s.D = array(in->D), s.delta_bias = array(in->delta_bias), s.initial_state = array(in->initial_state);
  s.B = projection(in->B, parts_of(*in)), s.C = projection(in->C, parts_of(*in));
  return true;
}

// A contiguous tensor of zeros: the backward adds up its sums in place.
bool allocate_zeros(const Call& call, const char* name, const Tensor& like, const Index* shape, int dims,
                    Output* output) {
  if (!allocate_number(call, name, like, shape, nullptr, dims, output)) return false;
  size_t bytes = output->tensor.element == Element::Complex128 ? 16 : 8;
  for (int i = 0; i < dims; ++i) bytes *= static_cast<size_t>(shape[i]);
  if (bytes) memset(output->tensor.data, 0, bytes);
  return true;
}

// Absent results are None.
PyObject* list_of(Output* const* results, int count) {
  Ref list(PyList_New(count));
  for (int i = 0; list && i < count; ++i) {
    if (!results[i]->object) results[i]->object = Ref::to(Py_None);
    PyList_SetItem(list.get(), i, results[i]->object.release());
  }
  return list.release();
}

PyObject* forward(const Call& call, PyObject* const* arguments) {
  Inputs64 in;
  if (!read_inputs64(call, arguments, arguments[8], arguments + 9, &in)) return nullptr;
  const Index states[] = {in.scan.sequences, in.scan.dim, in.scan.states};
  Output out, last_state, out_z;
  if (!allocate_sequence(call, "out", in.delta, &out) ||
      !allocate_zeros(call, "last_state", in.A, states, 3, &last_state) ||
      (in.z && !allocate_sequence(call, "out_z", in.z, &out_z)))
    return nullptr;
  const selective_scan::Forward64 scan = {in.scan, array(out.tensor), array(out_z.tensor),
                                          array(last_state.tensor)};
  if (!cpu_done(call, forward_fp64(scan))) return nullptr;
  Output* results[] = {&out, &last_state, &out_z};
  return list_of(results, in.z ? 3 : 2);
}

struct Gradients64 {
  Output du, ddelta, dA, dB, dC, dD, ddelta_bias, dz, dinitial_state;
};

// Sums get zeros; du, ddelta and dz are written once and do not need them.
bool allocate_gradients64(const Call& call, const Inputs64& in, Gradients64* g) {
  const auto zeros = [&](const char* name, const Tensor& like, Output* output) {
    return !like || allocate_zeros(call, name, like, like.shape, like.dims, output);
  };
  return allocate_sequence(call, "du", in.u, &g->du) &&
         allocate_sequence(call, "ddelta", in.delta, &g->ddelta) &&
         (!in.z || allocate_sequence(call, "dz", in.z, &g->dz)) && zeros("dA", in.A, &g->dA) &&
         zeros("dB", in.B, &g->dB) && zeros("dC", in.C, &g->dC) && zeros("dD", in.D, &g->dD) &&
         zeros("ddelta_bias", in.delta_bias, &g->ddelta_bias) &&
         zeros("dinitial_state", in.initial_state, &g->dinitial_state);
}

PyObject* backward(const Call& call, PyObject* const* arguments) {
  Inputs64 in;
  Tensor dout, dlast_state;
  if (!read_inputs64(call, arguments, arguments[9], arguments + 10, &in) ||
      !read_tensor(call, "dout", arguments[8], &dout) || !check_sequence(call, in, dout) ||
      !read_optional(call, "dlast_state", arguments[12], &dlast_state) || !check_state(call, in, dlast_state))
    return nullptr;
  Gradients64 g;
  if (!allocate_gradients64(call, in, &g)) return nullptr;
  const int parts = parts_of(in);
  const selective_scan::Backward64 scan = {in.scan,
                                           array(dout),
                                           array(dlast_state),
                                           array(g.du.tensor),
                                           array(g.ddelta.tensor),
                                           array(g.dz.tensor),
                                           array(g.dA.tensor),
                                           array(g.dD.tensor),
                                           array(g.ddelta_bias.tensor),
                                           array(g.dinitial_state.tensor),
                                           projection(g.dB.tensor, parts),
                                           projection(g.dC.tensor, parts)};
  if (!cpu_done(call, backward_fp64(scan))) return nullptr;
  Output* results[] = {&g.du, &g.ddelta,        &g.dA, &g.dB, &g.dC, &g.dD, &g.ddelta_bias,
                       &g.dz, &g.dinitial_state};
  return list_of(results, 9);
}

}  // namespace

PyObject* fwd_fp64(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"fwd_fp64", torch};
  if (count == 11) return forward(call, arguments);
  refuse_as(PyExc_TypeError, call,
            "takes 11 arguments (u, delta, A, B, C, D, z, delta_bias, delta_softplus, initial_state, "
            "cu_seqlens), got %d",
            static_cast<int>(count));
  return nullptr;
}

PyObject* bwd_fp64(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"bwd_fp64", torch};
  if (count == 13) return backward(call, arguments);
  refuse_as(PyExc_TypeError, call,
            "takes 13 arguments (u, delta, A, B, C, D, z, delta_bias, dout, delta_softplus, initial_state, "
            "cu_seqlens, dlast_state), got %d",
            static_cast<int>(count));
  return nullptr;
}

}  // namespace scankit
