/// Where a producer or consumer on a session stands. Layer: client.
#pragma once

namespace lightq::inline v1 {

enum class SessionState {
  connecting,  ///< no channel; one is tried for
  open,        ///< messages go through it
  in_doubt,    ///< of producers: waits for Producer::resolve
  failed,      ///< for good
  closed,
};

}  // namespace lightq::inline v1
