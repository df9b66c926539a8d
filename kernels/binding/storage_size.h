// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/tensor.h"

namespace scankit {

// Where in its storage a tensor, exactly a torch.Tensor or a Parameter, begins, in elements, and how many
// bytes that storage has. False: not known from here; ask torch. Never leaves a Python error. Callers hold
// the GIL.
//
// torch's own three methods for this take 0.14 us a tensor, and a tiny scan has twelve. As in lazy_bits.h no
// place is assumed: each number is looked for in tensors of which it is known, and has to be found in exactly
// one.
bool read_storage_size(const Torch& torch, const PyObject* object, Index* offset, Index* bytes);

}  // namespace scankit
