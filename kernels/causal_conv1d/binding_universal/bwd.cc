// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/tensor.h"
#include "kernels/causal_conv1d/binding_universal/arguments.h"

namespace scankit {
namespace {

// The arguments by their meaning; None where a release has no such argument. `returns` is true for the
// releases before 1.5.1, which return the gradients.
struct Arguments {
  PyObject *sequence = Py_None, *initial = Py_None, *dfinal = Py_None, *dx = Py_None, *silu = Py_None;
  PyObject *dweight = Py_None, *dbias = Py_None, *dinitial = Py_None;  // from 1.5.1 on
  PyObject* wants_dinitial = nullptr;                                  // 1.2 to 1.5.0
  bool returns = true;
};

// x, weight, bias and dout come first in every release.
bool sort_arguments(const Call& call, PyObject* const* a, Py_ssize_t count, Arguments* to) {
  switch (count) {
    case 6:  // 1.0
      to->dx = a[4];
      to->silu = a[5];
      return true;
    case 7:  // 1.1
      to->sequence = a[4];
      to->dx = a[5];
      to->silu = a[6];
      return true;
    case 10:  // 1.2 to 1.5.0
      *to = {a[4], a[5], a[6], a[7], a[9], Py_None, Py_None, Py_None, a[8], true};
      return true;
    case 12:  // 1.5.1 on
      *to = {a[4], a[5], a[6], a[7], a[11], a[8], a[9], a[10], nullptr, false};
      return true;
    default:
      return refuse_as(PyExc_TypeError, call,
                       "takes 12 arguments (x, weight, bias, dout, seq_idx, initial_states, dfinal_states, "
                       "dx, dweight, dbias, dinitial_states, silu_activation), or the 10, 7 or 6 of older "
                       "releases, got %d",
                       static_cast<int>(count));
  }
}

struct Gradients {
  Output dx, dweight, dbias, dinitial;
};

// A destination of float32 that the caller passed.
bool take_floats(const Call& call, const ConvInputs& in, const char* name, PyObject* object,
                 const Tensor& like, Output* output) {
  Tensor& t = output->tensor;
  return read_tensor(call, name, object, &t) && check_element(call, t, Element::Float32, "") &&
         check_device(call, t, in.x) &&
         check_shape(call, t, like.shape, like.dims, like.dims == 2 ? "(dim, width)" : "(dim,)");
}

bool take_signal(const Call& call, const ConvInputs& in, const char* name, PyObject* object, int steps,
                 Output* output) {
  return read_tensor(call, name, object, &output->tensor) && check_signal(call, in, output->tensor, steps);
}

// The destinations that callers of 1.5.1 and newer pass.
bool take_gradients(const Call& call, const ConvInputs& in, const Arguments& a, Gradients* g) {
  if (in.bias ? a.dbias == Py_None : a.dbias != Py_None)
    return refuse(call, "dbias must be given where bias is, and only there");
  if (!take_signal(call, in, "dx", a.dx, in.common.length, &g->dx) ||
      !take_floats(call, in, "dweight", a.dweight, in.weight, &g->dweight))
    return false;
  if (in.bias && (!take_floats(call, in, "dbias", a.dbias, in.bias, &g->dbias) ||
                  !check_unit_stride(call, g->dbias.tensor)))
    return false;
  return a.dinitial == Py_None ||
         take_signal(call, in, "dinitial_states", a.dinitial, in.common.width - 1, &g->dinitial);
}

// The gradients that older releases return; only dx may be passed.
bool allocate_gradients(const Call& call, const ConvInputs& in, const Arguments& a, Gradients* g) {
  if (a.dx != Py_None) {
    if (!take_signal(call, in, "dx", a.dx, in.common.length, &g->dx)) return false;
    g->dx.object = Ref::to(a.dx);
  } else if (!allocate_like(call, "dx", in.x, &g->dx)) {
    return false;
  }
  const int wanted = a.wants_dinitial ? read_flag(call, "return_dinitial_states", a.wants_dinitial) : 0;
  if (wanted < 0) return false;
  if (wanted && !in.initial)
    return refuse(call, "initial_states must be given where their gradient is wanted");
  if (!allocate_float(call, "dweight", in.x, in.weight.shape, nullptr, 2, &g->dweight)) return false;
  if (in.bias && !allocate_float(call, "dbias", in.x, in.bias.shape, nullptr, 1, &g->dbias)) return false;
  return !wanted || allocate_like(call, "dinitial_states", in.initial, &g->dinitial);
}

// The gradient in the parameter's dtype: summed in float32, and rounded once. None where there is
// no such gradient.
Ref rounded(const Call& call, const Tensor& parameter, Output& gradient) {
  if (parameter.element == Element::Float32 || !gradient.object)
    return gradient.object ? static_cast<Ref&&>(gradient.object) : Ref::to(Py_None);
  const Torch& torch = *call.torch;
  PyObject* dtype = parameter.element == Element::Float16 ? torch.float16 : torch.bfloat16;
  return Ref(PyObject_CallMethodObjArgs(gradient.object.get(), torch.names[kTo], dtype, nullptr));
}

// [dx, dweight, dbias], and dinitial_states from 1.2 on.
PyObject* result_list(const Call& call, const ConvInputs& in, bool with_initial, Gradients& g) {
  Ref each[] = {static_cast<Ref&&>(g.dx.object), rounded(call, in.weight, g.dweight),
                rounded(call, in.bias, g.dbias),
                g.dinitial.object ? static_cast<Ref&&>(g.dinitial.object) : Ref::to(Py_None)};
  const int count = with_initial ? 4 : 3;
  for (const Ref& object : each)
    if (!object) return nullptr;
  Ref list(PyList_New(count));
  for (int i = 0; list && i < count; ++i) PyList_SetItem(list.get(), i, each[i].release());
  return list.release();
}

void describe(const ConvInputs& in, const Gradients& g, causal_conv1d::Backward* conv) {
  conv->common = in.common;
  conv->dx = signal_out(g.dx.tensor);
  conv->dweight = static_cast<float*>(g.dweight.tensor.data);
  conv->dweight_dim_stride = g.dweight.tensor.stride[0];
  conv->dweight_tap_stride = g.dweight.tensor.stride[1];
  conv->dbias = static_cast<float*>(g.dbias.tensor.data);
  if (g.dinitial.tensor) conv->dinitial = signal_out(g.dinitial.tensor);
}

PyObject* run(const Call& call, PyObject* const* a, const Arguments& sorted) {
  ConvInputs in;
  Tensor dout, dfinal;
  if (!read_conv(call, a, &in) || !read_history(call, sorted.sequence, sorted.initial, &in) ||
      !read_silu(call, sorted.silu, &in) || !read_tensor(call, "dout", a[3], &dout) ||
      !check_signal(call, in, dout, in.common.length) ||
      !read_optional(call, "dfinal_states", sorted.dfinal, &dfinal))
    return nullptr;
  if (dfinal && !check_signal(call, in, dfinal, in.common.width - 1)) return nullptr;
  ConvCall device;
  if (!device.begin(call, in.x)) return nullptr;
  Gradients gradients;
  if (!(sorted.returns ? allocate_gradients : take_gradients)(call, in, sorted, &gradients)) return nullptr;
  causal_conv1d::Backward conv = {};
  describe(in, gradients, &conv);
  conv.dout = signal(dout);
  if (dfinal) conv.dfinal = signal(dfinal);
  conv.add = !sorted.returns;
  if (!device.run(call, conv)) return nullptr;
  if (!sorted.returns) return Ref::to(Py_None).release();
  return result_list(call, in, sorted.wants_dinitial != nullptr, gradients);
}

}  // namespace

PyObject* causal_conv1d_bwd(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"causal_conv1d_bwd", torch};
  Arguments sorted;
  if (!sort_arguments(call, arguments, count, &sorted)) return nullptr;
  return run(call, arguments, sorted);
}

}  // namespace scankit
