// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/information.h"

#include <dlfcn.h>
#include <fcntl.h>

#include "kernels/binding/module.h"
#include "kernels/common/cpu_features.h"
#include "kernels/common/driver_context.h"
#include "kernels/common/driver_images.h"
#include "kernels/common/thread_pool.h"

// scankit_info() and warm(), and the module's own file. `scankit doctor` and tests read the
// dict of scankit_info().
namespace scankit {
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
      !put(dict, "bytes", PyLong_FromUnsignedLongLong(entry.size)))
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
  Dl_info where;
  if (dladdr(reinterpret_cast<const void*>(&remember_module_file), &where) == 0 || !where.dli_fname) return;
  file.path = where.dli_fname;
  file.descriptor = open(file.path, O_RDONLY | O_CLOEXEC);
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
