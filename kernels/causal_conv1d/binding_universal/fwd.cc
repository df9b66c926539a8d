// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/tensor.h"
#include "kernels/causal_conv1d/binding_universal/arguments.h"

namespace scankit {
namespace {

// The arguments by their meaning; None where a release has no such argument. `returns` is true for the
// releases before 1.5.1, which return out instead of writing it.
struct Arguments {
  PyObject *sequence = Py_None, *initial = Py_None, *out = Py_None, *final = Py_None, *silu = Py_None;
  bool returns = true;
};

// x, weight and bias come first in every release.
bool sort_arguments(const Call& call, PyObject* const* a, Py_ssize_t count, Arguments* to) {
  switch (count) {
    case 4:  // 1.0
      to->silu = a[3];
      return true;
    case 5:  // 1.1
      to->sequence = a[3];
      to->silu = a[4];
      return true;
    case 7:  // 1.2 to 1.5.0
      *to = {a[3], a[4], Py_None, a[5], a[6], true};
      return true;
    case 8:  // 1.5.1 on
      *to = {a[3], a[4], a[5], a[6], a[7], false};
      return true;
    default:
      return refuse_as(PyExc_TypeError, call,
                       "takes 8 arguments (x, weight, bias, seq_idx, initial_states, out, final_states_out, "
                       "silu_activation), or the 7, 5 or 4 of older releases, got %d",
                       static_cast<int>(count));
  }
}

PyObject* run(const Call& call, PyObject* const* a, const Arguments& sorted) {
  ConvInputs in;
  Tensor final;
  if (!read_conv(call, a, &in) || !read_history(call, sorted.sequence, sorted.initial, &in) ||
      !read_silu(call, sorted.silu, &in) || !read_optional(call, "final_states_out", sorted.final, &final))
    return nullptr;
  if (final && !check_signal(call, in, final, in.common.width - 1)) return nullptr;
  ConvCall device;
  if (!device.begin(call, in.x)) return nullptr;
  Output out;
  if (sorted.returns) {
    if (!allocate_like(call, "out", in.x, &out)) return nullptr;
  } else if (!read_tensor(call, "out", sorted.out, &out.tensor) ||
             !check_signal(call, in, out.tensor, in.common.length)) {
    return nullptr;
  }
  causal_conv1d::Forward conv = {};
  conv.common = in.common;
  conv.out = signal_out(out.tensor);
  if (final) conv.final = signal_out(final);
  if (!device.run(call, conv)) return nullptr;
  return sorted.returns ? out.object.release() : Ref::to(Py_None).release();
}

}  // namespace

PyObject* causal_conv1d_fwd(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"causal_conv1d_fwd", torch};
  Arguments sorted;
  if (!sort_arguments(call, arguments, count, &sorted)) return nullptr;
  return run(call, arguments, sorted);
}

}  // namespace scankit
