// SPDX-License-Identifier: Apache-2.0
// New tensors without libtorch: by calls of torch's Python functions.
#include "kernels/binding/allocate.h"

namespace scankit {
namespace {

bool take(const Call& call, const char* name, Ref object, Output* output) {
  if (!object) return false;
  output->object = static_cast<Ref&&>(object);
  return read_tensor(call, name, output->object.get(), &output->tensor);
}

Ref size_tuple(const Index* sizes, int count) {
  Ref tuple(PyTuple_New(count));
  for (int i = 0; tuple && i < count; ++i) {
    PyObject* size = PyLong_FromLongLong(sizes[i]);
    if (!size || PyTuple_SetItem(tuple.get(), i, size) != 0) return Ref();
  }
  return tuple;
}

// Tuples (sizes, strides, dtype) for torch's functions. A model asks for the same few again and again, and
// making them takes a third of the time of an allocation. A direct-mapped cache: each layout has one slot,
// given by its hash, and replaces what was there.
class LayoutTuples {
 public:
  Ref find(const Layout& layout, PyObject* dtype) {
    Entry& entry = entries_[place_of(layout, dtype)];
    if (is(entry, layout, dtype)) return Ref::to(entry.tuple);
    Ref sizes = size_tuple(layout.shape, layout.dims), strides = size_tuple(layout.strides, layout.dims);
    Ref tuple(PyTuple_New(3));
    if (!sizes || !strides || !tuple || PyTuple_SetItem(tuple.get(), 0, sizes.release()) != 0 ||
        PyTuple_SetItem(tuple.get(), 1, strides.release()) != 0 ||
        PyTuple_SetItem(tuple.get(), 2, Ref::to(dtype).release()) != 0)
      return Ref();
    Ref old(entry.tuple);
    entry.tuple = Ref::to(tuple.get()).release();
    entry.dtype = dtype;
    entry.dims = layout.dims;
    for (int i = 0; i < layout.dims; ++i)
      entry.shape[i] = layout.shape[i], entry.steps[i] = layout.strides[i];
    return tuple;
  }

 private:
  static constexpr unsigned kEntries = 32;
  struct Entry {
    int dims;
    Index shape[kMaxDims], steps[kMaxDims];
    PyObject* dtype;  // torch's own, which live as long as torch
    PyObject* tuple;  // null: empty
  };

  static unsigned place_of(const Layout& layout, const PyObject* dtype) {
    unsigned long long mix = reinterpret_cast<unsigned long long>(dtype) + static_cast<unsigned>(layout.dims);
    for (int i = 0; i < layout.dims; ++i)
      mix = (mix ^ static_cast<unsigned long long>(layout.shape[i])) * 0x9e3779b97f4a7c15u +
            static_cast<unsigned long long>(layout.strides[i]);
    return static_cast<unsigned>(mix * 0x9e3779b97f4a7c15u >> 32) % kEntries;
  }
  static bool is(const Entry& entry, const Layout& layout, const PyObject* dtype) {
    bool same = entry.tuple && entry.dtype == dtype && entry.dims == layout.dims;
    for (int i = 0; same && i < layout.dims; ++i)
      same = entry.shape[i] == layout.shape[i] && entry.steps[i] == layout.strides[i];
    return same;
  }

  Entry entries_[kEntries] = {};
};

// The keyword arguments dtype and device of torch.empty_strided.
Ref keywords(const Call& call, PyObject* dtype, const Tensor& beside) {
  Ref dict(PyDict_New());
  Ref device(dict ? PyObject_GetAttr(beside.object, call.torch->names[kDevice]) : nullptr);
  if (!device || PyDict_SetItem(dict.get(), call.torch->names[kDtype], dtype) != 0 ||
      PyDict_SetItem(dict.get(), call.torch->names[kDevice], device.get()) != 0)
    return Ref();
  return dict;
}

PyObject* dtype_object(const Torch& torch, Element element) {
  switch (element) {
    case Element::Float16:
      return torch.float16;
    case Element::Bfloat16:
      return torch.bfloat16;
    case Element::Complex64:
      return torch.complex64;
    case Element::Complex128:
      return torch.complex128;
    case Element::Float64:
      return torch.float64;
    default:
      return torch.float32;
  }
}

// Describes a new tensor from what was asked for, so that only its address has to be read. If a mode of
// torch's returned an object of another type, that is read like any tensor.
bool take_new(const Call& call, const char* name, const Tensor& beside, Element element, const Layout& layout,
              Ref object, Output* output) {
  if (!object) return false;
  Tensor& t = output->tensor;
  if (reinterpret_cast<PyObject*>(Py_TYPE(object.get())) != call.torch->tensor_type)
    return take(call, name, static_cast<Ref&&>(object), output);
  if (!read_place(call, beside, object.get(), &t.data, &t.device)) return false;
  output->object = static_cast<Ref&&>(object);
  t.object = output->object.get();
  t.name = name;
  t.dims = layout.dims;
  for (int i = 0; i < layout.dims; ++i) t.shape[i] = layout.shape[i], t.stride[i] = layout.strides[i];
  t.element = element;
  t.kind = beside.kind;
  return true;
}

// torch._C._dynamo.guards._empty_strided_cuda, which takes a third of torch.empty_strided's time. It
// allocates on torch's current device, and it is private: torch 2.6 to 2.15 have it in this form. False
// without an error where the result is not what was asked for; the caller then takes the public function.
bool allocate_fast(const Call& call, const char* name, const Tensor& beside, Element element,
                   const Layout& layout, PyObject* arguments, Output* output) {
  PyObject* function = call.torch->empty_strided_cuda;
  if (!function || call.torch_is_elsewhere) return false;
  Ref object = call_function(function, call.torch->empty_strided_cuda_direct, arguments);
  if (take_new(call, name, beside, element, layout, static_cast<Ref&&>(object), output) &&
      output->tensor.device == beside.device)
    return true;
  PyErr_Clear();
  return false;
}

}  // namespace

bool allocate_like(const Call& call, const char* name, const Tensor& like, Output* output) {
  return take(call, name, Ref(PyObject_CallFunctionObjArgs(call.torch->empty_like, like.object, nullptr)),
              output);
}

bool allocate_strided(const Call& call, const char* name, const Tensor& beside, Element element,
                      const Layout& layout, Output* output) {
  static LayoutTuples known;  // the GIL guards it
  PyObject* dtype = dtype_object(*call.torch, element);
  const Ref all = known.find(layout, dtype);
  if (!all) return false;
  if (beside.kind == DeviceKind::Cuda &&
      allocate_fast(call, name, beside, element, layout, all.get(), output))
    return true;
  const Ref arguments(PyTuple_GetSlice(all.get(), 0, 2)), more = keywords(call, dtype, beside);
  if (!arguments || !more) return false;
  return take_new(call, name, beside, element, layout,
                  Ref(PyObject_Call(call.torch->empty_strided, arguments.get(), more.get())), output);
}

}  // namespace scankit
