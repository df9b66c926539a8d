// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/binding_vmamba/vmamba.h"

#include "kernels/selective_scan/binding_universal/arguments.h"

// VMamba's modules call the functions of selective_scan_cuda with converted arguments, and convert the
// results back. Conversions use torch's own methods: they are rare and need not be fast.
namespace scankit {
namespace {

struct VmambaArguments {
  PyObject *u, *delta, *A, *B, *C, *D, *delta_bias;
  PyObject *dout, *x;  // None in a forward
  PyObject *softplus, *nrows;
  bool out_float, shares_delta;
};

Ref contiguous(PyObject* object) { return Ref(PyObject_CallMethod(object, "contiguous", nullptr)); }

Ref converted(const Call& call, PyObject* object, PyObject* dtype) {
  return Ref(PyObject_CallMethodObjArgs(object, call.torch->names[kTo], dtype, nullptr));
}

// What the scan is called with: the arguments themselves, or their replacements.
struct Prepared {
  Ref u, delta, B, C, delta_bias, dout;
  PyObject* dtype = nullptr;  // to which gradients are rounded; null: they have it already
  Index batch = 0, sharing = 1, channels = 0, length = 0;  // sharing: channels of u for each of delta
};

// What VMamba's modules demand beyond the scan's own checks.
bool check_vmamba(const Call& call, const VmambaArguments& a, Tensor* u, Tensor* delta) {
  Tensor A, B, C;
  if (!read_tensor(call, "u", a.u, u) || !read_tensor(call, "delta", a.delta, delta) ||
      !read_tensor(call, "A", a.A, &A) || !read_tensor(call, "B", a.B, &B) ||
      !read_tensor(call, "C", a.C, &C))
    return false;
  if (!check_element(call, A, Element::Float32, "")) return false;
  const Tensor* both[] = {&B, &C};
  for (const Tensor* t : both)
    if (t->dims != 4)
      return refuse(call, "%s has shape %s, expected four dimensions: (batch, groups, states, length)",
                    t->name, shape_text(t->shape, t->dims).text);
  if (!is_integer(a.nrows) || PyLong_AsLong(a.nrows) < 1) {
    PyErr_Clear();
    return refuse_as(PyExc_TypeError, call, "nrows must be a number from 1 on");
  }
  return true;
}

// Finds out how many channels of u share one of delta. Only for oflex.
bool check_sharing(const Call& call, const Tensor& u, const Tensor& delta, Prepared* to) {
  if (u.dims != 3 || delta.dims != 3) return true;  // the scan says so itself
  to->batch = u.shape[0];
  to->channels = delta.shape[1];
  to->length = u.shape[2];
  if (to->channels == u.shape[1]) return true;
  if (to->channels < 1 || u.shape[1] % to->channels != 0)
    return refuse(call, "delta has %lld channels, which do not divide the %lld of u", to->channels,
                  u.shape[1]);
  const Index shape[] = {u.shape[0], to->channels, u.shape[2]};
  to->sharing = u.shape[1] / to->channels;
  return check_element(call, delta, u.element, ", the dtype of u") &&
         check_shape(call, delta, shape, 3, "(batch, channels of delta, length)");
}

// delta with each channel repeated `sharing` times, as the scan wants it.
Ref repeated_delta(const Prepared& p, PyObject* delta) {
  Ref apart(PyObject_CallMethod(delta, "unsqueeze", "i", 2));
  Ref wide(apart
               ? PyObject_CallMethod(apart.get(), "expand", "LLLL", p.batch, p.channels, p.sharing, p.length)
               : nullptr);
  return Ref(
      wide ? PyObject_CallMethod(wide.get(), "reshape", "LLL", p.batch, p.channels * p.sharing, p.length)
           : nullptr);
}
Ref repeated_bias(const Call& call, const Prepared& p, PyObject* bias) {
  Tensor t;
  const Index shape[] = {p.channels};
  if (!read_tensor(call, "delta_bias", bias, &t) || !check_shape(call, t, shape, 1, "(channels of delta,)"))
    return Ref();
  Ref apart(PyObject_CallMethod(bias, "unsqueeze", "i", 1));
  Ref wide(apart ? PyObject_CallMethod(apart.get(), "expand", "LL", p.channels, p.sharing) : nullptr);
  Ref flat(wide ? PyObject_CallMethod(wide.get(), "reshape", "L", p.channels * p.sharing) : nullptr);
  return flat ? contiguous(flat.get()) : Ref();  // of one channel it is a view with stride 0
}

// Converts all inputs to float32, which represents every 16-bit number exactly. The scan's out and
// gradients are float32 then.
bool widen(const Call& call, Prepared* p) {
  Ref* each[] = {&p->u, &p->delta, &p->B, &p->C, &p->dout};
  for (Ref* object : each) {
    if (!*object || object->get() == Py_None) continue;
    *object = converted(call, object->get(), call.torch->float32);
    if (!*object) return false;
  }
  return true;
}

// Whether the scan has to compute in float32: out_float demands it, or dout is float32, or gradients
// are summed afterwards.
bool is_wide(const Call& call, const VmambaArguments& a, const Tensor& u, const Prepared& p, bool* wide) {
  *wide = a.out_float;
  if (a.dout == Py_None || !a.shares_delta) return true;
  Tensor dout;
  if (!read_tensor(call, "dout", a.dout, &dout)) return false;
  if (dout.element != u.element && dout.element != Element::Float32)
    return refuse(call, "dout is %s, expected float32 or the dtype of u", element_name(dout.element));
  // The sum over the channels that share a delta is rounded once.
  *wide = dout.element == Element::Float32 || p.sharing > 1;
  return true;
}

bool prepare(const Call& call, const VmambaArguments& a, Prepared* p) {
  Tensor u, delta;
  if (!check_vmamba(call, a, &u, &delta) || (a.shares_delta && !check_sharing(call, u, delta, p)))
    return false;
  p->u = Ref::to(a.u);
  p->B = Ref::to(a.B);
  p->C = Ref::to(a.C);
  p->dout = Ref::to(a.dout);
  p->delta = p->sharing > 1 ? repeated_delta(*p, a.delta) : Ref::to(a.delta);
  if (!p->delta) return false;
  p->delta_bias = p->sharing > 1 && a.delta_bias != Py_None ? repeated_bias(call, *p, a.delta_bias)
                                                            : Ref::to(a.delta_bias);
  bool wide = false;
  if (!p->delta_bias || !is_wide(call, a, u, *p, &wide)) return false;
  if (!wide || (u.element != Element::Float16 && u.element != Element::Bfloat16)) return true;
  // The dtypes are checked before the conversion, after which the scan could not see a difference.
  const Tensor* first = &u;
  Tensor rest[3];
  PyObject* const objects[] = {a.delta, a.B, a.C};
  const char* const names[] = {"delta", "B", "C"};
  for (int i = 0; i < 3; ++i)
    if (!read_tensor(call, names[i], objects[i], &rest[i]) ||
        !check_element(call, rest[i], first->element, ", the dtype of u"))
      return false;
  p->dtype = u.element == Element::Float16 ? call.torch->float16 : call.torch->bfloat16;
  return widen(call, p);
}

bool replace(PyObject* list, int at, Ref object) {
  return object && PyList_SetItem(list, at, object.release()) == 0;
}

// Sums the gradients of delta and delta_bias (items 1 and 6) over the channels that share one.
bool gather(const Prepared& p, PyObject* list) {
  Ref apart(PyObject_CallMethod(PyList_GetItem(list, 1), "reshape", "LLLL", p.batch, p.channels, p.sharing,
                                p.length));
  if (!apart || !replace(list, 1, Ref(PyObject_CallMethod(apart.get(), "sum", "i", 2)))) return false;
  PyObject* bias = PyList_GetItem(list, 6);
  if (bias == Py_None) return true;
  apart = Ref(PyObject_CallMethod(bias, "reshape", "LL", p.channels, p.sharing));
  return apart && replace(list, 6, Ref(PyObject_CallMethod(apart.get(), "sum", "i", 1)));
}

bool check_count(const Call& call, Py_ssize_t count, Py_ssize_t expected, const char* names) {
  return count == expected || refuse_as(PyExc_TypeError, call, "takes %d arguments (%s), got %d",
                                        static_cast<int>(expected), names, static_cast<int>(count));
}

PyObject* run_fwd(const Call& call, const VmambaArguments& a) {
  Prepared p;
  if (!prepare(call, a, &p)) return nullptr;
  PyObject* const arguments[] = {p.u.get(), p.delta.get(),      a.A,       p.B.get(), p.C.get(), a.D,
                                 Py_None,   p.delta_bias.get(), a.softplus};
  Ref list(fwd(nullptr, arguments, 9));
  if (!list || !a.shares_delta) return list.release();
  // Its out is contiguous whatever delta's layout is.
  return replace(list.get(), 0, contiguous(PyList_GetItem(list.get(), 0))) ? list.release() : nullptr;
}

PyObject* run_bwd(const Call& call, const VmambaArguments& a) {
  Prepared p;
  if (!prepare(call, a, &p)) return nullptr;
  PyObject* const arguments[] = {
      p.u.get(),          p.delta.get(), a.A, p.B.get(), p.C.get(), a.D,        Py_None,
      p.delta_bias.get(), p.dout.get(),  a.x, Py_None,   Py_None,   a.softplus, Py_False};
  Ref list(bwd(nullptr, arguments, 14));
  if (!list || (p.sharing > 1 && !gather(p, list.get()))) return nullptr;
  constexpr int kRounded[] = {0, 1, 3, 4};  // du, ddelta, dB, dC
  for (int i : kRounded)
    if (p.dtype && !replace(list.get(), i, converted(call, PyList_GetItem(list.get(), i), p.dtype)))
      return nullptr;
  return list.release();
}

}  // namespace

PyObject* vmamba_fwd(Vmamba module, PyObject* const* a, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"fwd", torch};
  const bool oflex = module == Vmamba::Oflex;
  const char* names = oflex ? "u, delta, A, B, C, D, delta_bias, delta_softplus, nrows, out_float"
                            : "u, delta, A, B, C, D, delta_bias, delta_softplus, nrows";
  if (!check_count(call, count, oflex ? 10 : 9, names)) return nullptr;
  const int out_float = oflex ? read_flag(call, "out_float", a[9]) : 0;
  if (out_float < 0) return nullptr;
  return run_fwd(
      call, {a[0], a[1], a[2], a[3], a[4], a[5], a[6], Py_None, Py_None, a[7], a[8], out_float == 1, oflex});
}

PyObject* vmamba_bwd(Vmamba module, PyObject* const* a, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"bwd", torch};
  if (!check_count(call, count, 11, "u, delta, A, B, C, D, delta_bias, dout, x, delta_softplus, nrows"))
    return nullptr;
  return run_bwd(call, {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], false,
                        module == Vmamba::Oflex});
}

}  // namespace scankit
