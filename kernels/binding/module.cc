// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "kernels/common/cpu.h"
#include "kernels/common/driver_context.h"

// Importing a module: which interpreters and which torch it refuses, and the functions that
// every module offers.
namespace scankit {

bool free_threaded = false;

namespace {

// Guards what an import writes into static memory: two interpreters may import at once. No Python code runs
// under it.
pthread_mutex_t importing = PTHREAD_MUTEX_INITIALIZER;

class ImportLock {
 public:
  ImportLock() { pthread_mutex_lock(&importing); }
  ~ImportLock() { pthread_mutex_unlock(&importing); }
  ImportLock(const ImportLock&) = delete;
  ImportLock& operator=(const ImportLock&) = delete;
};

// torch's objects and the state of the devices are in static memory, so that only one interpreter of
// a process can use the module. The address of sys.modules identifies an interpreter; the ABI of 3.8
// has nothing else.
bool first_interpreter() {
  static const void* first = nullptr;
  // One an interpreter; the ABI of 3.8 has no other name for them.
  const void* mine = PyImport_GetModuleDict();
  const ImportLock lock;
  if (!first) first = mine;
  return first == mine;
}

// "2.11" of "2.11.0+cu130".
size_t minor_length(const char* version) {
  const char* point = strchr(version, '.');
  return point ? static_cast<size_t>(point - version) + 1 + strspn(point + 1, "0123456789") : strlen(version);
}

// For the torch flavor only: the layout of libtorch's objects may change between minor releases, even if
// every symbol is there. The universal flavor takes any torch.
bool fits_torch() {
  if (!kBinding.torch) return true;
  Ref torch(PyImport_ImportModule("torch"));
  Ref version(torch ? PyObject_GetAttrString(torch.get(), "__version__") : nullptr);
  Ref bytes(version ? PyUnicode_AsUTF8String(version.get()) : nullptr);
  const char* here = bytes ? PyBytes_AsString(bytes.get()) : nullptr;
  if (!here) return false;
  const size_t length = minor_length(kBinding.torch);
  if (length == minor_length(here) && strncmp(here, kBinding.torch, length) == 0) return true;
  PyErr_Format(
      PyExc_ImportError,
      "this %s was built for torch %s, and torch %s is here; build it again: scankit build --flavor torch",
      kModule.name, kBinding.torch, here);
  return false;
}

// Py_mod_exec: runs at each import. The module's file is opened at the first one.
int execute(PyObject* module) {
  if (!first_interpreter()) {
    PyErr_Format(PyExc_ImportError,
                 "%s is loaded in another interpreter of this process; it supports one, as torch does",
                 kModule.name);
    return -1;
  }
  if (!fits_torch()) return -1;
  remember_module_file();
  return PyModule_AddStringConstant(module, "__version__", SCANKIT_VERSION);
}

// Slots that came later than the ABI of 3.8 (Include/moduleobject.h). An older Python refuses to import a
// module with one that it does not know.
constexpr int kMultipleInterpreters = 3, kGil = 4;    // from 3.12, from 3.13 on
void* const kNotSupported = nullptr;                  // Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED
void* const kNotUsed = reinterpret_cast<void*>(1ul);  // Py_MOD_GIL_NOT_USED

PyModuleDef_Slot slots[4] = {{Py_mod_exec, reinterpret_cast<void*>(execute)}};

// 14 of "3.14.2 (main, ...". Not strtol(): see thread_limit().
int minor_of(const char* version) {
  int minor = 0;
  const char* point = strchr(version, '.');
  for (const char* at = point ? point + 1 : ""; *at >= '0' && *at <= '9' && minor < 1000; ++at)
    minor = minor * 10 + (*at - '0');
  return minor;
}

void choose_slots(int minor) {
  PyModuleDef_Slot* next = slots + 1;
  if (minor >= 12) *next++ = {kMultipleInterpreters, kNotSupported};
  if (minor >= 13) *next++ = {kGil, kNotUsed};
  *next = {0, nullptr};
}

// PyModuleDef as a free-threaded Python has it.
struct FreeThreadedDefinition {
  FreeThreadedHead head;
  PyObject* (*init)();
  Py_ssize_t index;
  PyObject* copy;
  const char *name, *documentation;
  Py_ssize_t size;
  PyMethodDef* methods;
  PyModuleDef_Slot* slots;
  traverseproc traverse;
  inquiry clear;
  freefunc free;
};

bool has_size(PyTypeObject* type, size_t bytes) {
  PyObject* size = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__basicsize__");
  const size_t number = size ? PyLong_AsSize_t(size) : 0;
  Py_DecRef(size);
  PyErr_Clear();
  return number == bytes;
}

// Null, with an error set, where the objects of this Python are laid out in a way that this file does not know.
PyObject* init_free_threaded(const PyModuleDef& definition) {
  if (!has_size(&PyBaseObject_Type, sizeof(FreeThreadedHead)) ||
      !has_size(&PyModuleDef_Type, sizeof(FreeThreadedDefinition))) {
    PyErr_Format(
        PyExc_ImportError,
        "this %s supports free-threaded Python from 3.13 on, and the objects of this one (%.80s) are "
        "laid out in another way; use a Python build with the GIL",
        kModule.name, Py_GetVersion());
    return nullptr;
  }
  static FreeThreadedDefinition ours = {};
  {
    const ImportLock lock;
    free_threaded = true;
    if (!ours.name) {
      ours.name = definition.m_name;
      ours.documentation = definition.m_doc;
      ours.methods = definition.m_methods;
      ours.slots = slots;
    }
  }
  return PyModuleDef_Init(reinterpret_cast<PyModuleDef*>(&ours));
}

}  // namespace

PyMethodDef scankit_info_method() {
  return {"scankit_info", scankit_info, METH_NOARGS,
          "scankit_info()\n--\n\nA dict: version, flavor, path, instruction_set, threads, images, "
          "images_problem."};
}

PyMethodDef warm_method() {
  return {
      "warm", fast(warm), METH_FASTCALL,
      "warm(device=None)\n--\n\nLoads the device images for a CUDA device (default: torch's current one) and "
      "returns what it is. The first call on that device does so otherwise, and waits for an idle device "
      "while "
      "it does."};
}

PyObject* init_module(PyModuleDef* definition) {
  const char* version = Py_GetVersion();  // "3.14.2 free-threading build (main, ...) [GCC 14.2.0]"
  {
    const ImportLock lock;
    if (!definition->m_slots) choose_slots(minor_of(version));
    definition->m_slots = slots;
  }
  if (strstr(version, "free-threading")) return init_free_threaded(*definition);
  return PyModuleDef_Init(definition);
}

// scankit_info() and warm(), and the module's own file. `scankit doctor` and tests read the
// dict of scankit_info().

namespace {

ModuleFile file = {"", -1};

// Takes `value`; a null one is an error already set.
bool put(const Ref& dict, const char* key, PyObject* value) {
  const Ref owned(value);
  return value && PyDict_SetItemString(dict.get(), key, value) == 0;
}

Ref describe_image(const device::ImageEntry& entry) {
  Ref dict(PyDict_New());
  char unit[device::kImageNameBytes + 1] = {};
  __builtin_memcpy(unit, entry.unit, device::kImageNameBytes);
  if (!dict || !put(dict, "kind", PyUnicode_FromString(entry.kind == device::kImagePtx ? "ptx" : "cubin")) ||
      !put(dict, "sm", PyLong_FromUnsignedLong(entry.sm)) || !put(dict, "unit", PyUnicode_FromString(unit)) ||
      !put(dict, "bytes", PyLong_FromUnsignedLongLong(device::image_size(entry))))
    return Ref();
  return dict;
}

// images: a list, empty where images_problem says why it could not be read.
bool put_images(const Ref& info) {
  device::ImageIndex index;
  device::Message message;
  const bool readable = device::read_image_index(file.descriptor, &index, &message);
  Ref list(PyList_New(0));
  bool ok = static_cast<bool>(list);
  for (uint32_t i = 0; ok && readable && i < index.count; ++i) {
    const Ref image = describe_image(index.entries[i]);
    ok = image && PyList_Append(list.get(), image.get()) == 0;
  }
  if (readable) device::release_index(&index);
  PyObject* problem = readable ? Ref::to(Py_None).release() : PyUnicode_FromString(message.text);
  return ok && put(info, "images", list.release()) && put(info, "images_problem", problem);
}

// The device that the caller names, or torch's current one; -1 with an error set.
int chosen_device(PyObject* const* arguments, Py_ssize_t count) {
  if (count > 1) {
    PyErr_Format(PyExc_TypeError, "%s.warm: takes at most one argument, a device's number", kModule.name);
    return -1;
  }
  Ref number = count == 1 ? Ref::to(arguments[0]) : Ref();
  if (!number || number.get() == Py_None) {
    Ref cuda(PyImport_ImportModule("torch.cuda"));
    number = Ref(cuda ? PyObject_CallMethod(cuda.get(), "current_device", nullptr) : nullptr);
  }
  const long device = number ? PyLong_AsLong(number.get()) : -1;
  if (device >= 0 && device < 1 << 16) return static_cast<int>(device);
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_ValueError, "%s.warm: a device's number is 0 or more", kModule.name);
  return -1;
}

}  // namespace

const ModuleFile& module_file() { return file; }

// dladdr() names the file that was really loaded, by an address inside of it.
void remember_module_file() {
  const ImportLock lock;
  Dl_info where;
  if (file.descriptor != -1) return;
  if (dladdr(reinterpret_cast<const void*>(&remember_module_file), &where) == 0 || !where.dli_fname) return;
  file.path = where.dli_fname;
  file.descriptor = open(file.path, O_RDONLY | O_CLOEXEC);
  device::device_register(file.descriptor, kModule.kernels, kModule.kernel_count);
}

PyObject* scankit_info(PyObject*, PyObject*) {
  Ref info(PyDict_New());
  if (!info || !put(info, "version", PyUnicode_FromString(SCANKIT_VERSION)) ||
      !put(info, "flavor", PyUnicode_FromString(kBinding.flavor)) ||
      !put(info, "reads_lazy_bits",
           PyBool_FromLong(!kBinding.reads_lazy_bits || kBinding.reads_lazy_bits())) ||
      !put(info, "path", PyUnicode_DecodeFSDefault(file.path)) ||
      !put(info, "instruction_set", PyUnicode_FromString(cpu_level_name(chosen_cpu_level()))) ||
      !put(info, "threads", PyLong_FromLong(thread_limit())) || !put_images(info))
    return nullptr;
  return info.release();
}

PyObject* warm(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const int device = chosen_device(arguments, count);
  if (device < 0) return nullptr;
  device::DeviceFacts facts;
  device::Message message;
  if (!device::device_prepare(device, &facts, &message)) {
    PyErr_Format(PyExc_RuntimeError, "%s.warm: %s", kModule.name, message.text);
    return nullptr;
  }
  Ref result(PyDict_New());
  if (!result || !put(result, "device", PyLong_FromLong(device)) ||
      !put(result, "sm", PyLong_FromLong(facts.capability)) ||
      !put(result, "multiprocessors", PyLong_FromLong(facts.multiprocessors)))
    return nullptr;
  return result.release();
}

}  // namespace scankit
