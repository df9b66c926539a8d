// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/tensor.h"
#include "kernels/selective_scan/binding_universal/arguments.h"

namespace scankit {
namespace {

using selective_scan::Common;

// x of shape (batch, dim, chunks, 2 states), in (chunks + 1) * states floats for each channel: the rows of
// the chunks overlap by half. Only the last row is entirely its own, and has the last state at its odd
// places, where x[:, :, -1, 1::2] looks (params.h). The x of packed sequences has no wide row.
bool allocate_states(const Call& call, const Inputs& in, Output* x) {
  const Common& c = in.common;
  if (in.cu_seqlens) {
    const Index packed[] = {1, c.dim, selective_scan::packed_chunks(c.length, c.packed.sequences), c.states};
    return allocate_number(call, "x", in.A, packed, nullptr, 4, x);
  }
  const Index chunks = selective_scan::saved_chunks(c.length), states = c.states,
              channel = (chunks + 1) * states;
  const Index shape[] = {c.batch, c.dim, chunks, 2 * states};
  const Index strides[] = {c.dim * channel, channel, states, 1};
  return allocate_number(call, "x", in.A, shape, strides, 4, x);
}

PyObject* result_list(Output* const* results, int count) {
  Ref list(PyList_New(count));
  for (int i = 0; list && i < count; ++i) {
    if (!results[i]->object) results[i]->object = Ref::to(Py_None);
    PyList_SetItem(list.get(), i, results[i]->object.release());
  }
  return list.release();
}

// The common part of fwd and fwd_stateful, after their arguments were read. Without save_states the list
// has None in place of x.
PyObject* run(const Call& call, const Inputs& in, bool save_states, bool stateful) {
  ScanCall device;
  if (!device.begin(call, in.u)) return nullptr;
  Output out, x, last_state, out_z;
  if (!allocate_sequence(call, "out", in.delta, &out)) return nullptr;
  if (save_states && !allocate_states(call, in, &x)) return nullptr;
  if (stateful && !allocate_given(call, "last_state", in, &last_state)) return nullptr;
  if (in.z && !allocate_sequence(call, "out_z", in.z, &out_z)) return nullptr;
  selective_scan::Forward scan = {};
  scan.common = in.common;
  scan.out = sequence_out(out.tensor);
  if (in.z) scan.out_z = sequence_out(out_z.tensor);
  if (save_states) scan.x = saved_states(x.tensor);
  if (stateful) scan.last_state = static_cast<float*>(last_state.tensor.data);
  if (!device.run(call, scan)) return nullptr;
  Output* results[4] = {&out, &x};
  int count = 2;
  if (stateful) results[count++] = &last_state;
  if (in.z) results[count++] = &out_z;
  return result_list(results, count);
}

}  // namespace

PyObject* fwd(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"fwd", torch};
  if (count != 9) {
    refuse_as(PyExc_TypeError, call,
              "takes 9 arguments (u, delta, A, B, C, D, z, delta_bias, delta_softplus), got %d",
              static_cast<int>(count));
    return nullptr;
  }
  Inputs in;
  return read_inputs(call, arguments, arguments[8], &in) ? run(call, in, true, false) : nullptr;
}

PyObject* fwd_stateful(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"fwd_stateful", torch};
  if (count != 12) {
    refuse_as(PyExc_TypeError, call,
              "takes 12 arguments (u, delta, A, B, C, D, z, delta_bias, delta_softplus, initial_state, "
              "cu_seqlens, save_states), got %d",
              static_cast<int>(count));
    return nullptr;
  }
  Inputs in;
  if (!read_inputs(call, arguments, arguments[8], &in) ||
      !read_sequences(call, arguments[9], arguments[10], &in))
    return nullptr;
  const int save_states = read_flag(call, "save_states", arguments[11]);
  return save_states < 0 ? nullptr : run(call, in, save_states == 1, true);
}

}  // namespace scankit
