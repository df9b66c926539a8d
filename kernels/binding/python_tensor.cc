// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/module.h"
#include "kernels/binding/tensor.h"
#include "kernels/common/threads.h"

// Two ways to read a tensor: torch's DLPack exchange API (2.10 and newer), one call for everything, or
// Python attributes and methods, one call for each fact. Both are followed by checks that torch's own
// functions leave out.
namespace scankit {

const Binding kBinding = {"universal", nullptr, lazy_bits_are_known};

namespace {

// DLPack's type code, bits of one number (a complex one counts as one), and lanes of a vector type.
Element element_of(uint8_t code, int bits, int lanes) {
  if (lanes != 1) return Element::Other;
  if (code == dlpack::kFloat) {
    return bits == 32   ? Element::Float32
           : bits == 16 ? Element::Float16
           : bits == 64 ? Element::Float64
                        : Element::Other;
  }
  if (code == dlpack::kInt && bits == 32) return Element::Int32;
  if (code == dlpack::kBfloat && bits == 16) return Element::Bfloat16;
  if (code != dlpack::kComplex) return Element::Other;
  return bits == 64 ? Element::Complex64 : bits == 128 ? Element::Complex128 : Element::Other;
}

// tensor_from_object() fills a borrowed description: its shape and strides live as long as the tensor.
bool read_through_dlpack(const Call& call, Tensor* t) {
  dlpack::Tensor d;
  if (call.torch->dlpack->tensor_from_object(t->object, &d) != 0) return refuse_kind(call, *t);
  if (d.device_type != dlpack::kCpu && d.device_type != dlpack::kCuda) return refuse_kind(call, *t);
  if (d.ndim > kMaxDims) return refuse_dims(call, *t, d.ndim);
  t->data = static_cast<char*>(d.data) + d.byte_offset;
  if (!d.data) t->data = nullptr;
  t->dims = d.ndim;
  for (int i = 0; i < d.ndim; ++i) t->shape[i] = d.shape[i], t->stride[i] = d.strides[i];
  t->element = element_of(d.code, d.bits, d.lanes);
  t->kind = d.device_type == dlpack::kCuda ? DeviceKind::Cuda : DeviceKind::Cpu;
  t->device = d.device_type == dlpack::kCuda ? d.device_id : -1;
  return true;
}

// A tuple of integers; -1 on an error.
int read_sizes(PyObject* tuple, Index* to) {
  const Py_ssize_t count = tuple ? PyTuple_Size(tuple) : -1;  // -1, with an error set, of another type
  for (Py_ssize_t i = 0; i < count && i < kMaxDims; ++i) {
    to[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (to[i] == -1 && PyErr_Occurred()) return -1;
  }
  return static_cast<int>(count);
}

bool is_true(PyObject* object) { return object && PyObject_IsTrue(object) == 1; }

Element element_of(const Torch& torch, PyObject* dtype) {
  const struct {
    PyObject* object;
    Element element;
  } known[] = {{torch.float32, Element::Float32},     {torch.float16, Element::Float16},
               {torch.bfloat16, Element::Bfloat16},   {torch.float64, Element::Float64},
               {torch.complex64, Element::Complex64}, {torch.complex128, Element::Complex128},
               {torch.int32, Element::Int32}};
  for (const auto& each : known)
    if (each.object == dtype) return each.element;
  return Element::Other;
}

// Remembers the dispatch keys of the last CUDA tensor: a tensor with the same keys is on CUDA, too,
// without asking torch.
bool is_on_cuda(const Torch& torch, PyObject* object, bool exact) {
  static uint64_t known = 0;  // atomic
  const uint64_t keys = exact ? dispatch_keys(torch, object) : 0;
  if (keys != 0 && keys == __atomic_load_n(&known, __ATOMIC_RELAXED)) return true;
  const bool on_cuda = is_true(Ref(PyObject_GetAttr(object, torch.names[kIsCuda])).get());
  if (on_cuda) __atomic_store_n(&known, keys, __ATOMIC_RELAXED);
  return on_cuda;
}

// `exact`: the type is torch.Tensor or Parameter, so that no subclass overrides a method.
bool read_through_attributes(const Call& call, bool exact, Tensor* t) {
  const Torch& torch = *call.torch;
  const bool on_cuda = is_on_cuda(torch, t->object, exact);
  if (!on_cuda && !is_true(Ref(PyObject_GetAttr(t->object, torch.names[kIsCpu])).get()))
    return refuse_kind(call, *t);
  Ref shape(PyObject_GetAttr(t->object, torch.names[kShape]));
  Ref stride(shape ? call_method(torch, t->object, kStride) : Ref());
  Ref dtype(stride ? PyObject_GetAttr(t->object, torch.names[kDtype]) : nullptr);
  Ref pointer(dtype ? call_method(torch, t->object, kDataPtr) : Ref());
  Ref device(pointer ? call_method(torch, t->object, kGetDevice) : Ref());
  if (!device) return refuse_kind(call, *t);
  t->dims = read_sizes(shape.get(), t->shape);
  if (t->dims > kMaxDims) return refuse_dims(call, *t, t->dims);
  if (t->dims < 0 || read_sizes(stride.get(), t->stride) != t->dims) return refuse_kind(call, *t);
  t->data = reinterpret_cast<void*>(PyLong_AsUnsignedLongLong(pointer.get()));
  t->element = element_of(torch, dtype.get());
  t->kind = on_cuda ? DeviceKind::Cuda : DeviceKind::Cpu;
  t->device = on_cuda ? static_cast<int>(PyLong_AsLong(device.get())) : -1;
  return PyErr_Occurred() ? refuse_kind(call, *t) : true;
}

// A view with the negative or conjugate bit has the data pointer of the original values.
bool refuse_lazy_bits(const Call& call, const Tensor& t) {
  const Torch& torch = *call.torch;
  if (is_true(call_method(torch, t.object, kIsNeg).get())) return refuse_negated(call, t);
  const bool complex = t.element == Element::Complex64 || t.element == Element::Complex128;
  if (complex && is_true(call_method(torch, t.object, kIsConj).get())) return refuse_conjugated(call, t);
  if (PyErr_Occurred()) return refuse_kind(call, t);
  return true;
}

// Reading behind a storage's end crashes the process on the CPU, and returns other data of the process on
// a GPU. The positions that read_storage_size() found on the CPU are valid for CUDA tensors as well, since
// the storage object is the same. Where none were found, only CPU tensors are checked by asking torch: its
// three calls would be felt in every launch.
bool check_memory(const Call& call, bool exact, const Tensor& t) {
  const Torch& torch = *call.torch;
  Index known_offset = 0, known_size = 0;
  if (exact && read_storage_size(torch, t.object, &known_offset, &known_size))
    return check_storage(call, t, known_offset, known_size);
  if (t.kind != DeviceKind::Cpu) return true;
  if (!torch.names[kStorage]) return true;
  const Ref storage = call_method(torch, t.object, kStorage);
  const Ref bytes = storage ? call_method(torch, storage.get(), kNbytes) : Ref();
  const Ref offset = bytes ? call_method(torch, t.object, kStorageOffset) : Ref();
  if (!offset) return refuse_kind(call, t);
  const Index size = PyLong_AsLongLong(bytes.get()), first = PyLong_AsLongLong(offset.get());
  return PyErr_Occurred() ? refuse_kind(call, t) : check_storage(call, t, first, size);
}

}  // namespace

bool read_tensor(const Call& call, const char* name, PyObject* object, Tensor* tensor) {
  const Torch& torch = *call.torch;
  tensor->object = object;
  tensor->name = name;
  const PyObject* type = type_of(object);
  const bool exact = type == torch.tensor_type || type == torch.parameter_type;
  if (!exact) {
    const int is_tensor = PyObject_IsInstance(object, torch.tensor_type);
    if (is_tensor < 0) return false;
    if (!is_tensor) return refuse_as(PyExc_TypeError, call, "%s must be a torch.Tensor", name);
  }
  if (!(torch.dlpack ? read_through_dlpack(call, tensor) : read_through_attributes(call, exact, tensor)))
    return false;
  if (!tensor->data) return is_empty(*tensor) || refuse_kind(call, *tensor);
  return ((exact && !may_be_lazy(torch, object)) || refuse_lazy_bits(call, *tensor)) &&
         check_memory(call, exact, *tensor);
}

bool read_place(const Call& call, const Tensor& like, PyObject* object, void** data, int* device) {
  const Torch& torch = *call.torch;
  if (torch.dlpack) {
    dlpack::Tensor d;
    if (torch.dlpack->tensor_from_object(object, &d) != 0) return false;
    *data = d.data ? static_cast<char*>(d.data) + d.byte_offset : nullptr;
    *device = d.device_type == dlpack::kCuda ? d.device_id : -1;
    return true;
  }
  Ref pointer = call_method(torch, object, kDataPtr);
  if (!pointer) return false;
  *data = reinterpret_cast<void*>(PyLong_AsUnsignedLongLong(pointer.get()));
  *device = -1;
  if (like.kind == DeviceKind::Cpu) return !PyErr_Occurred();
  Ref index = call_method(torch, object, kGetDevice);
  if (index) *device = static_cast<int>(PyLong_AsLong(index.get()));
  return !PyErr_Occurred();
}

// New tensors without libtorch: by calls of torch's Python functions.

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
// given by its hash, and replaces what was there. Who finds the cache in use by another thread makes its own.
class LayoutTuples {
 public:
  Ref find(const Layout& layout, PyObject* dtype) {
    Entry& entry = entries_[place_of(layout, dtype)];
    if (const TryLock lock(&in_use_); lock && is(entry, layout, dtype)) return Ref::to(entry.tuple);
    Ref sizes = size_tuple(layout.shape, layout.dims), strides = size_tuple(layout.strides, layout.dims);
    Ref tuple(PyTuple_New(3));
    if (!sizes || !strides || !tuple || PyTuple_SetItem(tuple.get(), 0, sizes.release()) != 0 ||
        PyTuple_SetItem(tuple.get(), 1, strides.release()) != 0 ||
        PyTuple_SetItem(tuple.get(), 2, Ref::to(dtype).release()) != 0)
      return Ref();
    Ref old;  // dropped after the lock: that is Python's code
    const TryLock lock(&in_use_);
    if (!lock) return tuple;
    old = Ref(entry.tuple);
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
  int in_use_ = 0;  // TryLock's
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
  if (type_of(object.get()) != call.torch->tensor_type)
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
  static LayoutTuples known;
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
