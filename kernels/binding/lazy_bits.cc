// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/lazy_bits.h"

#include <stddef.h>
#include <stdint.h>

// Finds two bits in torch's own object by experiment, as lazy_bits.h explains: it makes tensors that are
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
LazyBits g_bits;  // the GIL guards it

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
    if (!s.object || reinterpret_cast<PyObject*>(Py_TYPE(s.object.get())) != tensor_type) return false;
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

bool lazy_bits_are_known() { return g_bits.mask != 0; }

bool may_be_lazy(const Torch& torch, const PyObject* object) {
  const uint64_t keys = dispatch_keys(torch, object);
  return keys == 0 || (keys & g_bits.mask) != 0;
}

const void* torch_object(const Torch& torch, const PyObject* object) {
  static int tries = 0;  // a mode of torch's may be in the way of the first
  if (g_bits.mask == 0) {
    if (tries >= kMostTries) return nullptr;
    ++tries;
    g_bits = find_lazy_bits(torch.tensor_type);
    if (g_bits.mask == 0) return nullptr;
  }
  return reinterpret_cast<const void*>(word_at(object, g_bits.pointer_at));
}

uint64_t dispatch_keys(const Torch& torch, const PyObject* object) {
  const void* impl = torch_object(torch, object);
  return impl ? word_at(impl, g_bits.keys_at) : 0;
}

}  // namespace scankit
