/// Every limit in one place. Each quantity that a client, file or unauthenticated peer can increase has its
/// limit here. Layer: base. docs/protocol.md, "Limits", describes them for users.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lightq::inline v1::limits {

inline constexpr std::uint64_t KiB = 1024;
inline constexpr std::uint64_t MiB = 1024 * KiB;
inline constexpr std::uint64_t GiB = 1024 * MiB;

// Control protocol.
inline constexpr std::size_t request_bytes_min = 4 * KiB;
inline constexpr std::size_t request_bytes_max = 64 * KiB;           ///< beyond: `request_too_large`
inline constexpr std::size_t request_bytes_hard_max = 1 * MiB;       ///< beyond: the connection is closed
inline constexpr std::size_t answers_unread_bytes_pause = 64 * KiB;  ///< beyond: the client is not read
inline constexpr std::size_t answers_unread_bytes_max = 64 * MiB;    ///< beyond: the connection is closed
/// Unread replies of all connections. Beyond it, or beyond a quarter for one source, the connection with the
/// most is closed.
inline constexpr std::size_t answers_unread_bytes_total_min = 256 * KiB;
inline constexpr std::size_t answers_unread_bytes_total_default = 256 * MiB;
inline constexpr std::size_t control_connections_max =
    10'000;  ///< authenticated connections; beyond: the connection that is idle longest is closed
inline constexpr std::size_t json_depth_max = 16;
inline constexpr std::size_t topic_name_bytes_max = 128;
inline constexpr std::size_t user_id_bytes_max = 128;
inline constexpr std::size_t password_bytes_max = 1024;
/// Topics in the reply to one `stats_all`.
inline constexpr std::uint64_t stats_page_topics_default = 256;
inline constexpr std::uint64_t stats_page_topics_max = 1024;
inline constexpr std::uint64_t stats_members_max = 1'000;  ///< members of groups in one reply to `stats`
/// Topics, groups and subscribers in such a reply: it ends with the topic that reaches this number.
inline constexpr std::size_t stats_page_entries_max = 2048;
/// Pages of letters that one `trace` reads to find the letters of its message.
inline constexpr unsigned trace_letter_pages_max = 16;
inline constexpr std::size_t requests_waiting_max = 1024;  ///< beyond: `busy`
inline constexpr std::size_t requests_waiting_per_source_max =
    256;  ///< requests of one source; beyond: `busy`
inline constexpr std::size_t credentials_remembered_min = 2;
inline constexpr std::size_t credentials_remembered_max =
    65536;  ///< keyed hashes of right passwords; a credential usually takes two entries

// Users.
inline constexpr std::size_t users_max = 10'000;
inline constexpr std::size_t rights_per_user_max = 256;  ///< rights of one user, each with a pattern
inline constexpr std::size_t topic_pattern_bytes_max = 128;

// Unauthenticated peers at the control socket.
inline constexpr std::size_t requests_per_second_default =
    10'000;  ///< requests of one source; beyond: `busy`
inline constexpr std::size_t requests_per_second_max = 1'000'000;
inline constexpr std::size_t requests_per_second_free =
    100;  ///< requests of one connection that are never throttled
inline constexpr std::size_t logins_waiting_max =
    1024;  ///< logins that wait for a password hash; beyond: `busy`
inline constexpr std::size_t logins_waiting_per_source_max = 256;  ///< such logins of one source
inline constexpr std::size_t logins_waiting_slowed_max =
    16;  ///< such logins of a source that sent wrong passwords
/// New passwords of one source that wait to be hashed and stored. Beyond: `busy`.
inline constexpr std::size_t passwords_waiting_per_source_max = 16;
/// Delayed replies to wrong passwords. Beyond: the oldest is sent early.
inline constexpr std::size_t answers_held_back_max = 1024;
inline constexpr std::size_t answers_held_back_per_source_max = 256;  ///< delayed replies to one source
inline constexpr std::size_t login_sources_max = 4096;  ///< sources with remembered failed logins
inline constexpr std::size_t login_users_max = 4096;    ///< users with remembered failed logins
inline constexpr std::size_t login_names_max = 16'384;  ///< pairs of source and user with failed logins
inline constexpr std::size_t login_sources_per_user_max =
    16;  ///< remembered sources that sent a user's right password

// Topics.
inline constexpr std::size_t topics_max = 100'000;
inline constexpr std::size_t endpoints_per_topic_max = 4096;
inline constexpr std::size_t endpoints_max = 1'000'000;  ///< endpoints of all topics together
inline constexpr std::uint64_t ring_bytes_min = 64 * KiB;
inline constexpr std::uint64_t ring_bytes_default = 64 * MiB;
inline constexpr std::uint64_t ring_bytes_max = 1024 * GiB;  ///< mapped lazily: address space, not memory
inline constexpr std::uint64_t segment_bytes_min = 64 * KiB;
inline constexpr std::uint64_t segment_bytes_default = 128 * MiB;
inline constexpr std::uint64_t segment_bytes_max = 4 * GiB - 64 * KiB;
/// A topic's first segment file. Each next file is 4 times as large as the one before; from 1 MiB on, twice.
inline constexpr std::uint64_t segment_bytes_first = 16 * KiB;

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
    1 * GiB;  ///< large messages that are partly received or sent
/// Plain messages are packed into batches of up to this size.
inline constexpr std::size_t batch_bytes_target = 64 * KiB;
inline constexpr std::size_t batch_records_max = 65536;
/// The highest end of a batch or log, so messages have lower offsets. Stored offsets above this value count
/// as damage, so that no sum of an offset and a number of messages overflows.
inline constexpr std::uint64_t offset_max = 9'223'372'036'854'775'807;
inline constexpr std::size_t compressed_batch_bytes_max = 4 * MiB;  ///< length of the uncompressed records
/// The length of uncompressed records is at most unpacked_bytes_free + unpacked_ratio_max x the length of the
/// compressed records. So a batch that is cheap to send cannot be expensive to read.
inline constexpr std::size_t unpacked_bytes_free = 16 * KiB;
inline constexpr std::size_t unpacked_ratio_max = 128;
inline constexpr std::size_t key_bytes_max = 1 * KiB;  ///< length of a message's key
inline constexpr std::size_t headers_max = 64;         ///< headers of one message
inline constexpr std::size_t header_name_bytes_max = 128;
inline constexpr std::size_t attributes_bytes_max =
    32 * KiB;  ///< length of a message's key, headers and time together
inline constexpr std::size_t message_id_bytes_max = 128;  ///< length of a message's id
/// The longest delay of a message, in microseconds: ten years, with three leap days.
inline constexpr std::int64_t delay_us_max = 315'619'200'000'000;

/// Delayed messages that wait in one topic: its index takes about 53 MiB of memory for a million.
inline constexpr std::size_t delayed_messages_max = 10'000'000;
/// The longest time to live of a message, and of the messages of a topic: ten years, with three leap days.
inline constexpr std::int64_t ttl_ms_max = 315'619'200'000;
/// Dead letters of one thread's groups on their way to other threads, in bytes; less than 256 KiB and one
/// letter more than this.
inline constexpr std::size_t letters_sent_bytes_max = 4 * MiB;
/// Copies of waiting messages that a durable topic keeps of dropped parts of its log. Each takes about 100
/// bytes of memory.
inline constexpr std::size_t carried_messages_max = 1'000'000;

// Connections and plain endpoints.
/// Unauthenticated connections of one thread of the broker. Beyond: closes the oldest.
inline constexpr std::size_t handshakes_max_min = 16;
inline constexpr std::size_t handshakes_max_default = 4'096;
inline constexpr std::size_t handshakes_max_max = 65'536;
/// New connections that one thread of the broker accepts at once, and after that the number per second.
inline constexpr std::size_t accepts_at_once = 512;
/// The rate is lower with encryption: an encrypted handshake costs a few tenths of a millisecond.
inline constexpr std::uint64_t accepts_per_second_default = 4'000;
inline constexpr std::uint64_t accepts_per_second_encrypted = 1'000;
inline constexpr std::uint64_t accepts_per_second_max = 1'000'000;
/// The longest time from a connection's start to the end of its handshake.
inline constexpr std::uint64_t handshake_ms_min = 100;
inline constexpr std::uint64_t handshake_ms_default = 5'000;
inline constexpr std::uint64_t handshake_ms_max = 60'000;
inline constexpr std::size_t connections_per_endpoint_max = 10'000;
/// Data connections of one user, at all endpoints together. Less than connections_per_endpoint_max, so one
/// user cannot fill an endpoint.
inline constexpr std::size_t connections_per_user_default = 4'000;
inline constexpr std::size_t connections_per_user_max = 1'000'000;
inline constexpr std::uint64_t ticket_ms_min = 100;  ///< validity of a plain join's ticket
inline constexpr std::uint64_t ticket_ms_default = 86'400'000;
inline constexpr std::uint64_t ticket_ms_max = 31'536'000'000;
inline constexpr std::size_t client_keys_per_topic_max = 16'384;  ///< registered keys, if the broker encrypts
/// Keys in the broker's file of allowed client keys.
inline constexpr std::size_t allowed_client_keys_max = 65'536;
inline constexpr std::size_t allowed_client_keys_bytes_max = 16 * MiB;  ///< size of that file

// Plain ZeroMQ sockets of the client library: limits for messages that wait in the client's process.
inline constexpr int high_water_messages_min = 1;
inline constexpr int high_water_messages_default = 10'000;
inline constexpr int high_water_messages_max = 1'000'000;
inline constexpr std::uint64_t high_water_bytes_default = 1 * MiB;
inline constexpr std::size_t counted_message_bytes_min = 1 * KiB;  ///< smaller messages count by number only

// Sessions.
inline constexpr std::size_t session_channels_max =
    4096;  ///< channels that are open at the same time on one session
inline constexpr std::size_t session_reads_max = 16;       ///< unfinished reads of one session
inline constexpr std::uint64_t read_bytes_max = 64 * MiB;  ///< payload in the reply to one read
inline constexpr std::size_t producers_max = 10'000;       ///< producers that a topic remembers
inline constexpr std::size_t producer_idle_days_max = 7;
/// Groups and consumers' own cursors.
inline constexpr std::size_t groups_per_topic_max = 1024;
inline constexpr std::size_t members_per_group_max = 4096;  ///< consumers over sessions
/// Unacknowledged messages of one consumer.
inline constexpr std::uint64_t in_flight_messages_max = 2'147'483'648;
/// Ranges of one consumer's unacknowledged messages.
inline constexpr std::size_t outstanding_ranges_max = 16'384;
/// Memory of one group for messages that wait for redelivery.
inline constexpr std::size_t group_state_bytes_default = 16 * MiB;
inline constexpr std::size_t group_state_bytes_max = 64 * MiB;
/// Consumers on sessions, of one thread of the broker.
inline constexpr std::size_t group_members_total = 131'072;
/// Outstanding ranges, and 64 bytes of messages that wait for redelivery each, of one thread of the broker.
inline constexpr std::size_t group_ranges_total = 1'048'576;
/// Records of dead messages, of all groups of one thread together: their times and reasons, and what is kept
/// for their transfer. Each of the 10,000 records of a group takes at most about 0.4 KB. With less, a group
/// keeps fewer records; it delivers as before.
inline constexpr std::size_t death_record_bytes_total = 32 * MiB;
inline constexpr std::uint32_t ack_timeout_ms_default = 30'000;
/// The time to process a message, from its start, of consumers with leases.
inline constexpr std::uint32_t processing_timeout_ms_default = 1'800'000;
/// The longest time for which a consumer may keep a message from its group, by a reject, an extend or its ack
/// timeout.
inline constexpr std::uint64_t redelivery_ms_max_default = 43'200'000;

// Recurring schedules.
inline constexpr std::size_t schedules_per_topic_max = 256;
inline constexpr std::size_t schedule_payload_bytes_max = 32 * KiB;    ///< of the message of a schedule
inline constexpr std::size_t schedule_attributes_bytes_max = 2 * KiB;  ///< its key and headers together

// Sessions over shared memory.
inline constexpr std::size_t shared_bytes_total_default = 16 * MiB;  ///< shared memory of all sessions
inline constexpr std::size_t shared_bytes_total_max = 64 * GiB;

// Sessions over TLS.
inline constexpr std::uint64_t tls_records_per_key_max =
    4'194'304;  ///< records encrypted with one key; RFC 8446 permits 2^24.5
inline constexpr std::size_t tls_answer_bytes_max =
    4 * KiB;  ///< replies to a peer's key updates; the limit rises by one byte for each KiB received
inline constexpr std::size_t tls_file_bytes_max = 256 * KiB;  ///< size of a file with a certificate or key

// Encryption at rest.
inline constexpr std::size_t storage_keys_max = 64;  ///< keys of one broker: the key in use and older keys
inline constexpr std::size_t storage_key_text_bytes_max =
    64 * KiB;  ///< size of the key file, or of the command's output
inline constexpr std::uint64_t storage_key_command_ms_max = 10'000;  ///< the longest run of that command
/// Decrypted batches of all topics together.
inline constexpr std::size_t decrypted_bytes_total_default = 64 * MiB;

// Files of passwords and keys.
inline constexpr std::uint64_t secret_wait_ms_max = 60'000;  ///< the longest wait for a pipe's content

// Consumer groups.
/// Acknowledged ranges of one cursor in a cursor file of version 2, which is only read.
inline constexpr std::size_t acknowledged_ranges_max = 4096;

// Between threads.
inline constexpr std::size_t mailbox_entries_max = 8192;

// HTTP.
inline constexpr std::size_t http_head_bytes_max = 16 * KiB;   ///< request line and headers; beyond: 431
inline constexpr std::size_t http_target_bytes_max = 8 * KiB;  ///< path and query; beyond: 414
inline constexpr std::size_t http_headers_max = 100;           ///< headers of one request; beyond: 431
inline constexpr std::size_t http_query_parameters_max = 64;
inline constexpr std::size_t http_body_bytes_max = 1 * MiB;  ///< beyond: 413
inline constexpr std::size_t http_connections_max = 1024;    ///< beyond: one that is idle is closed
inline constexpr std::size_t http_connections_per_source_max = 256;
/// The longest times: to the first byte of a connection, from a request's first byte to the end of its head
/// and to that of its body, between requests, for the work on a request, and for sending the response.
inline constexpr std::uint64_t http_first_byte_ms = 5'000;
inline constexpr std::uint64_t http_head_ms = 5'000;
inline constexpr std::uint64_t http_body_ms = 30'000;
inline constexpr std::uint64_t http_idle_ms = 90'000;
inline constexpr std::uint64_t http_work_ms = 30'000;
inline constexpr std::uint64_t http_send_ms = 60'000;
/// How long a connection that ends is read on, so that its client receives the last response.
inline constexpr std::uint64_t http_linger_ms = 1'000;
inline constexpr std::size_t http_scrapes_max = 8;  ///< requests for /metrics that are under way; beyond: 429
inline constexpr std::size_t http_scrapes_per_user_max = 2;
/// The contents of all requests that arrive or are under way, together; beyond: 429.
inline constexpr std::size_t http_bodies_bytes_total = 64 * MiB;
/// The long responses that clients have not read, together; beyond: 429 in place of the next one.
inline constexpr std::size_t http_responses_bytes_total = 256 * MiB;
inline constexpr std::size_t http_response_bytes_free = 4 * KiB;  ///< shorter responses do not count
/// A request for messages: how long it may wait for some, or a message for space in its topic.
inline constexpr std::uint64_t http_wait_ms_max = 25'000;
inline constexpr std::uint64_t http_wait_ms_default = 5'000;     ///< of a message that waits for space
inline constexpr std::size_t http_messages_max = 1'000;          ///< messages that one request receives
inline constexpr std::size_t http_messages_bytes_max = 1 * MiB;  ///< their bytes, unless it is one message
inline constexpr std::size_t http_browse_messages_default = 100;
inline constexpr std::size_t http_streams_max = 256;                 ///< streams of messages; beyond: 429
inline constexpr std::size_t http_streams_per_source_max = 64;       ///< of them from one source
inline constexpr std::uint64_t http_scanned_messages_max = 200'000;  ///< of one search for a key
inline constexpr std::uint64_t http_scanned_bytes_max = 64 * MiB;    ///< their bytes, about
inline constexpr std::size_t history_topics_max = 256;               ///< of each reactor: 6 KB each
inline constexpr std::size_t http_viewers_max = 32;                  ///< streams of statistics; beyond: 429
inline constexpr std::size_t http_viewers_per_source_max = 16;       ///< of them from one source
inline constexpr std::size_t http_view_topics_max = 10'000;          ///< topics of one such stream
inline constexpr std::uint64_t http_view_interval_ms = 1'000;        ///< between two looks at all topics
inline constexpr std::size_t http_stream_messages_default = 100;     ///< of one stream that are under way
inline constexpr std::size_t http_stream_bytes_max = 256 * KiB;  ///< their bytes; more only by one message
inline constexpr std::uint64_t http_heartbeat_ms = 15'000;       ///< between two comments in a stream
inline constexpr std::uint64_t http_lease_ms_default = 30'000;
inline constexpr std::uint64_t http_lease_ms_min = 1'000;
inline constexpr std::size_t metrics_topics_default = 1'000;  ///< topics with series of their own
/// The bounds of a progress check: see /readyz in docs/http.md.
inline constexpr std::uint64_t ready_probe_ms = 2'000;
inline constexpr std::uint64_t ready_stall_ms = 5'000;
inline constexpr std::uint64_t ready_again_ms = 1'000;  ///< a result answers requests for this time

// Descriptors that data endpoints leave free.
inline constexpr std::size_t descriptors_reserved = 128;
/// How many of the descriptors_reserved are for files. Control clients may use the others, so that a
/// broker full of data connections still answers requests.
inline constexpr std::size_t descriptors_reserved_for_files = 64;

}  // namespace lightq::inline v1::limits
