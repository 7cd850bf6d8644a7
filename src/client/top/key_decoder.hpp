/// Splits the bytes that a terminal sends into keys. Layer: cli.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lightq::cli {

/// Keeps the begin of a key whose bytes come in several reads. Arrow keys are control sequences (ECMA-48,
/// section 5.4), or `ESC O` and a letter in the application mode of VT100. For one thread.
class KeyDecoder {
 public:
  /// Returns the keys that `typed` completes, in order, as TopScreen::press takes them. Leaves out sequences
  /// of other keys.
  [[nodiscard]] std::string decode(std::string_view typed);
  /// Returns true if the bytes so far may be the begin of a key.
  [[nodiscard]] bool is_incomplete() const { return state_ != State::between; }
  /// Ends an incomplete key, because no further byte has come for a while. Returns Escape if it was pressed
  /// alone.
  [[nodiscard]] std::string finish();

 private:
  enum class State : std::uint8_t { between, escape, parameters, vt100 };

  void decode_one(char byte, std::string& keys);

  State state_ = State::between;
  bool has_parameters_ = false;  // of the control sequence: it is an arrow key with Shift, Alt or Control
};

}  // namespace lightq::cli
