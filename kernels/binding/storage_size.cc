// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/storage_size.h"

#include <stddef.h>
#include <stdint.h>

#include "kernels/binding/lazy_bits.h"

// Finds three numbers in torch's objects by experiment, as storage_size.h explains. Like lazy_bits.cc it
// makes tensors of known properties and accepts only a position that is unique.
namespace scankit {
namespace {

constexpr int kViews = 24, kMostTries = 3;
// torch's tensor has been 192 bytes and more since 1.13, its storage 64 and more.
constexpr size_t kTensorBytes = 192, kStorageBytes = 64;

struct Places {
  size_t storage_at = 0, offset_at = 0;  // in the tensor
  size_t size_at = 0;                    // in the storage
  bool known = false;
};
Places g_places;  // the GIL guards it

// A tensor with the numbers that torch says about it.
struct View {
  Ref object, storage;
  const void* tensor;
  uint64_t storage_address, offset, bytes;
};

uint64_t load_word(const void* from, size_t offset) {
  uint64_t word;
  __builtin_memcpy(&word, static_cast<const char*>(from) + offset, sizeof word);
  return word;
}

// The number that `object.name` or `object.name()` is; ~0 on an error, as is no number that is looked for.
uint64_t number_of(PyObject* object, const char* name, bool call) {
  Ref number(call ? PyObject_CallMethod(object, name, nullptr) : PyObject_GetAttrString(object, name));
  return number ? PyLong_AsUnsignedLongLong(number.get()) : ~uint64_t{0};
}

// Views into the middle of storages of many sizes. The steps of sizes (61) and offsets (37) are primes, so
// that no size is another view's offset, and the views' order of offsets differs from that of sizes.
bool make_views(const Torch& torch, View* views) {
  Ref module(PyImport_ImportModule("torch"));
  Ref options(PyDict_New()), cpu(PyUnicode_FromString("cpu"));
  Ref empty(module ? PyObject_GetAttrString(module.get(), "empty") : nullptr);
  if (!empty || !options || !cpu || PyDict_SetItemString(options.get(), "device", cpu.get()) != 0 ||
      PyDict_SetItemString(options.get(), "dtype", torch.float32) != 0)
    return false;
  for (int i = 0; i < kViews; ++i) {
    const int length = 4099 + 61 * i, offset = 1009 + 37 * ((i * 7) % kViews);
    Ref size(PyTuple_New(1));
    if (!size || PyTuple_SetItem(size.get(), 0, PyLong_FromLong(length)) != 0) return false;
    Ref base(PyObject_Call(empty.get(), size.get(), options.get()));
    View& v = views[i];
    if (base) v.object = Ref(PyObject_CallMethod(base.get(), "as_strided", "(i)(i)i", 3 + i % 5, 1, offset));
    // A mode of torch's may have made something else of it.
    if (!v.object || reinterpret_cast<PyObject*>(Py_TYPE(v.object.get())) != torch.tensor_type) return false;
    v.storage = call_method(torch, v.object.get(), kStorage);
    if (!v.storage) return false;
    v.tensor = torch_object(torch, v.object.get());
    v.storage_address = number_of(v.storage.get(), "_cdata", false);
    v.bytes = number_of(v.storage.get(), "nbytes", true);
    v.offset = number_of(v.object.get(), "storage_offset", true);
    if (!v.tensor || PyErr_Occurred() || v.bytes != 4u * static_cast<unsigned>(length) ||
        v.offset != static_cast<unsigned>(offset))
      return false;
  }
  return true;
}

// The only offset below `limit` at which every view's object has the number that is wanted of it.
template <class From, class Wanted>
bool find_place(const View* views, size_t limit, From from, Wanted wanted, size_t* at) {
  int places = 0;
  for (size_t offset = 0; offset < limit; offset += sizeof(uint64_t)) {
    bool all = true;
    for (int i = 0; i < kViews && all; ++i) all = load_word(from(views[i]), offset) == wanted(views[i]);
    if (all) *at = offset, ++places;
  }
  return places == 1;
}

Places find_places(const Torch& torch) {
  Places found;
  View views[kViews];
  const auto tensor = [](const View& v) { return v.tensor; };
  const auto storage = [](const View& v) { return reinterpret_cast<const void*>(v.storage_address); };
  found.known =
      make_views(torch, views) &&
      find_place(
          views, kTensorBytes, tensor, [](const View& v) { return v.storage_address; }, &found.storage_at) &&
      find_place(
          views, kTensorBytes, tensor, [](const View& v) { return v.offset; }, &found.offset_at) &&
      find_place(
          views, kStorageBytes, storage, [](const View& v) { return v.bytes; }, &found.size_at);
  PyErr_Clear();
  return found;
}

}  // namespace

bool read_storage_size(const Torch& torch, const PyObject* object, Index* offset, Index* bytes) {
  static int tries = 0;
  if (!g_places.known) {
    if (tries >= kMostTries || !torch.names[kStorage]) return false;
    ++tries;
    g_places = find_places(torch);
    if (!g_places.known) return false;
  }
  const void* tensor = torch_object(torch, object);
  const auto* storage =
      tensor ? reinterpret_cast<const void*>(load_word(tensor, g_places.storage_at)) : nullptr;
  if (!storage) return false;
  *offset = static_cast<Index>(load_word(tensor, g_places.offset_at));
  *bytes = static_cast<Index>(load_word(storage, g_places.size_at));
  return *offset >= 0 && *bytes >= 0;  // negative: a symbolic size
}

}  // namespace scankit
