// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/tensor.h"
#include "kernels/selective_scan/binding_universal/arguments.h"

// bwd and bwd_stateful: read the arguments, allocate the gradients through torch, run the kernel, and
// return the list that upstream's caller unpacks.
namespace scankit {
namespace {

using selective_scan::Common;

constexpr int kArguments = 14, kStatefulArguments = 17;
constexpr Index kUpstreamChunk = 2048;  // steps between two states of upstream's x

struct BackwardInputs {
  Inputs in;
  Tensor dout, x, out, dz, dlast_state;
  bool recompute_out_z;
};

struct Gradients {
  Output du, ddelta, dA, dB, dC, dD, ddelta_bias, dz, out_z, dinitial_state;
};

// x of packed sequences: only the one that fwd_stateful returned.
bool check_packed_states(const Call& call, const Inputs& in, const Tensor& x,
                         selective_scan::SavedStates* to) {
  const Common& c = in.common;
  const Index shape[] = {1, c.dim, selective_scan::packed_chunks(c.length, c.packed.sequences), c.states};
  if (!check_shape(call, x, shape, 4, "that of fwd_stateful's x for these inputs") ||
      !check_unit_stride(call, x))
    return false;
  *to = saved_states(x);
  return true;
}

// Accepts x as fwd returned it, or a clone of it. With an x of upstream's layout, or none, `to` stays
// empty and the kernel computes the states again.
bool check_states(const Call& call, const Inputs& in, const Tensor& x, selective_scan::SavedStates* to) {
  const Common& c = in.common;
  const Index ours = selective_scan::saved_chunks(c.length);
  const Index upstreams = (c.length + kUpstreamChunk - 1) / kUpstreamChunk;
  if (x.element != in.A.element)
    return refuse(call, "x is %s, expected %s, the dtype of A", element_name(x.element),
                  element_name(in.A.element));
  if (x.kind != in.u.kind || x.device != in.u.device) return refuse(call, "x is not on the device of u");
  if (in.cu_seqlens) return check_packed_states(call, in, x, to);
  if (x.dims != 4 || x.shape[0] != c.batch || x.shape[1] != c.dim || x.shape[3] != 2 * c.states ||
      (x.shape[2] != ours && x.shape[2] != upstreams))
    return refuse(call, "x does not have the shape (%d, %d, %lld, %d) that fwd returns for these inputs",
                  c.batch, c.dim, ours, 2 * c.states);
  if (x.shape[2] != ours || c.length <= selective_scan::kStateInterval) return true;
  if (x.stride[3] != 1)
    return refuse(call, "x has stride %lld in its last dimension, expected 1", x.stride[3]);
  *to = saved_states(x);
  return true;
}

bool read_backward(const Call& call, PyObject* const* arguments, bool stateful, BackwardInputs* all,
                   selective_scan::Backward* scan) {
  Inputs& in = all->in;
  if (!read_inputs(call, arguments, arguments[12], &in)) return false;
  if (stateful &&
      (!read_sequences(call, arguments[14], arguments[15], &in) ||
       !read_states(call, "dlast_state", arguments[16], in, &all->dlast_state, &scan->dlast_state)))
    return false;
  if (!read_tensor(call, "dout", arguments[8], &all->dout) || !check_sequence(call, in, all->dout))
    return false;
  if (!read_optional(call, "x", arguments[9], &all->x) ||
      !read_optional(call, "out", arguments[10], &all->out) ||
      !read_optional(call, "dz", arguments[11], &all->dz))
    return false;
  const int recompute = read_flag(call, "recompute_out_z", arguments[13]);
  if (recompute < 0) return false;
  all->recompute_out_z = recompute == 1;
  if (all->x && !check_states(call, in, all->x, &scan->x)) return false;
  if (in.z && !all->out) return refuse(call, "out, the ungated output of fwd, must be given where z is");
  if (in.z && !check_sequence(call, in, all->out)) return false;
  return !in.z || !all->dz || check_sequence(call, in, all->dz);
}

// dB or dC. A variable one is float32 on the CPU, and rounded later; the CUDA kernels round it themselves.
bool allocate_projection(const Call& call, const char* name, const Tensor& of, Output* gradient) {
  return of.dims == 2 || of.kind == DeviceKind::Cuda
             ? allocate_number(call, name, of, of.shape, nullptr, of.dims, gradient)
             : allocate_float(call, name, of, of.shape, nullptr, 4, gradient);
}

bool allocate_gradients(const Call& call, const BackwardInputs& all, Gradients* g) {
  const Inputs& in = all.in;
  const Common& c = in.common;
  const Index rates[] = {c.dim, c.states}, channels[] = {c.dim};
  if (!allocate_sequence(call, "du", in.u, &g->du) ||
      !allocate_sequence(call, "ddelta", in.delta, &g->ddelta) ||
      !allocate_number(call, "dA", in.A, rates, nullptr, 2, &g->dA) ||
      !allocate_projection(call, "dB", in.B, &g->dB) || !allocate_projection(call, "dC", in.C, &g->dC))
    return false;
  if (in.D && !allocate_float(call, "dD", in.u, channels, nullptr, 1, &g->dD)) return false;
  if (in.delta_bias && !allocate_float(call, "ddelta_bias", in.u, channels, nullptr, 1, &g->ddelta_bias))
    return false;
  if (in.initial_state && !allocate_given(call, "dinitial_state", in, &g->dinitial_state)) return false;
  if (!in.z) return true;
  if (all.dz) {
    g->dz = {Ref::to(all.dz.object), all.dz};
  } else if (!allocate_sequence(call, "dz", in.z, &g->dz)) {
    return false;
  }
  return !all.recompute_out_z || allocate_sequence(call, "out_z", all.out, &g->out_z);
}

// Fills the kernel's parameters with the gradients' addresses.
void describe(const BackwardInputs& all, const Gradients& g, selective_scan::Backward* scan) {
  const auto floats = [](const Output& output) { return static_cast<float*>(output.tensor.data); };
  scan->common = all.in.common;
  scan->dout = sequence(all.dout);
  scan->du = sequence_out(g.du.tensor);
  scan->ddelta = sequence_out(g.ddelta.tensor);
  scan->dA = floats(g.dA);
  const auto place = [&](const Output& output, float** sum, void** rounded) {
    const Element element = output.tensor.element;
    if (element == Element::Float16 || element == Element::Bfloat16)
      *rounded = output.tensor.data;
    else
      *sum = floats(output);
  };
  place(g.dB, &scan->dB, &scan->rounded_dB);
  place(g.dC, &scan->dC, &scan->rounded_dC);
  scan->dD = floats(g.dD);
  scan->ddelta_bias = floats(g.ddelta_bias);
  scan->dinitial_state = floats(g.dinitial_state);
  if (!all.in.z) return;
  scan->out = sequence(all.out);
  scan->dz = sequence_out(g.dz.tensor);
  if (g.out_z.object) scan->out_z = sequence_out(g.out_z.tensor);
}

// The gradient in its input's dtype: summed in float32, and rounded once. On a GPU the kernel
// has done that.
Ref rounded(const Call& call, const Tensor& of, Output& gradient) {
  if (of.element == gradient.tensor.element) return static_cast<Ref&&>(gradient.object);
  const Torch& torch = *call.torch;
  PyObject* dtype = of.element == Element::Float16 ? torch.float16 : torch.bfloat16;
  return Ref(PyObject_CallMethodObjArgs(gradient.object.get(), torch.names[kTo], dtype, nullptr));
}

// The order of upstream's module; gradients of absent inputs are None.
PyObject* result_list(const Call& call, const BackwardInputs& all, bool stateful, Gradients& g) {
  Ref dB = rounded(call, all.in.B, g.dB), dC = rounded(call, all.in.C, g.dC);
  if (!dB || !dC) return nullptr;
  g.dB.object = static_cast<Ref&&>(dB);
  g.dC.object = static_cast<Ref&&>(dC);
  Output* each[10] = {&g.du, &g.ddelta, &g.dA, &g.dB, &g.dC, &g.dD, &g.ddelta_bias};
  int count = 7;
  if (all.in.z) each[count++] = &g.dz;
  if (all.recompute_out_z) each[count++] = &g.out_z;
  if (stateful) each[count++] = &g.dinitial_state;
  Ref list(PyList_New(count));
  for (int i = 0; list && i < count; ++i) {
    if (!each[i]->object) each[i]->object = Ref::to(Py_None);
    PyList_SetItem(list.get(), i, each[i]->object.release());
  }
  return list.release();
}

PyObject* run(const Call& call, PyObject* const* arguments, bool stateful) {
  BackwardInputs all;
  selective_scan::Backward scan = {};
  if (!read_backward(call, arguments, stateful, &all, &scan)) return nullptr;
  ScanCall device;
  if (!device.begin(call, all.in.u)) return nullptr;
  Gradients gradients;
  if (!allocate_gradients(call, all, &gradients)) return nullptr;
  describe(all, gradients, &scan);
  if (!device.run(call, scan)) return nullptr;
  return result_list(call, all, stateful, gradients);
}

}  // namespace

PyObject* bwd(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"bwd", torch};
  if (count != kArguments) {
    refuse_as(PyExc_TypeError, call,
              "takes 14 arguments (u, delta, A, B, C, D, z, delta_bias, dout, x, out, dz, delta_softplus, "
              "recompute_out_z), got %d",
              static_cast<int>(count));
    return nullptr;
  }
  return run(call, arguments, false);
}

PyObject* bwd_stateful(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"bwd_stateful", torch};
  if (count != kStatefulArguments) {
    refuse_as(PyExc_TypeError, call,
              "takes 17 arguments (u, delta, A, B, C, D, z, delta_bias, dout, x, out, dz, delta_softplus, "
              "recompute_out_z, initial_state, cu_seqlens, dlast_state), got %d",
              static_cast<int>(count));
    return nullptr;
  }
  return run(call, arguments, true);
}

}  // namespace scankit
