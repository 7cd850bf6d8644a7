/// Empties memory that was shared with a client, on a thread of its own. Layer: endpoint.
#pragma once

#include <memory>

#include <lightq/protocol/session_memory.hpp>

namespace lightq::broker {

/// Empties the rings (see session::SharedRings::empty), lets `place` go, which counts them, and unmaps them.
/// Returns at once: the client can keep the memory's inode locked for ever, and only this thread waits for
/// it. Any thread.
void empty_apart(std::unique_ptr<session::SharedRings> rings, bool but_unread, std::shared_ptr<void> place);

}  // namespace lightq::broker
