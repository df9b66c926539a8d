// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/torch_objects.h"

#include <dlfcn.h>
#include <string.h>

namespace scankit {
namespace {

constexpr const char* kNames[] = {"shape",   "stride",          "dtype",  "data_ptr",      "get_device",
                                  "is_cuda", "is_cpu",          "is_neg", "is_conj",       "device",
                                  "to",      "untyped_storage", "nbytes", "storage_offset"};
static_assert(sizeof kNames / sizeof *kNames == kNameCount);

// A third party may hang a table of the same name on an older torch (tvm-ffi does): only a torch whose own C
// module makes it is believed.
const dlpack::ExchangeApi* find_exchange_api(PyObject* c_module, PyObject* tensor_type) {
  Ref own(PyObject_GetAttrString(c_module, "_dlpack_exchange_api"));
  Ref capsule(own ? PyObject_GetAttrString(tensor_type, "__dlpack_c_exchange_api__") : nullptr);
  void* table = capsule ? PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api") : nullptr;
  PyErr_Clear();
  const auto* header = static_cast<const dlpack::ExchangeApiHeader*>(table);
  while (header && header->major != 1) header = header->older;
  const auto* api = reinterpret_cast<const dlpack::ExchangeApi*>(header);
  return api && api->tensor_from_object && api->current_stream ? api : nullptr;
}

// PyCFunction_GetFunction and the calling conventions are of the stable ABI; METH_FASTCALL's are not.
DirectCall direct_call(PyObject* function) {
  if (!function || !PyCFunction_Check(function)) return {};
  const int flags = PyCFunction_GetFlags(function);
  const bool known = flags == METH_NOARGS || flags == METH_VARARGS || flags == (METH_VARARGS | METH_KEYWORDS);
  return known ? DirectCall{PyCFunction_GetFunction(function), flags} : DirectCall{};
}

void find_methods(Torch* found) {
  Ref sample(PyObject_CallFunctionObjArgs(found->tensor_type, nullptr));
  constexpr Name kMethods[] = {kStride, kDataPtr, kGetDevice, kIsNeg, kIsConj, kStorage, kStorageOffset};
  for (const Name name : kMethods) {
    if (!sample || !found->names[name]) continue;
    found->methods[name] = direct_call(Ref(PyObject_GetAttr(sample.get(), found->names[name])).get());
  }
  PyErr_Clear();
}

Ref call_direct(const DirectCall& direct, PyObject* self, PyObject* arguments) {
  if (!(direct.flags & METH_KEYWORDS)) return Ref(direct.function(self, arguments));
  // The one cast that CPython itself makes of such a function (Objects/methodobject.c).
  const auto function = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(direct.function));
  return Ref(function(self, arguments, nullptr));
}

struct Wanted {
  const char* name;
  PyObject** to;
};

// In every Python since 3.9, in the stable ABI since 3.12; null in 3.8. By its name: an undefined symbol,
// even a weak one, would make this file no module of 3.8's ABI (abi3audit).
PyObject* (*g_vectorcall_method)(PyObject*, PyObject* const*, size_t, PyObject*) = nullptr;

void find_newer_python_functions() {
  void* address = dlsym(RTLD_DEFAULT, "PyObject_VectorcallMethod");
  memcpy(&g_vectorcall_method, &address, sizeof address);
}

bool find_all(PyObject* torch, Torch* found) {
  const Wanted wanted[] = {{"Tensor", &found->tensor_type},    {"float32", &found->float32},
                           {"float16", &found->float16},       {"bfloat16", &found->bfloat16},
                           {"float64", &found->float64},       {"complex64", &found->complex64},
                           {"complex128", &found->complex128}, {"int32", &found->int32},
                           {"empty_like", &found->empty_like}, {"empty_strided", &found->empty_strided}};
  for (const Wanted& each : wanted) {
    *each.to = PyObject_GetAttrString(torch, each.name);
    if (!*each.to) return false;
  }
  for (int i = 0; i < kNameCount; ++i) {
    found->names[i] = PyUnicode_InternFromString(kNames[i]);
    if (!found->names[i]) return false;
  }
  if (!PyObject_HasAttr(found->tensor_type, found->names[kStorage]))
    found->names[kStorage] = PyObject_HasAttrString(found->tensor_type, "_storage")
                                 ? PyUnicode_InternFromString("_storage")
                                 : nullptr;
  Ref nn(PyImport_ImportModule("torch.nn"));
  found->parameter_type = nn ? PyObject_GetAttrString(nn.get(), "Parameter") : nullptr;
  Ref c_module(PyObject_GetAttrString(torch, "_C"));
  found->nothing = PyTuple_New(0);
  if (!found->parameter_type || !c_module || !found->nothing) return false;
  found->raw_stream = PyObject_GetAttrString(c_module.get(), "_cuda_getCurrentRawStream");
  found->current_device = PyObject_GetAttrString(c_module.get(), "_cuda_getDevice");
  PyErr_Clear();
  found->current_device_direct = direct_call(found->current_device);
  Ref dynamo(PyObject_GetAttrString(c_module.get(), "_dynamo"));
  Ref guards(dynamo ? PyObject_GetAttrString(dynamo.get(), "guards") : nullptr);
  found->empty_strided_cuda = guards ? PyObject_GetAttrString(guards.get(), "_empty_strided_cuda") : nullptr;
  PyErr_Clear();
  found->empty_strided_cuda_direct = direct_call(found->empty_strided_cuda);
  if (found->empty_strided_cuda_direct.flags == METH_NOARGS) found->empty_strided_cuda_direct = {};
  find_methods(found);
  found->dlpack = find_exchange_api(c_module.get(), found->tensor_type);
  return true;
}

}  // namespace

Ref call_method(const Torch& torch, PyObject* object, Name name) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  const DirectCall& direct = torch.methods[name];
  // A subclass may have a method of its own.
  if (direct.flags && (type == torch.tensor_type || type == torch.parameter_type))
    return call_direct(direct, object, direct.flags == METH_NOARGS ? nullptr : torch.nothing);
  if (g_vectorcall_method) return Ref(g_vectorcall_method(torch.names[name], &object, 1, nullptr));
  return Ref(PyObject_CallMethodObjArgs(object, torch.names[name], nullptr));
}

Ref call_function(PyObject* function, const DirectCall& direct, PyObject* arguments) {
  if (direct.flags) return call_direct(direct, PyCFunction_GetSelf(function), arguments);
  return Ref(PyObject_Call(function, arguments, nullptr));
}

int current_device(const Torch& torch) {
  const DirectCall& direct = torch.current_device_direct;
  if (!torch.current_device) return -1;
  const Ref number = direct.flags == METH_NOARGS
                         ? call_direct(direct, PyCFunction_GetSelf(torch.current_device), nullptr)
                         : Ref(PyObject_CallFunctionObjArgs(torch.current_device, nullptr));
  const long device = number ? PyLong_AsLong(number.get()) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  return static_cast<int>(device);
}

const Torch* torch_objects() {
  static Torch objects = {};
  static bool ready = false;
  if (ready) return &objects;
  Ref torch(PyImport_ImportModule("torch"));
  if (!torch || !find_all(torch.get(), &objects)) return nullptr;
  find_newer_python_functions();
  ready = true;
  return &objects;
}

}  // namespace scankit
