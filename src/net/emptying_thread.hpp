/// Empties memory that was shared with a client, on a separate thread. Layer: net.
#pragma once

#include <memory>

#include <lightq/protocol/session_memory.hpp>

namespace lightq::broker {

/// Empties the rings (see session::SharedRings::empty), releases `place`, which counts their memory, and
/// unmaps them. `but_unread`: keeps the bytes that the client has not read, unless they are many. Returns
/// immediately: the client can keep the memory's inode locked forever, and only this thread waits for it.
/// Thread: any.
void empty_apart(std::unique_ptr<session::SharedRings> rings, bool but_unread, std::shared_ptr<void> place);

}  // namespace lightq::broker
