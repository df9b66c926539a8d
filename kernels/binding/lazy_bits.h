// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/binding/torch_objects.h"

namespace scankit {

// Whether `object`, exactly a torch.Tensor or a Parameter, may be a lazily negated or conjugated view.
// False: it is neither. True: it is one, or that cannot be seen from here, and torch has to be asked. The
// first call makes tensors on the CPU. Never leaves a Python error. Callers hold the GIL.
// Tensor.is_neg() takes 0.1 us, mostly for releasing and taking the GIL, and a tiny scan asks up to
// thirteen tensors. This function reads two bits of the dispatch keys in torch's own object, to which the
// Python object points. Their position is no interface of torch, so that none is assumed: lazy_bits.cc
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

}  // namespace scankit
