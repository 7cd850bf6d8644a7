/// Options for connecting, and for producing and consuming over plain ZeroMQ sockets. Layer: client.
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

/// How long a call may take. Every call that can wait takes a Timeout, or has a default in its options.
using Timeout = std::chrono::milliseconds;

/// How to reach a broker, and with which credentials. Plain values; set the needed members by name:
/// `Client::connect(uri, {.user = {"alice", "secret"}})`.
struct ClientOptions {
  /// The user: `user_id` and `password` in requests. Joins topics and reads their statistics. Used in place
  /// of `admin` if that is empty.
  Credentials user = {};
  /// The administrator: `admin_user_id` and `admin_password` in requests. Creates, deletes and lists topics
  /// and reads the whole broker's statistics. Used in place of `user` if that is empty.
  Credentials admin = {};
  /// Fill in credentials that are empty above. They come from LIGHTQ_USER and LIGHTQ_PASSWORD, from
  /// LIGHTQ_ADMIN_USER and LIGHTQ_ADMIN_PASSWORD, and, if the broker runs on this machine, from admin.json in
  /// its data directory. admin.json is used only if there is no user either, or if an administrator's name
  /// was given without a password. Requests then go only through the Unix control socket in that directory,
  /// even if another URI was given.
  /// The environment is read and not changed. A program that wants to remove a password from it overwrites
  /// the variable itself, as the `lightq` command does, and sets the credentials above.
  bool discover_credentials = true;
  /// The broker's public key, Z85 (`lightq broker key` prints it). With a key, everything is encrypted: by
  /// CURVE on ZeroMQ and by TLS on other TCP connections. Nothing is sent to a peer that does not have the
  /// key's secret half, or on TLS the certificate that the broker names. Empty: with `discover_credentials`
  /// the key comes from LIGHTQ_SERVER_KEY, else from broker.json if the broker runs on this machine, else
  /// from server_key.json if it is stopped. If none of these has a key, nothing is encrypted.
  std::string server_key = {};
  /// A file with the secret key of this client, for an encrypting broker that admits only listed keys
  /// (`allowed_client_keys`). `lightq key new FILE` makes it. Only its owner may be able to read it. It is
  /// not read if nothing is encrypted. The key is for the control socket; data sockets use their own pair,
  /// which each join registers. Empty: LIGHTQ_CLIENT_KEY_FILE, with `discover_credentials`; else a new pair.
  std::string client_key_file = {};
  /// False: without a server key, passwords and tickets are sent only to this machine: to loopback addresses,
  /// Unix sockets, and names of loopback addresses. A call that would send one elsewhere fails with
  /// invalid_argument. true, or LIGHTQ_INSECURE=true with `discover_credentials`: they are sent anywhere,
  /// unencrypted.
  bool insecure = false;
  /// The data directory of this machine's broker. Empty: LIGHTQ_DATA_DIR, else the places that a broker
  /// chooses by itself (see data_directories).
  std::string data_dir = {};
  /// How long each request to the broker may take. If the broker replies `busy`, the client repeats the
  /// request within this time.
  Timeout request_timeout{5000};
  /// How long Client's calls that make a producer, consumer or reader wait for the topic's endpoint to reply.
  Timeout connect_timeout{5000};
  /// The ZeroMQ context to use. Lifetime: it must outlive the client and everything that the client makes.
  /// Null: the client makes its own context, which lives as long as the client and its producers and
  /// consumers.
  zmq::context_t* context = nullptr;
};

/// Options of a producer over a ZeroMQ socket.
struct PlainProducerOptions {
  Transport transport = Transport::tcp;  ///< ipc: a Unix-domain socket, for the broker's own machine
  /// How long send() waits by default while the broker reads nothing because the log is full.
  Timeout send_timeout{30'000};
  /// After the producer is closed or destroyed: how long messages that send() has taken may still be sent.
  Timeout linger{5000};
  /// Limits for the messages that wait in this process; fixed for the producer's life. `high_water_bytes`, at
  /// least 1, counts messages of 1 KiB and more: the next message waits while this many bytes are unsent. If
  /// no bytes are unsent, a message of any size is taken. `high_water_messages`, 1 to 1,000,000, counts all
  /// messages.
  std::uint64_t high_water_bytes = limits::high_water_bytes_default;
  int high_water_messages = limits::high_water_messages_default;
};

/// How the consumers of a topic share its messages.
enum class Mode {
  pull,  ///< each message goes to one of the topic's pull consumers
  sub,   ///< each message goes to every sub consumer
};

/// Options of a consumer over a ZeroMQ socket.
struct PlainConsumerOptions {
  Mode mode = Mode::pull;
  Transport transport = Transport::tcp;  ///< ipc: a Unix-domain socket, for the broker's own machine
  /// How many messages may wait in this process for receive(), 1 to 1,000,000. More is faster; fewer share
  /// the work more evenly between pull consumers. Fixed for the consumer's life, because libzmq's receiving
  /// side stalls if the mark changes while connected.
  int high_water_messages = 1000;
};

}  // namespace lightq::inline v1
