// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/torch_objects.h"

#include <dlfcn.h>
#include <string.h>

#include "kernels/common/threads.h"

// Looks up the objects and functions of the installed torch once, and calls its C functions with as
// little overhead as the stable ABI allows. What a release does not have stays null, and callers
// take another way.
namespace scankit {
namespace {

// In the order of Name.
constexpr const char* kNames[] = {"shape",   "stride",          "dtype",  "data_ptr",      "get_device",
                                  "is_cuda", "is_cpu",          "is_neg", "is_conj",       "device",
                                  "to",      "untyped_storage", "nbytes", "storage_offset"};
static_assert(sizeof kNames / sizeof *kNames == kNameCount);

// torch's table of DLPack functions, in the major version that this file knows (the headers form a list,
// newest first). A third party can attach a table of the same name to an older torch, as tvm-ffi does, so
// that the table only counts if torch's own C module provides it.
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

// PyCFunction_GetFunction() and these calling conventions belong to the stable ABI; that of
// METH_FASTCALL does not.
DirectCall direct_call(PyObject* function) {
  if (!function || !is_c_function(function)) return {};
  const int flags = PyCFunction_GetFlags(function);
  const bool known = flags == METH_NOARGS || flags == METH_VARARGS || flags == (METH_VARARGS | METH_KEYWORDS);
  return known ? DirectCall{PyCFunction_GetFunction(function), flags} : DirectCall{};
}

// The C functions behind a tensor's methods, found through the bound methods of a sample tensor.
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

// PyObject_VectorcallMethod() exists in every Python since 3.9 and belongs to the stable ABI since 3.12.
// It is looked up by name: an undefined symbol, even a weak one, would mean that the file does not keep to
// the ABI of 3.8 (abi3audit). Null in 3.8.
void find_newer_python_functions(Torch* found) {
  void* address = dlsym(RTLD_DEFAULT, "PyObject_VectorcallMethod");
  memcpy(&found->vectorcall_method, &address, sizeof address);
}

// False, with a Python error set, if something is missing that every supported torch has. Everything
// optional is cleared from the error state and left null.
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
  const PyObject* type = type_of(object);
  const DirectCall& direct = torch.methods[name];
  // A subclass may have a method of its own.
  if (direct.flags && (type == torch.tensor_type || type == torch.parameter_type))
    return call_direct(direct, object, direct.flags == METH_NOARGS ? nullptr : torch.nothing);
  if (torch.vectorcall_method) return Ref(torch.vectorcall_method(torch.names[name], &object, 1, nullptr));
  return Ref(PyObject_CallMethodObjArgs(object, torch.names[name], nullptr));
}

Ref call_function(PyObject* function, const DirectCall& direct, PyObject* arguments) {
  if (direct.flags) return call_direct(direct, PyCFunction_GetSelf(function), arguments);
  return Ref(PyObject_Call(function, arguments, nullptr));
}

// Errors are cleared: a caller treats them as "not known".
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

// The objects are looked up at the first call, and torch is imported then, not together with the module.
const Torch* torch_objects() {
  static FoundOnce<Torch> known;
  if (const Torch* found = known.get()) return found;
  Ref torch(PyImport_ImportModule("torch"));
  Torch objects = {};
  if (!torch || !find_all(torch.get(), &objects)) return nullptr;
  find_newer_python_functions(&objects);
  const Torch* kept = known.keep(objects);
  if (!kept) PyErr_NoMemory();
  return kept;
}

}  // namespace scankit
