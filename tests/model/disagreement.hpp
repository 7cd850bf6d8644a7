/// The broker did something that the model does not allow, or failed to do something.
#pragma once

#include <stdexcept>
#include <string>

namespace lightq::model {

struct Disagreement : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws the complaint unless it holds. `what` is a text, or a function that makes one.
template <typename What>
void demand(bool holds, What&& what) {
  if (holds) [[likely]]
    return;
  if constexpr (requires { what(); }) {
    throw Disagreement(what());
  } else {
    throw Disagreement(what);
  }
}

}  // namespace lightq::model
