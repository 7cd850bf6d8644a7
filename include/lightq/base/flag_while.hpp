/// A flag that is set for the duration of a scope. Layer: base.
#pragma once

#include <utility>

namespace lightq::inline v1 {

/// Sets a flag. Restores its former value at the end of the scope, also if an exception leaves it.
class FlagWhile {
 public:
  explicit FlagWhile(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
  FlagWhile(const FlagWhile&) = delete;
  FlagWhile& operator=(const FlagWhile&) = delete;
  ~FlagWhile() { flag_ = before_; }

 private:
  bool& flag_;
  const bool before_;
};

}  // namespace lightq::inline v1
