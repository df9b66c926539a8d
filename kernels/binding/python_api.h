// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python's stable ABI of 3.8, and what it lacks: the only file that includes Python.h.
#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

// torch's headers do not compile with the limited API: only binding_torch/ sees all of Python, and it
// shares Ref with the other files.
#if !defined(SCANKIT_FLAVOR_TORCH) && (!defined(Py_LIMITED_API) || Py_LIMITED_API + 0 != 0x03080000)
#error "the universal module is compiled with Py_LIMITED_API=0x03080000"
#endif
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080  // in the limited API from 3.10 on; in every Python since 3.7, with this value
#endif

namespace scankit {

// Owns one reference to a Python object, or none. Callers hold the GIL.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* mine = object_;
    object_ = other.release();
    Py_XDECREF(mine);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }

  static Ref to(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace scankit
