// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/allocate.h"
#include "kernels/selective_scan/binding_universal/arguments.h"
#include "kernels/selective_scan/binding_universal/functions.h"
#include "kernels/selective_scan/binding_universal/scan_call.h"

namespace scankit {
namespace {

using selective_scan::Common;

constexpr int kArguments = 9;

// x of shape (batch, dim, chunks, 2 states) over (chunks + 1) * states floats a channel: chunk rows overlap
// by half, and the last one, wholly its own, has the last state at its odd places, where x[:, :, -1, 1::2]
// looks (params.h).
bool allocate_states(const Call& call, const Inputs& in, Output* x) {
  const Common& c = in.common;
  const Index chunks = selective_scan::saved_chunks(c.length), states = c.states,
              channel = (chunks + 1) * states;
  const Index shape[] = {c.batch, c.dim, chunks, 2 * states};
  const Index strides[] = {c.dim * channel, channel, states, 1};
  return allocate_number(call, "x", in.A, shape, strides, 4, x);
}

PyObject* result_list(Output& out, Output& x, Output* out_z) {
  Ref list(PyList_New(out_z ? 3 : 2));
  if (!list) return nullptr;
  PyList_SetItem(list.get(), 0, out.object.release());
  PyList_SetItem(list.get(), 1, x.object.release());
  if (out_z) PyList_SetItem(list.get(), 2, out_z->object.release());
  return list.release();
}

PyObject* run(const Call& call, PyObject* const* arguments) {
  Inputs in;
  if (!read_inputs(call, arguments, arguments[8], &in)) return nullptr;
  ScanCall device;
  if (!device.begin(call, in.u)) return nullptr;
  Output out, x, out_z;
  if (!allocate_sequence(call, "out", in.delta, &out) || !allocate_states(call, in, &x)) return nullptr;
  if (in.z && !allocate_sequence(call, "out_z", in.z, &out_z)) return nullptr;
  selective_scan::Forward scan = {};
  scan.common = in.common;
  scan.out = sequence_out(out.tensor);
  if (in.z) scan.out_z = sequence_out(out_z.tensor);
  scan.x = saved_states(x.tensor);
  if (!device.run(call, scan)) return nullptr;
  return result_list(out, x, in.z ? &out_z : nullptr);
}

}  // namespace

PyObject* fwd(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"fwd", torch};
  if (count != kArguments) {
    refuse_as(PyExc_TypeError, call,
              "takes 9 arguments (u, delta, A, B, C, D, z, delta_bias, delta_softplus), got %d",
              static_cast<int>(count));
    return nullptr;
  }
  return run(call, arguments);
}

}  // namespace scankit
