/// The carrier of a session's frames: a stream or messages. Layer: session.
#pragma once

namespace lightq::broker {

/// The carrier of a session's frames.
enum class SessionCarrier {
  stream,  ///< a byte stream of frames
  zmtp,    ///< messages of a ZeroMQ DEALER socket
};

}  // namespace lightq::broker
