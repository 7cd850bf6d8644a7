/// A peer whose client library was not found when the suite was built. Layer: bench peers.
#pragma once

#include <memory>
#include <string>

#include "peers/peer.hpp"

namespace lightq::bench {

/// Returns a peer that is not installed. `needs`: the packages to install.
std::unique_ptr<Peer> make_unbuilt_peer(std::string name, std::string needs);

}  // namespace lightq::bench
