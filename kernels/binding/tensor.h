// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/binding/torch_objects.h"

namespace scankit {

using Index = long long;

// The dtypes that the modules know; Other is any that they refuse.
enum class Element { Float32, Float16, Bfloat16, Float64, Complex64, Complex128, Int32, Other };
enum class DeviceKind { Cpu, Cuda };
inline constexpr int kMaxDims = 4;

// The description of a tensor. Borrowed from `object`, which must outlive it; without an object it is an
// optional argument that is None. Shape and strides are in elements.
struct Tensor {
  PyObject* object = nullptr;
  const char* name = "";
  void* data = nullptr;
  int dims = 0;
  Index shape[kMaxDims] = {}, stride[kMaxDims] = {};
  Element element = Element::Other;
  DeviceKind kind = DeviceKind::Cpu;
  int device = -1;  // -1 on the CPU, where DLPack says 0: caches are keyed by device

  explicit operator bool() const { return object != nullptr; }
};

// `function` is its name in the module, for messages.
struct Call {
  const char* function;
  const Torch* torch;
  // torch's current device is not the tensors': what allocates on the current one would take the other's.
  mutable bool torch_is_elsewhere = false;
};

// Sets RuntimeError (or `type`) "MODULE.FUNCTION: ..." and returns false.
[[gnu::format(printf, 2, 3)]] bool refuse(const Call& call, const char* format, ...);
[[gnu::format(printf, 3, 4)]] bool refuse_as(PyObject* type, const Call& call, const char* format, ...);

// The refusals of read_tensor.
bool refuse_kind(const Call& call, const Tensor& tensor);
bool refuse_dims(const Call& call, const Tensor& tensor, int dims);
bool refuse_negated(const Call& call, const Tensor& tensor);
bool refuse_conjugated(const Call& call, const Tensor& tensor);
bool is_empty(const Tensor& tensor);  // some dimension is 0
// Whether the tensor's last element is inside of its storage, which has `bytes`; its first one is
// number `offset`. A storage can be made smaller after a tensor was made, and a kernel would then read
// what is behind it.
bool check_storage(const Call& call, const Tensor& tensor, Index offset, Index bytes);

// Reads a dense tensor with memory on the CPU or a CUDA device. Everything else (fake, meta, sparse,
// conjugated, ...) is refused here, since neither the exchange API nor data_ptr() does that.
bool read_tensor(const Call& call, const char* name, PyObject* object, Tensor* tensor);
// None becomes a Tensor without object.
bool read_optional(const Call& call, const char* name, PyObject* object, Tensor* tensor);

// The data pointer and the device of a tensor that was just allocated on `like`'s kind of device, and of
// which everything else is known.
bool read_place(const Call& call, const Tensor& like, PyObject* object, void** data, int* device);

const char* element_name(Element element);

// What every function asks of its arguments. Each check sets RuntimeError and returns false where it fails.

struct ShapeText {
  char text[96];
};
ShapeText shape_text(const Index* shape, int dims);  // "(2, 3)"

// `meaning` names the dimensions.
bool check_shape(const Call& call, const Tensor& t, const Index* shape, int dims, const char* meaning);
bool check_element(const Call& call, const Tensor& t, Element element, const char* as_what);
bool check_device(const Call& call, const Tensor& t, const Tensor& beside);
// Of a tensor (batch, dim, length).
bool read_sizes(const Call& call, const Tensor& t, int* batch, int* dim, int* length);
bool check_unit_stride(const Call& call, const Tensor& t);  // in the last dimension

// 1, 0, or -1 with an error set.
int read_flag(const Call& call, const char* name, PyObject* object);

// A new tensor and its description. torch allocates all of them itself, so that its caching allocator,
// streams and CUDA graphs know them.
struct Output {
  Ref object;
  Tensor tensor;
};

// (batch, dim, length) as torch.empty_like makes it: dtype, device and, where it is dense, layout of `like`.
// Unit last stride whatever that layout.
bool allocate_sequence(const Call& call, const char* name, const Tensor& like, Output* output);

// Shape and strides, in elements, of `dims` dimensions (at most kMaxDims). Borrowed from the caller.
struct Layout {
  const Index *shape, *strides;
  int dims;
};

// torch.empty_like. This function and the next one are the only ones that call torch; python_tensor.cc
// and binding_torch/libtorch.cc each implement both. allocate_* here are made of them.
bool allocate_like(const Call& call, const char* name, const Tensor& like, Output* output);
// torch.empty_strided, on the device of `beside`.
bool allocate_strided(const Call& call, const char* name, const Tensor& beside, Element element,
                      const Layout& layout, Output* output);

// float32 on the device of `beside`; strides null: contiguous.
bool allocate_float(const Call& call, const char* name, const Tensor& beside, const Index* shape,
                    const Index* strides, int dims, Output* output);

// The same with the dtype of `like`, a float or complex one.
bool allocate_number(const Call& call, const char* name, const Tensor& like, const Index* shape,
                     const Index* strides, int dims, Output* output);

// `bytes` of memory on the device of `beside`.
bool allocate_bytes(const Call& call, const Tensor& beside, size_t bytes, Output* output);

// What torch keeps in its own objects, at places that are no interface and are found by experiment.

// Whether `object`, exactly a torch.Tensor or a Parameter, may be a lazily negated or conjugated view.
// False: it is neither. True: it is one, or that cannot be seen from here, and torch has to be asked. The
// first call makes tensors on the CPU. Never leaves a Python error. Callers hold the GIL.
// Tensor.is_neg() takes 0.1 us, mostly for releasing and taking the GIL, and a tiny scan asks up to
// thirteen tensors. This function reads two bits of the dispatch keys in torch's own object, to which the
// Python object points. Their position is no interface of torch, so that none is assumed: torch_layout.cc
// finds it by comparing tensors that are such views with tensors that are not.
bool may_be_lazy(const Torch& torch, const PyObject* object);

// The dispatch keys of such an object. They also say which kind of device it is on and what layout it
// has: what holds for one tensor holds for all tensors with the same keys. 0 where they cannot be
// seen from here.
uint64_t dispatch_keys(const Torch& torch, const PyObject* object);

// torch's own object, to which such an object points; null: not known from here.
const void* torch_object(const Torch& torch, const PyObject* object);

// False until may_be_lazy was called, and where the places could not be found.
bool lazy_bits_are_known();

// Where in its storage a tensor begins, in elements, and how many bytes the storage has. `object` must be
// exactly a torch.Tensor or a Parameter. False where that cannot be seen from here; then torch has to be
// asked. Never leaves a Python error. Callers hold the GIL.
// torch's own three methods for this take 0.14 us for each tensor, and a tiny scan has twelve. Here
// too no offset in torch's objects is assumed: each number is searched in tensors of which it is
// known, and must be found in exactly one place.
bool read_storage_size(const Torch& torch, const PyObject* object, Index* offset, Index* bytes);

}  // namespace scankit
