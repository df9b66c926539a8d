// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/tensor.h"

// VMamba's two modules over the scan of selective_scan_cuda: no z, a real A, B and C that vary with the step.
namespace scankit {

// What tells oflex from core: a tenth argument of fwd asks for out in float32, dout may be float32 beside
// 16-bit inputs, and delta and delta_bias may have fewer channels than u, each for a run of them.
enum class Vmamba { Core, Oflex };

// The arguments as Python gives them: u, delta, A, B, C, D, delta_bias, delta_softplus, nrows, of oflex
// out_float; nrows changes nothing (upstream's own kernels take 1 alone). [out, x], or null with TypeError or
// RuntimeError set.
PyObject* vmamba_fwd(Vmamba module, PyObject* const* arguments, Py_ssize_t count);
// u, delta, A, B, C, D, delta_bias, dout, x, delta_softplus, nrows. [du, ddelta, dA, dB, dC, dD,
// ddelta_bias], or null likewise.
PyObject* vmamba_bwd(Vmamba module, PyObject* const* arguments, Py_ssize_t count);

}  // namespace scankit
