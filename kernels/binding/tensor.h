// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/torch_objects.h"

namespace scankit {

using Index = long long;

enum class Element { Float32, Float16, Bfloat16, Float64, Complex64, Complex128, Int32, Other };
enum class DeviceKind { Cpu, Cuda };
inline constexpr int kMaxDims = 4;

// A tensor's description, borrowed from `object`, which must outlive it. object null: an optional that is
// None.
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
// A storage of `bytes`, in which the tensor's first element is the one number `offset`, holds the last one
// too: storages can be made smaller behind a tensor's back, and a kernel would read what is behind them.
bool check_storage(const Call& call, const Tensor& tensor, Index offset, Index bytes);

// Reads a dense tensor with memory on the CPU or a CUDA device; anything else (fake, meta, sparse,
// conjugated, ...) is refused here, because neither the exchange API nor data_ptr() does so.
bool read_tensor(const Call& call, const char* name, PyObject* object, Tensor* tensor);
// None becomes a Tensor without object.
bool read_optional(const Call& call, const char* name, PyObject* object, Tensor* tensor);

// Where a new tensor lies, of which everything else is known: on `like`'s kind of device.
bool read_place(const Call& call, const Tensor& like, PyObject* object, void** data, int* device);

const char* element_name(Element element);

}  // namespace scankit
