// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "doctor/base/message.h"

// An expected-like Result for C++20: std::expected needs C++23, which nvcc 13 and clang-tidy 14 do not read.
// Member names are those of std::expected, so that the change will be a rename.
namespace scankit {

// What a caller can act on. A missing file on a probed machine is a fact, not an Error. The messages are
// for people; code decides by Errc alone.
enum class Errc {
  InvalidArgument,  // the caller or the user gave something unusable (exit status 2)
  NotFound,
  PermissionDenied,
  Malformed,    // the bytes are not what their format demands
  Unsupported,  // well-formed, but not something this version handles
  Io,           // the operating system refused; the message carries strerror
  Timeout,
  Conflict,   // somebody else holds the lock, or the state changed meanwhile
  ToolFailed  // a child program ended badly
};

// An error, in no language yet: who prints it chooses one, and a snapshot or a journal stores it as it is.
struct Error {
  Errc code = Errc::Io;
  Message message;  // one line: what, where, why
  Message hint;     // one line: what to do next; may be empty
};

// Contains either a T or an Error. value() and * of a Result that contains an Error throw
// std::bad_variant_access: check first, or use SCANKIT_TRY.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }
  T value_or(T other) const& { return has_value() ? value() : std::move(other); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}
  bool has_value() const { return ok_; }
  explicit operator bool() const { return ok_; }
  void value() const {}
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace scankit

#define SCANKIT_CONCAT_(a, b) a##b
#define SCANKIT_CONCAT(a, b) SCANKIT_CONCAT_(a, b)
// SCANKIT_TRY(auto x, f()): x is the value of f(), or the enclosing function returns f()'s Error.
// It expands to three statements: as the body of an `if` or a loop it needs braces, and only one
// fits on a line.
#define SCANKIT_TRY(declaration, expression) \
  SCANKIT_TRY_(SCANKIT_CONCAT(scankit_try_, __LINE__), declaration, expression)
#define SCANKIT_TRY_(temporary, declaration, expression)           \
  auto temporary = (expression);                                   \
  if (!temporary.has_value()) return std::move(temporary).error(); \
  declaration = std::move(temporary).value()
// SCANKIT_CHECK(f()): the same for Result<void>. It ends in an `if` without `else`: an `else` after it
// would belong to the macro.
#define SCANKIT_CHECK(expression)                                      \
  if (auto scankit_check_ = (expression); !scankit_check_.has_value()) \
  return std::move(scankit_check_).error()
