/// What a program can choose when it connects, produces and consumes. Layer: client.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/control.hpp>

namespace zmq {
class context_t;
}

namespace lightq::inline v1 {

using protocol::BrokerStats;
using protocol::BrokerType;
using protocol::ConnectionType;
using protocol::Credentials;
using protocol::GroupStats;
using protocol::Overflow;
using protocol::SubscriberStats;
using protocol::TopicListing;
using protocol::TopicSettings;
using protocol::TopicStats;
using protocol::Transport;

/// How long a call may take. Every call that can wait takes one, or has a default in its options.
using Timeout = std::chrono::milliseconds;

/// How to reach a broker, and who asks. Plain values; fill in what you need by name:
/// `Client::connect(uri, {.user = {"alice", "secret"}})`.
struct ClientOptions {
  /// The user: `user_id` and `password` on the wire. Joins topics, reads their stats, and stands in for
  /// `admin` where that is empty.
  Credentials user = {};
  /// The administrator: `admin_user_id` and `admin_password` on the wire. Creates, deletes and lists topics
  /// and reads the whole broker's stats; stands in for `user` where that is empty.
  Credentials admin = {};
  /// Fill in credentials left empty above from LIGHTQ_USER and LIGHTQ_PASSWORD, from LIGHTQ_ADMIN_USER and
  /// LIGHTQ_ADMIN_PASSWORD, and, when the broker runs on this machine, from its data directory's admin.json:
  /// the latter only if there is no user either, or an administrator's name without a password, and only
  /// through the Unix control socket in that directory, whatever URI was given.
  /// The environment is read and left as it is: a program that wants a password out of it overwrites that
  /// itself, as the `lightq` command does, and gives the credentials above.
  bool discover_credentials = true;
  /// The broker's public key, Z85 (`lightq broker key` prints it): everything is encrypted then, by CURVE on
  /// ZeroMQ and by TLS on other TCP connections, and nothing is said to whoever does not have the key's
  /// secret half, or is not whom that one names. Empty: LIGHTQ_SERVER_KEY, else, when the broker runs on this
  /// machine, what its broker.json says, or server_key.json when it is stopped, all with
  /// `discover_credentials`; else nothing is encrypted.
  std::string server_key = {};
  /// A file with the secret key that this client shows to a broker that encrypts, for one that takes the keys
  /// of a list alone (`allowed_client_keys`): `lightq key new FILE` makes it. To be read by its owner alone;
  /// not looked at where nothing is encrypted. It is for the control socket: data sockets have a pair of
  /// their own, which each join registers. Empty: LIGHTQ_CLIENT_KEY_FILE, with `discover_credentials`; else a
  /// new pair.
  std::string client_key_file = {};
  /// Without a server key, passwords and tickets go to this machine alone: loopback, Unix sockets, and names
  /// that stand for loopback addresses; what would carry one elsewhere fails with invalid_argument. True, or
  /// LIGHTQ_INSECURE=true with `discover_credentials`: they go anywhere in clear.
  bool insecure = false;
  /// Where this machine's broker keeps its data; empty: LIGHTQ_DATA_DIR, else the places that a broker
  /// chooses by itself (see data_directories).
  std::string data_dir = {};
  /// How long each request to the broker may take. One that is answered `busy` is sent again meanwhile.
  Timeout request_timeout{5000};
  /// How long producer() and consumer() wait for a topic's endpoint to answer.
  Timeout connect_timeout{5000};
  /// ZeroMQ context to use; it must outlive the client and everything made by it. Null: one of our own,
  /// which lives as long as the client and its producers and consumers.
  zmq::context_t* context = nullptr;
};

/// How a producer sends over a ZeroMQ socket.
struct PlainProducerOptions {
  Transport transport = Transport::tcp;  ///< ipc: a Unix-domain socket, for the broker's own machine
  /// How long send() waits, when it is not told, while the broker takes nothing because the log is full.
  Timeout send_timeout{30'000};
  /// How long messages already taken by send() may still leave when the producer closes or is destroyed.
  Timeout linger{5000};
  /// Bound what waits in this process. `high_water_bytes`, at least 1, counts the messages of 1 KiB and more:
  /// the next message waits while so many bytes have not left, and one of any size fits when none wait.
  /// `high_water_messages`, 1 to 1,000,000, counts all. Both hold for the producer's life.
  std::uint64_t high_water_bytes = limits::high_water_bytes_default;
  int high_water_messages = limits::high_water_messages_default;
};

/// How a consumer shares a topic with others.
enum class Mode {
  pull,  ///< each message goes to one of the topic's pull consumers
  sub,   ///< each message goes to every sub consumer
};

/// How a consumer receives over a ZeroMQ socket.
struct PlainConsumerOptions {
  Mode mode = Mode::pull;
  Transport transport = Transport::tcp;  ///< ipc: a Unix-domain socket, for the broker's own machine
  /// How many messages may wait in this process for receive(), 1 to 1,000,000: more is faster, fewer share
  /// work more evenly between pull consumers. Fixed for the consumer's life, since libzmq's receiving side
  /// stalls when its mark changes under way.
  int high_water_messages = 1000;
};

}  // namespace lightq::inline v1
