/// A value or an error. Layer: base.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <lightq/base/error.hpp>

namespace lightq::inline v1 {

namespace detail {

/// Aborts the process, because a program took the value of a Result with an error, or the error of one with a
/// value. Writes a sentence to standard error first. `error`: the error that it has; null if it has a value.
[[noreturn, gnu::cold, gnu::noinline]] inline void end_by_wrong_access(const Error* error) noexcept {
  const std::string text = error == nullptr ? "error() of a Result that is no error"
                                            : "the value of a Result that is an error: " + error->text();
  (void)std::fprintf(stderr, "lightq: the program took %s\n", text.c_str());
  std::abort();
}

}  // namespace detail

/// The exception that `value_or_throw` throws.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(error.text()), error_(std::move(error)) {}
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

/// The outcome of an operation that can fail: a `T` or an `Error`. Test it before taking the value.
/// Taking the wrong one is a bug: in every build it ends the process with a sentence on standard error.
/// `value_or_throw()` is for callers that prefer exceptions.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)), ok_(true) {}       // NOLINT(google-explicit-constructor)
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT(google-explicit-constructor)
  /// Constructs the value in place from `parts`.
  template <typename... Parts>
  explicit Result(std::in_place_t, Parts&&... parts) : value_(std::forward<Parts>(parts)...), ok_(true) {}

  Result(const Result& other)
    requires std::is_copy_constructible_v<T>
      : ok_(other.ok_) {
    begin(other);
  }
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : ok_(other.ok_) {
    begin(std::move(other));
  }
  Result& operator=(const Result& other)
    requires std::is_copy_constructible_v<T>
  {
    return *this = Result(other);
  }
  Result& operator=(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (this == &other) return *this;
    end();
    ok_ = other.ok_;
    if constexpr (std::is_nothrow_move_constructible_v<T>) {
      begin(std::move(other));
    } else {
      try {
        begin(std::move(other));
      } catch (...) {  // the result is then an error without a sentence
        ok_ = false;
        ::new (static_cast<void*>(&error_)) Error();
        throw;
      }
    }
    return *this;
  }
  ~Result() { end(); }

  [[nodiscard]] bool ok() const { return ok_; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return expect_value(), value_; }
  [[nodiscard]] const T& value() const& { return expect_value(), value_; }
  [[nodiscard]] T&& value() && { return expect_value(), std::move(value_); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const {
    if (ok()) [[unlikely]]
      detail::end_by_wrong_access(nullptr);
    return error_;
  }

  T value_or_throw() && {
    if (!ok()) throw Exception(error());
    return std::move(*this).value();
  }

 private:
  void expect_value() const {
    if (!ok()) [[unlikely]]
      detail::end_by_wrong_access(&error_);
  }

  /// Constructs the member that `ok_` names from that of `other`.
  template <typename Other>
  void begin(Other&& other) {
    if (ok_) {
      ::new (static_cast<void*>(&value_)) T(std::forward<Other>(other).value_);
    } else {
      ::new (static_cast<void*>(&error_)) Error(std::forward<Other>(other).error_);
    }
  }
  /// Destroys the member that `ok_` names.
  void end() {
    if (ok_) {
      value_.~T();
    } else {
      error_.~Error();
    }
  }

  // A union, because a std::variant takes several times as long to compile for each T.
  union {
    T value_;
    Error error_;
  };
  bool ok_;
};

/// The outcome of an operation without a value: success or an `Error`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const {
    if (ok()) [[unlikely]]
      detail::end_by_wrong_access(nullptr);
    return *error_;
  }
  void value_or_throw() const {
    if (!ok()) throw Exception(error());
  }

 private:
  std::optional<Error> error_;
};

}  // namespace lightq::inline v1
