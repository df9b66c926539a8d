// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/binding/tensor.h"

// What torch keeps in its own objects, at places that are no interface and are found by experiment.
namespace scankit {

// Whether `object`, exactly a torch.Tensor or a Parameter, may be a lazily negated or conjugated view.
// False: it is neither. True: it is one, or that cannot be seen from here, and torch has to be asked. The
// first call makes tensors on the CPU. Never leaves a Python error. Callers hold the GIL.
// Tensor.is_neg() takes 0.1 us, mostly for releasing and taking the GIL, and a tiny scan asks up to
// thirteen tensors. This function reads two bits of the dispatch keys in torch's own object, to which the
// Python object points. Their position is no interface of torch, so that none is assumed: torch_layout.cc
// finds it by comparing tensors that are such views with tensors that are not.
bool may_be_lazy(const Torch& torch, const PyObject* object);

// The dispatch keys of such an object. They also say which kind of device it is on and what layout it
// has: what holds for one tensor holds for all tensors with the same keys. 0 where they cannot be
// seen from here.
uint64_t dispatch_keys(const Torch& torch, const PyObject* object);

// torch's own object, to which such an object points; null: not known from here.
const void* torch_object(const Torch& torch, const PyObject* object);

// False until may_be_lazy was called, and where the places could not be found.
bool lazy_bits_are_known();

// Where in its storage a tensor begins, in elements, and how many bytes the storage has. `object` must be
// exactly a torch.Tensor or a Parameter. False where that cannot be seen from here; then torch has to be
// asked. Never leaves a Python error. Callers hold the GIL.
// torch's own three methods for this take 0.14 us for each tensor, and a tiny scan has twelve. Here
// too no offset in torch's objects is assumed: each number is searched in tensors of which it is
// known, and must be found in exactly one place.
bool read_storage_size(const Torch& torch, const PyObject* object, Index* offset, Index* bytes);

}  // namespace scankit
