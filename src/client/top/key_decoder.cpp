/// Splits the bytes that a terminal sends into keys. Layer: cli.
#include "client/top/key_decoder.hpp"

#include <utility>

#include "client/top/top_screen.hpp"

namespace lightq::cli {

namespace {

void add_arrow(char last, std::string& keys) {
  if (last == 'A') keys += TopScreen::up;
  if (last == 'B') keys += TopScreen::down;
}

}  // namespace

std::string KeyDecoder::decode(std::string_view typed) {
  std::string keys;
  for (const char byte : typed) decode_one(byte, keys);
  return keys;
}

void KeyDecoder::decode_one(char byte, std::string& keys) {
  switch (state_) {
    case State::escape:
      if (byte == '[' || byte == 'O') {
        state_ = byte == '[' ? State::parameters : State::vt100;
        has_parameters_ = false;
        return;
      }
      keys += TopScreen::escape;  // Escape was pressed, and then another key
      state_ = State::between;
      break;
    case State::parameters:
      if (' ' <= byte && byte <= '?') {
        has_parameters_ = true;
        return;
      }
      state_ = State::between;
      if ('@' <= byte && byte <= '~') {
        if (!has_parameters_) add_arrow(byte, keys);
        return;
      }
      break;  // not a part of a control sequence
    case State::vt100:
      state_ = State::between;
      add_arrow(byte, keys);
      return;
    case State::between: break;
  }
  if (byte == TopScreen::escape) {
    state_ = State::escape;
  } else {
    keys += byte == '\n' ? TopScreen::enter : byte;
  }
}

std::string KeyDecoder::finish() {
  return std::exchange(state_, State::between) == State::escape ? std::string(1, TopScreen::escape)
                                                                : std::string();
}

}  // namespace lightq::cli
