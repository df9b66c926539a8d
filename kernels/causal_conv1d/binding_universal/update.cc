// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/tensor.h"
#include "kernels/causal_conv1d/binding_universal/arguments.h"

namespace scankit {
namespace {

// The arguments by their meaning; None where a release has no such argument. `returns` is true for the
// releases before 1.5.1, which return out.
struct Arguments {
  PyObject *out = Py_None, *silu = Py_None, *positions = Py_None, *entries = Py_None;
  bool returns = true;
};

bool sort_arguments(const Call& call, PyObject* const* a, Py_ssize_t count, Arguments* to) {
  switch (count) {
    case 5:  // 1.0 to 1.3, where x is (batch, dim)
      to->silu = a[4];
      return true;
    case 6:  // 1.4
      *to = {Py_None, a[4], a[5], Py_None, true};
      return true;
    case 7:  // 1.5.0
      *to = {Py_None, a[4], a[5], a[6], true};
      return true;
    case 8:  // 1.5.1 on
      *to = {a[4], a[5], a[6], a[7], false};
      return true;
    default:
      return refuse_as(PyExc_TypeError, call,
                       "takes 8 arguments (x, conv_state, weight, bias, out, silu_activation, "
                       "cache_seqlens, conv_state_indices), or the 7, 6 or 5 of older releases, got %d",
                       static_cast<int>(count));
  }
}

// The oldest releases pass (batch, dim); returns it as (batch, dim, 1). Null with an error set.
Ref with_steps(PyObject* x) {
  Ref dims(PyObject_CallMethod(x, "dim", nullptr));
  if (!dims) return Ref();
  if (PyLong_AsLong(dims.get()) != 2) return Ref::to(x);
  return Ref(PyObject_CallMethod(x, "unsqueeze", "i", -1));
}

// With conv_state_indices the state may have any number of entries, else one for each row of the batch.
bool check_state(const Call& call, const ConvInputs& in, const Tensor& state, bool has_entries) {
  const causal_conv1d::Common& c = in.common;
  if (!check_element(call, state, in.x.element, ", the dtype of x") || !check_device(call, state, in.x))
    return false;
  if (state.dims != 3 || state.shape[1] != c.dim || (!has_entries && state.shape[0] != c.batch))
    return refuse(call, "conv_state has shape %s, expected (%s, %d, state length)",
                  shape_text(state.shape, state.dims).text, has_entries ? "entries" : "batch", c.dim);
  if (state.shape[0] > 0x7fffffff || state.shape[2] > 0x3fffffff)
    return refuse(call, "conv_state has shape %s, more than is supported",
                  shape_text(state.shape, state.dims).text);
  return state.shape[2] >= c.width - 1 ||
         refuse(call, "conv_state has %lld steps, at least width - 1 = %d are needed", state.shape[2],
                c.width - 1);
}

// Checks the indices on the CPU. On a device that would have to wait for it, so that the kernel writes NaN
// into the out of such an entry instead.
bool check_entries(const Call& call, const Tensor& entries, const Tensor& state) {
  if (!entries || entries.kind != DeviceKind::Cpu) return true;
  for (Index b = 0; b < entries.shape[0]; ++b) {
    const int entry = static_cast<const int*>(entries.data)[b];
    if (entry >= state.shape[0])
      return refuse_as(PyExc_IndexError, call,
                       "conv_state_indices[%lld] is %d, but conv_state has %lld entries", b, entry,
                       state.shape[0]);
  }
  return true;
}

struct Tensors {
  ConvInputs in;
  Tensor state, positions, entries;
};

bool read_update(const Call& call, PyObject* x, PyObject* const* a, const Arguments& sorted, Tensors* t) {
  PyObject* const x_weight_bias[] = {x, a[2], a[3]};
  return read_conv(call, x_weight_bias, &t->in) && read_silu(call, sorted.silu, &t->in) &&
         read_tensor(call, "conv_state", a[1], &t->state) &&
         read_numbers(call, "cache_seqlens", sorted.positions, t->in, &t->positions) &&
         read_numbers(call, "conv_state_indices", sorted.entries, t->in, &t->entries) &&
         check_state(call, t->in, t->state, static_cast<bool>(t->entries)) &&
         check_entries(call, t->entries, t->state);
}

PyObject* run(const Call& call, PyObject* const* a, const Arguments& sorted) {
  if (PyObject_IsInstance(a[0], call.torch->tensor_type) != 1) {
    refuse_as(PyExc_TypeError, call, "x must be a torch.Tensor");
    return nullptr;
  }
  const Ref x = sorted.returns ? with_steps(a[0]) : Ref::to(a[0]);
  Tensors t;
  if (!x || !read_update(call, x.get(), a, sorted, &t)) return nullptr;
  ConvCall device;
  if (!device.begin(call, t.in.x)) return nullptr;
  Output out;
  if (sorted.returns) {
    if (!allocate_like(call, "out", t.in.x, &out)) return nullptr;
  } else if (!read_tensor(call, "out", sorted.out, &out.tensor) ||
             !check_signal(call, t.in, out.tensor, t.in.common.length)) {
    return nullptr;
  }
  causal_conv1d::Update conv = {};
  conv.common = t.in.common;
  conv.out = signal_out(out.tensor);
  conv.state = signal_out(t.state);
  conv.state_length = static_cast<int>(t.state.shape[2]);
  conv.state_entries = static_cast<int>(t.state.shape[0]);
  conv.positions = static_cast<const int*>(t.positions.data);
  conv.entries = static_cast<const int*>(t.entries.data);
  if (!device.run(call, conv)) return nullptr;
  if (!sorted.returns) return Ref::to(Py_None).release();
  if (x.get() == a[0]) return out.object.release();
  return PyObject_CallMethod(out.object.get(), "squeeze", "i", -1);
}

}  // namespace

PyObject* causal_conv1d_update(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"causal_conv1d_update", torch};
  Arguments sorted;
  if (!sort_arguments(call, arguments, count, &sorted)) return nullptr;
  return run(call, arguments, sorted);
}

}  // namespace scankit
