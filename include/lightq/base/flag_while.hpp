/// A flag that is set while something is done. Layer: base.
#pragma once

#include <utility>

namespace lightq::inline v1 {

/// Sets a flag, and gives it back the value that it had when this ends, also where something is thrown.
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
