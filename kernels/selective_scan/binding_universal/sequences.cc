// SPDX-License-Identifier: Apache-2.0
// Initial states and packed sequences, which upstream's two functions do not take.
#include <limits.h>

#include "kernels/binding/allocate.h"
#include "kernels/selective_scan/binding_universal/arguments.h"

namespace scankit {
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

}  // namespace scankit
