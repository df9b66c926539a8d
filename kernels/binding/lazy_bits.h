// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/binding/torch_objects.h"

namespace scankit {

// Whether `object`, exactly a torch.Tensor or a Parameter, may be a lazily negated or conjugated view. False:
// it is neither. True: it is one, or that cannot be seen from here; ask torch. At the first call tensors are
// made on the CPU; never leaves a Python error. Callers hold the GIL.
//
// Tensor.is_neg() takes 0.1 us to say so, most of it to let go of the GIL and take it again, and a tiny scan
// asks up to thirteen tensors. This is read from two bits of the dispatch keys in torch's own object, to
// which the Python object points. Where they lie is nobody's interface, so no place is assumed: it is found
// by comparing tensors that are known to be such views with tensors that are not.
bool may_be_lazy(const Torch& torch, const PyObject* object);

// The dispatch keys of such an object, which also say on what kind of device it is, and how it is laid out:
// what holds for one tensor holds for all with the same keys. 0: not known from here.
uint64_t dispatch_keys(const Torch& torch, const PyObject* object);

// torch's own object, to which such an object points; null: not known from here.
const void* torch_object(const Torch& torch, const PyObject* object);

// False until may_be_lazy was called, and where the places could not be found.
bool lazy_bits_are_known();

}  // namespace scankit
