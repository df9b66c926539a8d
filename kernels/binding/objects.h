// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <stdint.h>

// Python's stable ABI of 3.8 and what it lacks: the only file that includes Python.h. One file serves Pythons
// with and without the GIL, whose objects begin differently, so that nothing here may be compiled in that
// depends on the place of a field: counts and types are reached by the functions below.

// torch's headers do not compile with the limited API: only binding_torch/ sees all of Python, and it
// shares Ref with the other files.
#if !defined(SCANKIT_FLAVOR_TORCH) && (!defined(Py_LIMITED_API) || Py_LIMITED_API + 0 != 0x03080000)
#error "the universal module is compiled with Py_LIMITED_API=0x03080000"
#endif
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080  // in the limited API from 3.10 on; in every Python since 3.7, with this value
#endif

namespace scankit {

// Whether this Python is free-threaded (PEP 703). init_module() sets it before any object is touched; it
// never changes after that.
extern bool free_threaded;

// How an object of a free-threaded Python begins (3.13 to 3.15). init_module() compares the sizes with what
// Python says of itself.
struct FreeThreadedHead {
  uint64_t thread = 0;
  uint16_t flags = 0;
  uint8_t mutex = 0, collector = 0;
  uint32_t local_count = UINT32_MAX;  // immortal
  int64_t shared_count = 0;
  PyObject* type = nullptr;
};
static_assert(sizeof(FreeThreadedHead) == 32, "as Include/object.h has it under Py_GIL_DISABLED");

// The count of an object with the GIL is changed in place: a call is felt in a tiny scan, which handles some
// fifty objects.
inline void add_reference(PyObject* object) {
  if (free_threaded)
    Py_IncRef(object);
  else
    Py_XINCREF(object);
}
inline void drop_reference(PyObject* object) {
  if (free_threaded)
    Py_DecRef(object);
  else
    Py_XDECREF(object);
}

// Borrowed.
inline PyObject* type_of(const PyObject* object) {
  if (free_threaded) return reinterpret_cast<const FreeThreadedHead*>(object)->type;
  return reinterpret_cast<PyObject*>(Py_TYPE(const_cast<PyObject*>(object)));
}
inline bool is_integer(const PyObject* object) {
  constexpr unsigned long kLongSubclass = 1ul << 24;  // Py_TPFLAGS_LONG_SUBCLASS
  return (PyType_GetFlags(reinterpret_cast<PyTypeObject*>(type_of(object))) & kLongSubclass) != 0;
}
inline bool is_c_function(const PyObject* object) {
  return PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type_of(object)), &PyCFunction_Type) != 0;
}

}  // namespace scankit

// What reads an object's head by the layout that it was compiled with.
#ifndef SCANKIT_FLAVOR_TORCH
#undef Py_INCREF
#undef Py_DECREF
#undef Py_XINCREF
#undef Py_XDECREF
#undef Py_CLEAR
#undef Py_REFCNT
#undef Py_NewRef
#undef Py_XNewRef
#undef Py_TYPE
#undef Py_IS_TYPE
#undef PyObject_TypeCheck
#undef PyTuple_Check
#undef PyLong_Check
#undef PyUnicode_Check
#undef PyCFunction_Check
#pragma GCC poison Py_INCREF Py_DECREF Py_XINCREF Py_XDECREF Py_CLEAR Py_NewRef Py_XNewRef Py_REFCNT Py_TYPE
#pragma GCC poison Py_IS_TYPE PyObject_TypeCheck PyTuple_Check PyLong_Check PyUnicode_Check PyCFunction_Check
#endif

namespace scankit {

// Owns one reference to a Python object, or none. Callers are attached to Python: they hold the GIL where
// there is one.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* mine = object_;
    object_ = other.release();
    drop_reference(mine);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { drop_reference(object_); }

  static Ref to(PyObject* borrowed) {
    add_reference(borrowed);
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
