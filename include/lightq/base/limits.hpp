/// Every bound in one place: what a client, a file or a stranger can make grow stops at one of these. Layer:
/// base. docs/protocol.md, "Limits", is the users' view of this table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lightq::inline v1::limits {

inline constexpr std::uint64_t KiB = 1024;
inline constexpr std::uint64_t MiB = 1024 * KiB;
inline constexpr std::uint64_t GiB = 1024 * MiB;

// Control protocol.
inline constexpr std::size_t request_bytes_min = 4 * KiB;
inline constexpr std::size_t request_bytes_max = 64 * KiB;      ///< above: answered `request_too_large`
inline constexpr std::size_t request_bytes_hard_max = 1 * MiB;  ///< above: the connection is closed
inline constexpr std::size_t answers_unread_bytes_pause =
    64 * KiB;                                                      ///< above: nothing is read from the client
inline constexpr std::size_t answers_unread_bytes_max = 64 * MiB;  ///< above: the connection is closed
/// Of all connections together, of one source a quarter: whoever has most of it is closed.
inline constexpr std::size_t answers_unread_bytes_total_min = 256 * KiB;
inline constexpr std::size_t answers_unread_bytes_total_default = 256 * MiB;
inline constexpr std::size_t control_connections_max =
    10'000;  ///< that have shown credentials: the one idle longest goes
inline constexpr std::size_t json_depth_max = 16;
inline constexpr std::size_t topic_name_bytes_max = 128;
inline constexpr std::size_t user_id_bytes_max = 128;
inline constexpr std::size_t password_bytes_max = 1024;
inline constexpr std::size_t requests_waiting_max = 1024;            ///< above: answered `busy`
inline constexpr std::size_t requests_waiting_per_source_max = 256;  ///< likewise, of one source
inline constexpr std::size_t credentials_remembered_min = 2;
inline constexpr std::size_t credentials_remembered_max =
    65536;  ///< keyed hashes of passwords seen to be right, two of most

// Users.
inline constexpr std::size_t users_max = 10'000;
inline constexpr std::size_t rights_per_user_max = 256;  ///< patterns
inline constexpr std::size_t topic_pattern_bytes_max = 128;

// Strangers at the control socket.
inline constexpr std::size_t requests_per_second_default = 10'000;  ///< of one source: answered `busy`
inline constexpr std::size_t requests_per_second_max = 1'000'000;
inline constexpr std::size_t requests_per_second_free = 100;       ///< of one connection: they always go
inline constexpr std::size_t logins_waiting_max = 1024;            ///< for their computation: answered `busy`
inline constexpr std::size_t logins_waiting_per_source_max = 256;  ///< likewise, of one source
inline constexpr std::size_t logins_waiting_slowed_max = 16;  ///< likewise, of one that has given wrong ones
inline constexpr std::size_t passwords_waiting_per_source_max = 16;   ///< to be kept: answered `busy`
inline constexpr std::size_t answers_held_back_max = 1024;            ///< to wrong ones: the oldest is given
inline constexpr std::size_t answers_held_back_per_source_max = 256;  ///< likewise, of one source
inline constexpr std::size_t login_sources_max = 4096;                ///< of which failures are remembered
inline constexpr std::size_t login_users_max = 4096;                  ///< likewise
inline constexpr std::size_t login_names_max = 16'384;         ///< likewise: users that one source has tried
inline constexpr std::size_t login_sources_per_user_max = 16;  ///< that were right for the user

// Topics.
inline constexpr std::size_t topics_max = 100'000;
inline constexpr std::size_t endpoints_per_topic_max = 4096;
inline constexpr std::size_t endpoints_max = 1'000'000;  ///< of all topics
inline constexpr std::uint64_t ring_bytes_min = 64 * KiB;
inline constexpr std::uint64_t ring_bytes_default = 64 * MiB;
inline constexpr std::uint64_t ring_bytes_max = 1024 * GiB;  ///< mapped lazily: address space, not memory
inline constexpr std::uint64_t segment_bytes_min = 64 * KiB;
inline constexpr std::uint64_t segment_bytes_default = 128 * MiB;
inline constexpr std::uint64_t segment_bytes_max = 4 * GiB - 64 * KiB;
inline constexpr std::uint64_t segment_bytes_first =
    16 * KiB;  ///< a topic's first segment file; then four times the last one up to 1 MiB, then twice

// Named cursors of an embedded queue.
inline constexpr std::size_t cursors_max = 1024;
inline constexpr std::size_t cursor_name_bytes_max = 128;

// Embedded queues.
inline constexpr std::uint64_t queue_segment_bytes_min = 4 * KiB;
inline constexpr std::uint64_t queue_segment_bytes_max = 4 * GiB - 68 * KiB;

// Messages and batches.
inline constexpr std::uint64_t message_bytes_max_default = 16 * MiB;
inline constexpr std::uint64_t message_bytes_max_max = 1 * GiB;
inline constexpr std::uint64_t unfinished_bytes_total_min = 1 * MiB;
inline constexpr std::uint64_t unfinished_bytes_total_default =
    1 * GiB;                                                 ///< large messages that come or leave
inline constexpr std::size_t batch_bytes_target = 64 * KiB;  ///< plain messages are packed up to this
inline constexpr std::size_t batch_records_max = 65536;
inline constexpr std::size_t compressed_batch_bytes_max =
    4 * MiB;  ///< its records, when they are not compressed
/// Compressed records may be longer than so much when they are not, by so many times what they are
/// compressed: what is cheap to send must not be dear to read.
inline constexpr std::size_t unpacked_bytes_free = 16 * KiB;
inline constexpr std::size_t unpacked_ratio_max = 128;
inline constexpr std::size_t key_bytes_max = 1 * KiB;  ///< of a message's key
inline constexpr std::size_t headers_max = 64;         ///< of a message
inline constexpr std::size_t header_name_bytes_max = 128;
inline constexpr std::size_t attributes_bytes_max =
    32 * KiB;  ///< of a message: key, headers and time together

// Plain ZeroMQ endpoints.
/// Connections that have not said who they are, of one thread of the broker: the oldest makes room.
inline constexpr std::size_t handshakes_max_min = 16;
inline constexpr std::size_t handshakes_max_default = 4'096;
inline constexpr std::size_t handshakes_max_max = 65'536;
/// New connections that one thread of the broker takes at once, and then so many a second.
inline constexpr std::size_t accepts_at_once = 512;
/// A handshake that is encrypted costs a few tenths of a millisecond.
inline constexpr std::uint64_t accepts_per_second_default = 4'000;
inline constexpr std::uint64_t accepts_per_second_encrypted = 1'000;
inline constexpr std::uint64_t accepts_per_second_max = 1'000'000;
/// How long a connection has to say who it is.
inline constexpr std::uint64_t handshake_ms_min = 100;
inline constexpr std::uint64_t handshake_ms_default = 5'000;
inline constexpr std::uint64_t handshake_ms_max = 60'000;
inline constexpr std::size_t connections_per_endpoint_max = 10'000;
/// Of one user, at all data endpoints: less than one address takes, so that others have room there.
inline constexpr std::size_t connections_per_user_default = 4'000;
inline constexpr std::size_t connections_per_user_max = 1'000'000;
inline constexpr std::uint64_t ticket_ms_min = 100;  ///< how long a plain join's ticket is good
inline constexpr std::uint64_t ticket_ms_default = 86'400'000;
inline constexpr std::uint64_t ticket_ms_max = 31'536'000'000;
inline constexpr std::size_t client_keys_per_topic_max = 16'384;  ///< registered, of an encrypting broker
inline constexpr std::size_t allowed_client_keys_max = 65'536;    ///< in a broker's file of them
inline constexpr std::size_t allowed_client_keys_bytes_max = 16 * MiB;  ///< of that file

// Plain ZeroMQ sockets of the client library: what waits on this side of the connection.
inline constexpr int high_water_messages_min = 1;
inline constexpr int high_water_messages_default = 10'000;
inline constexpr int high_water_messages_max = 1'000'000;
inline constexpr std::uint64_t high_water_bytes_default = 1 * MiB;
inline constexpr std::size_t counted_message_bytes_min = 1 * KiB;  ///< smaller ones: by their number alone

// Sessions.
inline constexpr std::size_t session_channels_max = 4096;  ///< open at once on one session
inline constexpr std::size_t session_reads_max = 16;       ///< of one session, not answered in full
inline constexpr std::uint64_t read_bytes_max = 64 * MiB;  ///< of payload, in answer to one read
inline constexpr std::size_t producers_max = 10'000;       ///< that a topic remembers
inline constexpr std::size_t producer_idle_days_max = 7;
inline constexpr std::size_t groups_per_topic_max = 1024;               ///< of all kinds
inline constexpr std::size_t members_per_group_max = 4096;              ///< consumers over sessions
inline constexpr std::uint64_t in_flight_messages_max = 2'147'483'648;  ///< not acknowledged by one consumer
inline constexpr std::size_t outstanding_ranges_max = 16'384;           ///< likewise, in so many pieces
inline constexpr std::size_t returned_ranges_max = 65'536;  ///< that wait for another consumer of a group
/// Consumers on sessions, of one thread of the broker.
inline constexpr std::size_t group_members_total = 131'072;
inline constexpr std::size_t group_ranges_total = 1'048'576;  ///< of both kinds, of one thread of the broker
inline constexpr std::uint32_t ack_timeout_ms_default = 30'000;
/// How long a consumer may keep a message from its group by a reject, an extend or its ack timeout.
inline constexpr std::uint64_t redelivery_ms_max_default = 43'200'000;

// Sessions over shared memory.
inline constexpr std::size_t shared_bytes_total_default = 16 * MiB;  ///< of all sessions
inline constexpr std::size_t shared_bytes_total_max = 64 * GiB;

// Sessions over TLS.
inline constexpr std::uint64_t tls_records_per_key_max =
    4'194'304;  ///< sealed with one key; RFC 8446 permits 2^24.5
inline constexpr std::size_t tls_answer_bytes_max =
    4 * KiB;  ///< of answers to a peer's key updates; one byte more for each KiB that it says
inline constexpr std::size_t tls_file_bytes_max = 256 * KiB;  ///< of a certificate or a key

// Encryption at rest.
inline constexpr std::size_t storage_keys_max = 64;  ///< of a broker: the one in use, and older ones
inline constexpr std::size_t storage_key_text_bytes_max =
    64 * KiB;  ///< of the file that holds them, or of what the command prints
inline constexpr std::uint64_t storage_key_command_ms_max = 10'000;     ///< how long that command may take
inline constexpr std::size_t decrypted_bytes_total_default = 64 * MiB;  ///< of batches, all topics together

// Files of passwords and keys.
inline constexpr std::uint64_t secret_wait_ms_max = 60'000;  ///< until what a pipe is to say has come

// Groups of consumers.
inline constexpr std::size_t acknowledged_ranges_max = 4096;  ///< of a cursor, kept over a restart
/// Of all groups of a topic, kept over a crash.
inline constexpr std::size_t acknowledged_ranges_total = 32'768;

// Between threads.
inline constexpr std::size_t mailbox_entries_max = 8192;

// Descriptors that data endpoints leave free.
inline constexpr std::size_t descriptors_reserved = 128;
/// Of these, control clients leave so many, so that a broker full of data connections can still be asked.
inline constexpr std::size_t descriptors_reserved_for_files = 64;

}  // namespace lightq::inline v1::limits
