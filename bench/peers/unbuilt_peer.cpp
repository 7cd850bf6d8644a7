/// The placeholder of a peer that was not built. Layer: bench peers.
#include "peers/unbuilt_peer.hpp"

#include <stdexcept>

namespace lightq::bench {
namespace {

class UnbuiltPeer : public Peer {
 public:
  UnbuiltPeer(std::string name, std::string needs) : name_(std::move(name)), needs_(std::move(needs)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::optional<std::string> version() const override { return std::nullopt; }
  [[nodiscard]] std::string needs() const override { return needs_; }
  [[nodiscard]] std::string way() const override { return "not built"; }
  [[nodiscard]] Promise promise(Work) const override {
    return impossible("it was not built: needs " + needs_);
  }
  std::unique_ptr<PeerServer> start(Storage) const override {
    throw std::logic_error(name_ + " was not built");
  }

 private:
  std::string name_;
  std::string needs_;
};

}  // namespace

std::unique_ptr<Peer> make_unbuilt_peer(std::string name, std::string needs) {
  return std::make_unique<UnbuiltPeer>(std::move(name), std::move(needs));
}

}  // namespace lightq::bench
