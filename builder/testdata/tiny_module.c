// SPDX-License-Identifier: Apache-2.0
// The least that is a module file: one export, nothing needed. It is never called.
__attribute__((visibility("default"))) void* PyInit_tiny(void) { return 0; }
