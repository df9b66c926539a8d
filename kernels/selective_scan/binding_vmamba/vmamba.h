// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/checks.h"

// VMamba's two modules over the scan of selective_scan_cuda: no z, a real A, B and C that vary with the step.
namespace scankit {

struct VmambaArguments {
  PyObject *u, *delta, *A, *B, *C, *D, *delta_bias;
  PyObject *dout = Py_None, *x = Py_None;  // of a backward
  PyObject *softplus, *nrows;              // nrows changes nothing: upstream's own kernels take 1 alone
  bool out_float = false;                  // out in float32, whatever u is
  bool shares_delta = false;  // delta and delta_bias may have fewer channels than u, each for a run of them
};

PyObject* vmamba_fwd(const Call& call, const VmambaArguments& arguments);  // [out, x]
PyObject* vmamba_bwd(const Call& call, const VmambaArguments& arguments);  // seven gradients

}  // namespace scankit
