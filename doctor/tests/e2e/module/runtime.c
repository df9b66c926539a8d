// SPDX-License-Identifier: Apache-2.0
// What makes a module need the CUDA runtime: one call of it.
int cudaGetLastError(void);
int selective_scan_last_cuda_error(void);
int selective_scan_last_cuda_error(void) { return cudaGetLastError(); }
