// SPDX-License-Identifier: Apache-2.0
// What the classic flavor has in place of binding/python_*.cc: tensors read and allocated by libtorch. The
// only file that includes torch's headers, and the only one that the user's compiler sees. python_variable.h
// is the least that has THPVariable, whose layout changed in torch 2.10; torch/extension.h takes three times
// its seconds and twice its memory. Operators by their _ops headers: those of ATen/ops include the
// dispatcher's inline wrappers too.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like_ops.h>
#include <ATen/ops/empty_strided_ops.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/version.h>

#include <exception>
#include <utility>

#include "kernels/binding/module.h"
#include "kernels/binding/tensor.h"

// C++ exceptions must not reach Python's C code: every function that calls torch catches them. Errors of
// allocations are passed on as torch raises them; errors of reading become a refusal.
namespace scankit {

extern const Binding kBinding;
const Binding kBinding = {"torch", TORCH_VERSION, nullptr};

namespace {

// Sets the Python error that torch's own functions would raise, such as
// torch.OutOfMemoryError. Always false.
bool raise_torchs() {
  torch::translate_exception_to_python(std::current_exception());
  return false;
}

Element element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return Element::Float32;
    case at::kHalf:
      return Element::Float16;
    case at::kBFloat16:
      return Element::Bfloat16;
    case at::kDouble:
      return Element::Float64;
    case at::kComplexFloat:
      return Element::Complex64;
    case at::kComplexDouble:
      return Element::Complex128;
    case at::kInt:
      return Element::Int32;
    default:
      return Element::Other;
  }
}

at::ScalarType type_of(Element element) {
  switch (element) {
    case Element::Float16:
      return at::kHalf;
    case Element::Bfloat16:
      return at::kBFloat16;
    case Element::Complex64:
      return at::kComplexFloat;
    case Element::Complex128:
      return at::kComplexDouble;
    case Element::Float64:
      return at::kDouble;
    default:
      return at::kFloat;
  }
}

// Fills the description. Throws for tensors without sizes or memory, such as nested or fake ones.
bool describe(const Call& call, const at::Tensor& tensor, Tensor* t) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage() ||
      !(tensor.device().is_cpu() || tensor.device().is_cuda()))
    return refuse_kind(call, *t);
  if (tensor.dim() > kMaxDims) return refuse_dims(call, *t, static_cast<int>(tensor.dim()));
  t->dims = static_cast<int>(tensor.dim());
  for (int i = 0; i < t->dims; ++i) t->shape[i] = tensor.size(i), t->stride[i] = tensor.stride(i);
  t->element = element_of(tensor.scalar_type());
  t->kind = tensor.device().is_cuda() ? DeviceKind::Cuda : DeviceKind::Cpu;
  t->device = t->kind == DeviceKind::Cuda ? tensor.get_device() : -1;
  t->data = tensor.data_ptr();
  if (!t->data) return is_empty(*t) || refuse_kind(call, *t);
  if (tensor.is_neg()) return refuse_negated(call, *t);
  if (tensor.is_conj()) return refuse_conjugated(call, *t);
  return check_storage(call, *t, tensor.storage_offset(), static_cast<Index>(tensor.storage().nbytes()));
}

bool take(const Call& call, const char* name, at::Tensor made, Output* output) {
  output->object = Ref(THPVariable_Wrap(std::move(made)));
  return output->object && read_tensor(call, name, output->object.get(), &output->tensor);
}

}  // namespace

bool read_tensor(const Call& call, const char* name, PyObject* object, Tensor* tensor) {
  tensor->object = object;
  tensor->name = name;
  const int is_tensor = THPVariable_CheckExact(object) ? 1 : PyObject_IsInstance(object, THPVariableClass);
  if (is_tensor < 0) return false;
  if (!is_tensor) return refuse_as(PyExc_TypeError, call, "%s must be a torch.Tensor", name);
  try {
    return describe(call, THPVariable_Unpack(object), tensor);
  } catch (...) {
    return refuse_kind(call, *tensor);
  }
}

bool allocate_like(const Call& call, const char* name, const Tensor& like, Output* output) {
  try {
    return take(call, name, at::_ops::empty_like::call(THPVariable_Unpack(like.object), {}, {}, {}, {}, {}),
                output);
  } catch (...) {
    return raise_torchs();
  }
}

bool allocate_strided(const Call& call, const char* name, const Tensor& beside, Element element,
                      const Layout& layout, Output* output) {
  int64_t shape[kMaxDims], strides[kMaxDims];
  for (int i = 0; i < layout.dims; ++i) shape[i] = layout.shape[i], strides[i] = layout.strides[i];
  const auto count = static_cast<size_t>(layout.dims);
  const auto device = beside.kind == DeviceKind::Cpu
                          ? at::Device(at::kCPU)
                          : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(beside.device));
  try {
    return take(call, name,
                at::_ops::empty_strided::call(c10::fromIntArrayRefSlow({shape, count}),
                                              c10::fromIntArrayRefSlow({strides, count}), type_of(element),
                                              {}, device, {}),
                output);
  } catch (...) {
    return raise_torchs();
  }
}

}  // namespace scankit
