/// The state of a producer or consumer on a session. Layer: client.
#pragma once

namespace lightq::inline v1 {

enum class SessionState {
  connecting,  ///< no channel; trying to open one
  open,        ///< messages can be exchanged
  in_doubt,    ///< producers: waiting for Producer::resolve
  failed,      ///< permanently
  closed,
};

}  // namespace lightq::inline v1
