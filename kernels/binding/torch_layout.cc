// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>

#include "kernels/binding/tensor.h"
#include "kernels/common/threads.h"

// Finds two bits in torch's own object by experiment, as tensor.h explains: it makes tensors that are
// known to be conjugated, negated, both or neither, and looks for the bits that follow that pattern in all
// of them. Any doubt, such as two candidates, means that the bits are not used.
namespace scankit {
namespace {

// With 64 samples no other bit of the objects, such as one of an address or a counter, follows the same
// pattern by chance.
constexpr int kSamples = 64;
// From the start of torch's object: it has been 192 bytes and more in every release since 1.13.
constexpr size_t kSearchedBytes = 192;

struct LazyBits {
  size_t pointer_at = 0;  // in the Python object
  size_t keys_at = 0;     // in the object that it points to
  uint64_t mask = 0;      // both bits; 0: not found
};

constexpr int kMostTries = 3;
FoundOnce<LazyBits> g_bits;

// A tensor with the address of torch's own object (c10::TensorImpl) and what is known about it.
struct Sample {
  Ref object;
  const char* impl;
  bool negated, conjugated;
};

// Whether sample i is negated (which = 0) or conjugated (1): pseudorandom bits, which no counter follows.
bool pattern(int i, int which) {
  return (static_cast<uint64_t>(2 * i + which + 1) * 0x9e3779b97f4a7c15u >> 63) != 0;
}

// The address of torch's own object, from the attribute `_cdata`; null with an error set where
// there is none.
const char* impl_of(PyObject* object) {
  Ref number(PyObject_GetAttrString(object, "_cdata"));
  return number ? static_cast<const char*>(PyLong_AsVoidPtr(number.get())) : nullptr;
}

// A complex view of `base` with these properties. Samples that are neither are views too, so that "is a
// view" does not follow the pattern.
Ref make_view(PyObject* torch, PyObject* base, bool negated, bool conjugated) {
  Ref view(PyObject_CallMethod(base, "view_as", "O", base));
  if (view && conjugated) view = Ref(PyObject_CallMethod(view.get(), "conj", nullptr));
  if (view && negated) view = Ref(PyObject_CallMethod(torch, "_neg_view", "O", view.get()));
  return view;
}

bool make_samples(PyObject* torch, PyObject* tensor_type, Sample* samples) {
  Ref empty(PyObject_GetAttrString(torch, "empty")), options(PyDict_New());
  Ref dtype(PyObject_GetAttrString(torch, "complex64")), cpu(PyUnicode_FromString("cpu"));
  if (!empty || !options || !dtype || !cpu || PyDict_SetItemString(options.get(), "device", cpu.get()) != 0 ||
      PyDict_SetItemString(options.get(), "dtype", dtype.get()) != 0)
    return false;
  constexpr Py_ssize_t kDims = 4;
  for (int i = 0; i < kSamples; ++i) {
    Ref shape(PyTuple_New(1 + i % kDims));
    for (Py_ssize_t d = 0; shape && d < 1 + i % kDims; ++d)
      PyTuple_SetItem(shape.get(), d, PyLong_FromLong(1 + d + i % 3));
    Ref sizes(shape ? PyTuple_New(1) : nullptr);
    if (!sizes || PyTuple_SetItem(sizes.get(), 0, shape.release()) != 0) return false;
    Ref base(PyObject_Call(empty.get(), sizes.get(), options.get()));
    Sample& s = samples[i];
    s.negated = pattern(i, 0), s.conjugated = pattern(i, 1);
    if (base) s.object = make_view(torch, base.get(), s.negated, s.conjugated);
    // A mode of torch's may have made something else of it.
    if (!s.object || type_of(s.object.get()) != tensor_type) return false;
    s.impl = impl_of(s.object.get());
    if (!s.impl) return false;
  }
  return true;
}

uint64_t word_at(const void* from, size_t offset) {
  uint64_t word;
  __builtin_memcpy(&word, static_cast<const char*>(from) + offset, sizeof word);
  return word;
}

// The offset in the Python object at which every sample has the address of its own torch object. False if
// there is none or more than one. __basicsize__ bounds the search to the object itself.
bool find_pointer(PyObject* tensor_type, const Sample* samples, size_t* at) {
  Ref size(PyObject_GetAttrString(tensor_type, "__basicsize__"));
  const size_t bytes = size ? PyLong_AsSize_t(size.get()) : 0;
  if (PyErr_Occurred() || bytes > 4096) return false;
  int places = 0;
  for (size_t offset = sizeof(PyObject); offset + sizeof(void*) <= bytes; offset += sizeof(void*)) {
    bool all = true;
    for (int i = 0; i < kSamples && all; ++i)
      all = word_at(samples[i].object.get(), offset) == reinterpret_cast<uintptr_t>(samples[i].impl);
    if (all) *at = offset, ++places;
  }
  return places == 1;
}

bool one_bit(uint64_t word) { return word != 0 && (word & (word - 1)) == 0; }

// Both bits as a mask. For each word of the object, `negated` collects the bits that are set in
// exactly the negated samples, and `conjugated` likewise; only one word may have such bits, and
// exactly one of each kind.
uint64_t find_mask(const Sample* samples, size_t* at) {
  uint64_t mask = 0;
  int words = 0;
  for (size_t offset = 0; offset < kSearchedBytes; offset += sizeof(uint64_t)) {
    uint64_t negated = ~uint64_t{0}, conjugated = negated;
    for (int i = 0; i < kSamples; ++i) {
      const uint64_t word = word_at(samples[i].impl, offset);
      negated &= samples[i].negated ? word : ~word;
      conjugated &= samples[i].conjugated ? word : ~word;
    }
    if ((negated | conjugated) == 0) continue;
    ++words;
    if (one_bit(negated) && one_bit(conjugated)) *at = offset, mask = negated | conjugated;
  }
  return words == 1 ? mask : 0;
}

LazyBits find_lazy_bits(PyObject* tensor_type) {
  LazyBits found;
  Sample samples[kSamples];
  Ref torch(PyImport_ImportModule("torch"));
  if (torch && make_samples(torch.get(), tensor_type, samples) &&
      find_pointer(tensor_type, samples, &found.pointer_at))
    found.mask = find_mask(samples, &found.keys_at);
  PyErr_Clear();
  return found;
}

}  // namespace

// Null: not found. Each of the first calls may search, since a mode of torch's can be in the way of one.
static const LazyBits* lazy_bits(const Torch& torch) {
  static int tries = 0;  // atomic
  if (const LazyBits* known = g_bits.get()) return known;
  if (__atomic_load_n(&tries, __ATOMIC_RELAXED) >= kMostTries ||
      __atomic_fetch_add(&tries, 1, __ATOMIC_RELAXED) >= kMostTries)
    return nullptr;
  const LazyBits found = find_lazy_bits(torch.tensor_type);
  return found.mask != 0 ? g_bits.keep(found) : nullptr;
}

bool lazy_bits_are_known() { return g_bits.get() != nullptr; }

bool may_be_lazy(const Torch& torch, const PyObject* object) {
  const LazyBits* bits = lazy_bits(torch);
  const uint64_t keys = dispatch_keys(torch, object);
  return !bits || keys == 0 || (keys & bits->mask) != 0;
}

const void* torch_object(const Torch& torch, const PyObject* object) {
  const LazyBits* bits = lazy_bits(torch);
  return bits ? reinterpret_cast<const void*>(word_at(object, bits->pointer_at)) : nullptr;
}

uint64_t dispatch_keys(const Torch& torch, const PyObject* object) {
  const LazyBits* bits = lazy_bits(torch);
  if (!bits) return 0;
  const void* impl = reinterpret_cast<const void*>(word_at(object, bits->pointer_at));
  return impl ? word_at(impl, bits->keys_at) : 0;
}

// Finds three numbers in torch's objects by experiment, as tensor.h explains: as above it
// makes tensors of known properties and accepts only a position that is unique.

namespace {

constexpr int kViews = 24;
// torch's tensor has been 192 bytes and more since 1.13, its storage 64 and more.
constexpr size_t kTensorBytes = 192, kStorageBytes = 64;

struct Places {
  size_t storage_at = 0, offset_at = 0;  // in the tensor
  size_t size_at = 0;                    // in the storage
  bool known = false;
};
FoundOnce<Places> g_places;

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
    if (!v.object || type_of(v.object.get()) != torch.tensor_type) return false;
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

static const Places* known_places(const Torch& torch) {
  static int tries = 0;  // atomic
  if (const Places* known = g_places.get()) return known;
  if (!torch.names[kStorage] || __atomic_load_n(&tries, __ATOMIC_RELAXED) >= kMostTries ||
      __atomic_fetch_add(&tries, 1, __ATOMIC_RELAXED) >= kMostTries)
    return nullptr;
  const Places found = find_places(torch);
  return found.known ? g_places.keep(found) : nullptr;
}

bool read_storage_size(const Torch& torch, const PyObject* object, Index* offset, Index* bytes) {
  const Places* places = known_places(torch);
  if (!places) return false;
  const void* tensor = torch_object(torch, object);
  const auto* storage =
      tensor ? reinterpret_cast<const void*>(load_word(tensor, places->storage_at)) : nullptr;
  if (!storage) return false;
  *offset = static_cast<Index>(load_word(tensor, places->offset_at));
  *bytes = static_cast<Index>(load_word(storage, places->size_at));
  return *offset >= 0 && *bytes >= 0;  // negative: a symbolic size
}

}  // namespace scankit
