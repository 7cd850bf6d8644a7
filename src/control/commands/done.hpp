/// The callback of an operation. Layer: control.
#pragma once

#include <functional>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Receives the result of an operation. It is called exactly once, immediately or later, on the control
/// thread, but never if the loop ends first.
template <typename T>
using Done = std::function<void(Result<T>)>;

}  // namespace lightq::broker
