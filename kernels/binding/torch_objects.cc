// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/torch_objects.h"

#include <dlfcn.h>
#include <string.h>

namespace scankit {
namespace {

constexpr const char* kNames[] = {"shape",  "stride", "dtype",   "data_ptr", "get_device", "is_cuda",
                                  "is_cpu", "is_neg", "is_conj", "device",   "to"};
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
  Ref nn(PyImport_ImportModule("torch.nn"));
  found->parameter_type = nn ? PyObject_GetAttrString(nn.get(), "Parameter") : nullptr;
  Ref c_module(PyObject_GetAttrString(torch, "_C"));
  if (!found->parameter_type || !c_module) return false;
  found->raw_stream = PyObject_GetAttrString(c_module.get(), "_cuda_getCurrentRawStream");
  Ref dynamo(PyObject_GetAttrString(c_module.get(), "_dynamo"));
  Ref guards(dynamo ? PyObject_GetAttrString(dynamo.get(), "guards") : nullptr);
  found->empty_strided_cuda = guards ? PyObject_GetAttrString(guards.get(), "_empty_strided_cuda") : nullptr;
  PyErr_Clear();
  found->dlpack = find_exchange_api(c_module.get(), found->tensor_type);
  return true;
}

}  // namespace

Ref call_method(PyObject* object, PyObject* name) {
  if (g_vectorcall_method) return Ref(g_vectorcall_method(name, &object, 1, nullptr));
  return Ref(PyObject_CallMethodObjArgs(object, name, nullptr));
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
