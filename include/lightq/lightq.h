/* LightQ for C89 with <stdint.h>, and all that can call C: liblightq.so.0. Examples: clients/c/README.md.

   Results. A function that returns int returns LIGHTQ_OK (0) or the code of an error; lightq_last_error has
   its sentence. No function ends the process, and no C++ exception leaves the library. A null handle, or a
   null argument that must not be null, is LIGHTQ_INVALID_ARGUMENT.

   Times. A timeout is in milliseconds; 0 does not wait, a negative one waits without limit. Times of
   messages are in microseconds since 1970-01-01 UTC.

   Texts are UTF-8 and end with a zero byte; null means "not given". The library copies all that it is given.

   Structs that begin with `size` may grow in later versions. Initialize them with their macro, for example
   `lightq_options options = LIGHTQ_OPTIONS_INIT;`. In options, 0 is the default of each field. A library
   takes structs of older headers; in newer ones, unknown fields must be 0 (else LIGHTQ_NOT_SUPPORTED).

   Threads may share a lightq_client and a lightq_watch. A producer, consumer or reader is for one thread at a
   time: a call while another thread is in one returns LIGHTQ_IN_USE. The library has no thread of its own for
   them: it connects, reads and sends inside calls only. A call must not be left by longjmp or pthread_cancel.

   fork. In a child process, calls on the parent's handles return LIGHTQ_CLOSED. Freeing them sends nothing.
 */
#ifndef LIGHTQ_H
#define LIGHTQ_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Error codes, with the words of docs/protocol.md, "Errors". Their numbers never change. */
enum {
  LIGHTQ_OK = 0,
  LIGHTQ_INVALID_JSON = 1,
  LIGHTQ_INVALID_CMD = 2,
  LIGHTQ_INVALID_REQUEST = 3,
  LIGHTQ_REQUEST_TOO_LARGE = 4,
  LIGHTQ_UNAUTHORIZED_ACCESS = 5,
  LIGHTQ_TOPIC_NOT_FOUND = 6,
  LIGHTQ_TOPIC_ALREADY_EXISTS = 7,
  LIGHTQ_ENDPOINT_NOT_FOUND = 8,
  LIGHTQ_GROUP_NOT_FOUND = 9,
  LIGHTQ_GROUP_IN_USE = 10,
  LIGHTQ_SCHEDULE_NOT_FOUND = 11,
  LIGHTQ_USER_NOT_FOUND = 12,
  LIGHTQ_USER_ALREADY_EXISTS = 13,
  LIGHTQ_NOT_SUPPORTED = 14,
  LIGHTQ_LIMIT_REACHED = 15,
  LIGHTQ_BUSY = 16,
  LIGHTQ_SHUTTING_DOWN = 17,
  LIGHTQ_ADDRESS_IN_USE = 18,
  LIGHTQ_IO_ERROR = 19, /* lightq_error.system_error is errno */
  LIGHTQ_NO_SPACE = 20,
  LIGHTQ_CORRUPT = 21,
  LIGHTQ_FOREIGN_FORMAT = 22,
  LIGHTQ_IN_USE = 23, /* also: another thread is in a call on this handle, or another process has it */
  LIGHTQ_TOO_LARGE = 24,
  LIGHTQ_TIMEOUT = 25,
  LIGHTQ_CLOSED = 26,
  LIGHTQ_INVALID_ARGUMENT = 27,
  LIGHTQ_INTERNAL = 28,
  /* Codes of this library alone. */
  LIGHTQ_NO_MEMORY = 100, /* the process has no memory left */
  LIGHTQ_REVOKED = 101,   /* the message is not in flight to this consumer any more */
  LIGHTQ_CALLBACK = 102   /* a callback threw a C++ exception */
};

typedef struct lightq_error {
  int code;         /* LIGHTQ_OK: no call of this thread has failed yet */
  int system_error; /* errno of the cause, or 0 */
  int retryable;    /* 1: the same call may succeed later, without a change of the program */
  int reserved;
  char text[1008]; /* a sentence that names the objects and the numbers */
} lightq_error;

/* Returns the error of the last call of this thread that failed. Calls that succeed do not change it. Never
   null. Lifetime: until the thread's next call that fails; copy the struct to keep it. */
const lightq_error* lightq_last_error(void);
/* Returns the word of a code, such as "topic_not_found"; "ok" for 0, "unknown" for other numbers. */
const char* lightq_strerror(int code);
/* Returns 1 if a call that failed with this code may succeed later, else 0. */
int lightq_retryable(int code);
/* Returns the version of the library, for example "0.1.0". */
const char* lightq_version(void);
/* Frees a text that the library returned. Null does nothing. */
void lightq_free(void* text);

/* --- Client --- */

typedef struct lightq_client lightq_client;
typedef struct lightq_options {
  size_t size;
  /* tcp://HOST:PORT or ipc://PATH. Null: LIGHTQ_BROKER, else the broker of this machine. */
  const char* uri;
  const char* user; /* null: LIGHTQ_USER and LIGHTQ_PASSWORD */
  const char* password;
  const char* admin_user; /* null: LIGHTQ_ADMIN_USER and ..._PASSWORD, or admin.json of this machine */
  const char* admin_password;
  const char* server_key; /* the broker's key, as `lightq broker key` prints it: everything is encrypted */
  const char* client_key_file; /* for a broker that admits only listed keys */
  const char* data_dir;        /* of this machine's broker. Null: LIGHTQ_DATA_DIR, or the usual places */
  int no_discovery;            /* 1: takes nothing from the environment and from files */
  int insecure;                /* 1: sends passwords to other machines unencrypted */
  int request_timeout_ms;      /* of each request; 0: 5,000 */
  int connect_timeout_ms;      /* of each call that opens a producer, consumer or reader; 0: 5,000 */
} lightq_options;
#define LIGHTQ_OPTIONS_INIT \
  {sizeof(lightq_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0}

/* Connects to a broker. `options` may be null: finds the broker and the credentials as the `lightq` command
   does. `*client` is null after an error. Errors: IO_ERROR (nothing listens), TIMEOUT, UNAUTHORIZED_ACCESS
   (encryption), INVALID_ARGUMENT. A wrong password shows in later calls. */
int lightq_connect(const lightq_options* options, lightq_client** client);
/* Frees a client that no call uses. Its producers, consumers and readers stay usable. Null does nothing. */
void lightq_client_free(lightq_client* client);
/* Checks that the broker replies. */
int lightq_ping(lightq_client* client);
/* Sends a command of docs/protocol.md as JSON, for example {"cmd":"stats","topic":"orders"}, and adds the
   client's credentials. If `reply` is not null, `*reply` is the broker's reply as JSON, to be freed with
   lightq_free, or null after an error. Errors: the broker's; INVALID_JSON, INVALID_CMD, INVALID_REQUEST;
   TIMEOUT (the broker may have carried it out). */
int lightq_command(lightq_client* client, const char* json, char** reply);
/* Creates a topic. `settings`: a JSON object such as {"broker_type":"file"}, or null for the defaults.
   Errors: TOPIC_ALREADY_EXISTS, and those of lightq_command. */
int lightq_create_topic(lightq_client* client, const char* topic, const char* settings);
/* Deletes a topic and its messages. Errors: TOPIC_NOT_FOUND, and those of lightq_command. */
int lightq_delete_topic(lightq_client* client, const char* topic);
/* Returns the statistics of a topic, or with null those of the broker, as lightq_command does. */
int lightq_stats(lightq_client* client, const char* topic, char** reply);

/* --- For producers and consumers --- */

enum { LIGHTQ_TRANSPORT_AUTO = 0, LIGHTQ_TRANSPORT_TCP = 1, LIGHTQ_TRANSPORT_IPC = 2 };

/* The state of a producer or consumer. */
enum {
  LIGHTQ_STATE_CONNECTING = 0,
  LIGHTQ_STATE_OPEN = 1,
  LIGHTQ_STATE_IN_DOUBT = 2, /* producers: see lightq_producer_resolve */
  LIGHTQ_STATE_FAILED = 3,
  LIGHTQ_STATE_CLOSED = 4
};

/* The events to wait for in an event loop, before the next call of ..._poll. */
typedef struct lightq_interest {
  size_t size;
  int fd;         /* -1: there is no connection now. Only wait for it; each call may change it */
  int events;     /* of poll(2): POLLIN, and POLLOUT if something waits to be sent */
  int timeout_ms; /* after this time, call ..._poll in any case; -1: no limit */
  int reserved;
} lightq_interest;
#define LIGHTQ_INTEREST_INIT {sizeof(lightq_interest), 0, 0, 0, 0}

typedef struct lightq_header {
  const char* name; /* 1 to 128 bytes; not followed by a zero byte in received messages */
  size_t name_bytes;
  const void* value;
  size_t value_bytes;
} lightq_header;

/* --- Producer --- */

typedef struct lightq_producer lightq_producer;
enum { LIGHTQ_LEVEL_DEFAULT = 0, LIGHTQ_LEVEL_RECEIVED = 1, LIGHTQ_LEVEL_FLUSHED = 2 };
enum { LIGHTQ_UNCOMPRESSED = 0, LIGHTQ_LZ4 = 1, LIGHTQ_ZSTD = 2 };

/* Identifies a producer to the broker. Another process may continue with its id and an epoch one higher. */
typedef struct lightq_identity {
  size_t size;
  uint64_t id; /* 0: the broker assigns a new one */
  int epoch;   /* 0 to 65,535 */
  int has_secret;
  unsigned char secret[16]; /* of an identity that a client without a user got */
} lightq_identity;
#define LIGHTQ_IDENTITY_INIT \
  {sizeof(lightq_identity), 0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}

typedef struct lightq_producer_options {
  size_t size;
  const char* name;                /* for the broker's logs, at most 128 bytes */
  const lightq_identity* identity; /* of the producer that this one continues */
  uint64_t batch_bytes;            /* at which a batch is closed, 4 KiB to 256 MiB; 0: 64 KiB */
  uint64_t window_bytes;           /* of unconfirmed batches; 0: chosen by the level */
  uint64_t memory_bytes_max;       /* for messages that wait; 0: a little more than 16 MiB */
  int level;                       /* LIGHTQ_LEVEL_...; default: flushed for topics on disk, else received */
  int compression;                 /* LIGHTQ_LZ4, LIGHTQ_ZSTD */
  int delayed;                     /* 1: messages may have delay_ms or deliver_at_us */
  int full_batches;                /* 1: sends only full batches, but for linger_ms and flush */
  int linger_ms;                   /* the longest wait of a message for a fuller batch; 0: no limit */
  int no_retry_refused;            /* 1: gives up messages that a full topic refuses */
  int resend_in_doubt;             /* 1: sends messages in doubt again, which may store some twice */
  int transport;                   /* LIGHTQ_TRANSPORT_... */
  int over_zmq;                    /* 1: frames as ZeroMQ messages */
  int no_shared_memory;            /* 1: a Unix socket alone, on the broker's machine */
  int heartbeat_ms;                /* 100 to 3,600,000; 0: 5,000; -1: none */
  int attempt_timeout_ms;          /* of each attempt to connect; 0: 5,000 */
  int backoff_ms;                  /* the first pause between attempts; 0: 50 */
  int backoff_max_ms;              /* the longest pause; 0: 2,000 */
} lightq_producer_options;
#define LIGHTQ_PRODUCER_OPTIONS_INIT \
  {sizeof(lightq_producer_options), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* The parts of a message beside its body. */
typedef struct lightq_attributes {
  size_t size;
  const void* key; /* messages with the same key stay in order in a group */
  size_t key_bytes;
  const lightq_header* headers;
  size_t header_count; /* at most 64 */
  const void* id;      /* chosen by the program */
  size_t id_bytes;
  int64_t time_us;       /* of the event that the message describes; 0: none */
  int64_t delay_ms;      /* delivered so long after its arrival; 0: at once */
  int64_t deliver_at_us; /* or delivered at this time */
  int64_t ttl_ms;        /* not delivered any more after this time; 0: no limit */
} lightq_attributes;
#define LIGHTQ_ATTRIBUTES_INIT {sizeof(lightq_attributes), NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0}

enum { LIGHTQ_CONFIRMED = 0, LIGHTQ_REFUSED = 1, LIGHTQ_UNKNOWN = 2 };

/* The fate of the messages with the numbers `begin` to `end` - 1 of a producer. */
typedef struct lightq_report {
  size_t size;
  uint64_t begin;
  uint64_t end;
  int fate;              /* CONFIRMED; REFUSED: certainly not stored; UNKNOWN: stored or not */
  int code;              /* the reason if they were not confirmed, else LIGHTQ_OK */
  const char* text;      /* the reason as a sentence; valid during the call */
  int64_t delayed_first; /* the number of the first in the topic's schedule; -1: none */
} lightq_report;
#define LIGHTQ_REPORT_INIT {sizeof(lightq_report), 0, 0, 0, 0, NULL, 0}
/* Runs inside calls of the producer, of which it may call only lightq_send, which does not wait there. */
typedef void (*lightq_report_callback)(void* user, const lightq_report* report);

typedef struct lightq_producer_stats {
  size_t size;
  uint64_t sent; /* accepted by lightq_send: the number of the next message */
  uint64_t confirmed;
  uint64_t refused;
  uint64_t unknown;
  uint64_t lost;        /* confirmed, and later lost by the broker */
  uint64_t unconfirmed; /* not settled yet */
  uint64_t opens;       /* one more than the reconnects */
} lightq_producer_stats;
#define LIGHTQ_PRODUCER_STATS_INIT {sizeof(lightq_producer_stats), 0, 0, 0, 0, 0, 0, 0}

/* Opens a producer of a topic. `options` may be null. `*producer` is null after an error. Errors:
   TOPIC_NOT_FOUND, UNAUTHORIZED_ACCESS, LIMIT_REACHED, NOT_SUPPORTED, INVALID_ARGUMENT, TIMEOUT. */
int lightq_producer_open(lightq_client* client, const char* topic, const lightq_producer_options* options,
                         lightq_producer** producer);
/* Takes one message, which is copied; `attributes` may be null. It waits up to `timeout_ms` while the broker
   is slower; with 0 it never waits, and keeps up to memory_bytes_max. The broker stores the messages in this
   order, each at most once. After OK, the producer sends the message until it is settled. Errors: TOO_LARGE,
   TIMEOUT or LIMIT_REACHED (no memory is free), INVALID_ARGUMENT, CLOSED, or the error that ended the
   producer. The message was not taken then. CALLBACK: it was. */
int lightq_send(lightq_producer* producer, const void* body, size_t body_bytes,
                const lightq_attributes* attributes, int timeout_ms);
/* As lightq_send. `*number` is the message's number, from 0 on, for lightq_wait_settled and reports. */
int lightq_send_numbered(lightq_producer* producer, const void* body, size_t body_bytes,
                         const lightq_attributes* attributes, int timeout_ms, uint64_t* number);
/* Sends one message and waits for its confirm. Errors: those of lightq_send; the reason of a refusal; TIMEOUT
   (the producer still sends the message; it may be stored). */
int lightq_send_confirmed(lightq_producer* producer, const void* body, size_t body_bytes,
                          const lightq_attributes* attributes, int timeout_ms);
/* Sends everything and waits for its confirms. Errors: TIMEOUT; the refusal or loss of a message since the
   last such error; the error that ended the producer. */
int lightq_flush(lightq_producer* producer, int timeout_ms);
/* Waits until this message and all before it are confirmed, refused or unknown. Errors: TIMEOUT,
   INVALID_ARGUMENT (no message of this number was sent), or the error that ended the producer. */
int lightq_wait_settled(lightq_producer* producer, uint64_t number, int timeout_ms);
/* Connects, reads confirms and sends. If there is nothing to do, waits for it up to `timeout_ms`. A program
   that does not send calls it once per heartbeat. Errors: the error that ended the producer. */
int lightq_producer_poll(lightq_producer* producer, int timeout_ms);
/* Writes the descriptor and the time to wait for before the next lightq_producer_poll. */
int lightq_producer_interest(lightq_producer* producer, lightq_interest* interest);
/* Returns lightq_interest.fd, or -1. */
int lightq_producer_fd(lightq_producer* producer);
/* Sets the callback for the fate of all messages that are settled from now on. Null: none. */
int lightq_producer_on_report(lightq_producer* producer, lightq_report_callback callback, void* user);
/* Keeps the fates of messages for lightq_next_report, for languages into which a library cannot call.
   Neighbours with the same fate, code and text are one range. Beyond 10,000 ranges the oldest become one,
   UNKNOWN with the code LIMIT_REACHED; later ranges may name the messages between them too.
   lightq_producer_on_report ends it; ranges that are kept can still be taken. */
int lightq_producer_keep_reports(lightq_producer* producer);
/* Takes the oldest kept range. Its `text` is valid until the next call. Errors: TIMEOUT (none is kept). */
int lightq_next_report(lightq_producer* producer, lightq_report* report);
/* Ends LIGHTQ_STATE_IN_DOUBT: the broker does not know this producer any more. 1: sends the unconfirmed
   messages again, which may store some twice. 0: gives them up as UNKNOWN. */
int lightq_producer_resolve(lightq_producer* producer, int resend);
/* Returns LIGHTQ_STATE_...; CLOSED for null. */
int lightq_producer_state(lightq_producer* producer);
/* Writes the identity with which another process can continue this producer. */
int lightq_producer_identity(lightq_producer* producer, lightq_identity* identity);
/* Writes the counters since the producer was opened. */
int lightq_producer_get_stats(lightq_producer* producer, lightq_producer_stats* stats);
/* Flushes, and ends the session. Messages that are not confirmed in time are given up and reported. Errors:
   those of lightq_flush; the producer is closed all the same. CLOSED: it was closed before. */
int lightq_producer_close(lightq_producer* producer, int timeout_ms);
/* Frees a producer without waiting: unconfirmed messages may be lost. Null does nothing. Error: IN_USE
   (inside its callback, or another thread is in a call): it was not freed. */
int lightq_producer_free(lightq_producer* producer);

/* --- Consumer --- */

typedef struct lightq_consumer lightq_consumer;
enum {
  LIGHTQ_FROM_FIRST = 0, /* the oldest message kept */
  LIGHTQ_FROM_NEXT = 1,  /* only messages from now on */
  LIGHTQ_FROM_LAST = 2,  /* the newest message */
  LIGHTQ_FROM_OFFSET = 3,
  LIGHTQ_FROM_TIME = 4 /* the first message at or after a time in microseconds */
};

typedef struct lightq_consumer_options {
  size_t size;
  const char* group;       /* null: the topic's default group, or with `own` no name */
  const char* name;        /* for the broker's logs, at most 128 bytes */
  uint64_t from_value;     /* of LIGHTQ_FROM_OFFSET and LIGHTQ_FROM_TIME */
  uint64_t incarnation;    /* of the log to which an offset belongs; 0: any */
  uint64_t prefetch_bytes; /* 0: 1 MiB */
  int from;                /* LIGHTQ_FROM_...: where a new group begins */
  int own;                 /* 1: a cursor of its own, which receives every message */
  int holds;               /* with `own`: 1: the log keeps messages until they are acknowledged */
  int automatic;           /* 1: the broker counts a message as acknowledged when it sends it */
  int prefetch_messages;   /* 0: adapts to the program's work */
  int prefetch_time_ms;    /* how much work to request ahead; 0: 100 */
  int ack_timeout_ms;      /* for each message; 0: the broker's, 30 minutes by default */
  int may_not_be_busy;     /* 1: the broker ends a silent session although messages are with the program */
  int transport;           /* LIGHTQ_TRANSPORT_... */
  int over_zmq;            /* as lightq_producer_options has them, also the following */
  int no_shared_memory;
  int heartbeat_ms;
  int attempt_timeout_ms;
  int backoff_ms;
  int backoff_max_ms;
  int frame_bytes_max; /* 64 KiB to 2 GiB - 1; 0: the longest */
} lightq_consumer_options;
#define LIGHTQ_CONSUMER_OPTIONS_INIT \
  {sizeof(lightq_consumer_options), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* A received message. Lifetime: its body, key and headers are valid until the next lightq_next on the
   consumer. A copy of the struct may be settled later. */
typedef struct lightq_message {
  size_t size;
  const void* body;
  size_t body_bytes;
  const void* key; /* null: none */
  size_t key_bytes;
  size_t header_count;
  uint64_t offset;
  uint64_t lease;           /* this delivery, to this consumer; 0: the broker gives no leases */
  uint64_t lost;            /* messages directly before this one that are never delivered */
  int64_t time_us;          /* when the broker stored it */
  int64_t producer_time_us; /* lightq_attributes.time_us */
  const void* attributes;   /* private */
  int kinds;                /* private */
  int delivery;             /* the number of deliveries, this one included */
  int expired;              /* 1: its time to live was over; only lightq_read returns such messages */
  int reserved;
} lightq_message;
#define LIGHTQ_MESSAGE_INIT {sizeof(lightq_message), NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0}

typedef struct lightq_range {
  uint64_t begin;
  uint64_t end; /* not included */
} lightq_range;

typedef struct lightq_consumer_stats {
  size_t size;
  uint64_t received;
  uint64_t again; /* of these, redeliveries */
  uint64_t acknowledged;
  uint64_t rejected;
  uint64_t late;    /* settled with OK, but after the broker had taken them back */
  uint64_t revoked; /* taken back by the broker */
  uint64_t lost;
  uint64_t opens;
  uint64_t new_logs;
  uint64_t unacknowledged; /* with the program now */
} lightq_consumer_stats;
#define LIGHTQ_CONSUMER_STATS_INIT {sizeof(lightq_consumer_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Opens a consumer of a topic. `options` may be null. Errors: those of lightq_producer_open; IN_USE. */
int lightq_consumer_open(lightq_client* client, const char* topic, const lightq_consumer_options* options,
                         lightq_consumer** consumer);
/* Receives the next message. Errors: TIMEOUT (none arrived), CLOSED, or the error that ended the consumer. */
int lightq_next(lightq_consumer* consumer, lightq_message* message, int timeout_ms);
/* Copies up to `most` headers of a message to `headers`, in the producer's order. Returns how many the
   message has; 0 for null. `headers` may be null if `most` is 0. */
size_t lightq_message_headers(const lightq_message* message, lightq_header* headers, size_t most);
/* Finds the first header of this name. Returns 1, or 0 if there is none. */
int lightq_message_header(const lightq_message* message, const char* name, lightq_header* header);

/* Each message is settled once, by one of the next four calls, which use the struct's `size`, `offset` and
   `lease`. The consumer sends them in later calls; lightq_consumer_flush sends them now. Error of all:
   REVOKED: the broker has taken the message back, the connection has ended, or it was settled before. */

/* Finishes a message. */
int lightq_ack(lightq_consumer* consumer, const lightq_message* message);
/* Gives back a message that the program has not begun: this delivery does not count. */
int lightq_release(lightq_consumer* consumer, const lightq_message* message);
/* Rejects a message: the broker delivers it again after `delay_ms`, or with 0 after the group's back-off. */
int lightq_retry(lightq_consumer* consumer, const lightq_message* message, int64_t delay_ms);
/* Rejects a message that no consumer can process. The first 256 bytes of `reason`, or null, are kept. */
int lightq_dead(lightq_consumer* consumer, const lightq_message* message, const char* reason);
/* Gives this consumer `time_ms` more for a message, counted from now. */
int lightq_extend(lightq_consumer* consumer, const lightq_message* message, int64_t time_ms);
/* Finishes the messages with the offsets `begin` to `end` - 1 that this consumer has. `count` may be null;
   `*count` is how many were in flight. */
int lightq_ack_range(lightq_consumer* consumer, uint64_t begin, uint64_t end, uint64_t* count);
/* Finishes all messages before `offset` that lightq_next has returned. */
int lightq_ack_before(lightq_consumer* consumer, uint64_t offset, uint64_t* count);

/* Returns 1 if a message is not in flight any more, as far as the consumer has found, or for null; else 0. */
int lightq_revoked(lightq_consumer* consumer, const lightq_message* message);
/* Tells other threads whether a message was revoked. The consumer finds revocations in its calls; each
   lightq_consumer_poll looks for them. */
typedef struct lightq_watch lightq_watch;
/* Opens a watch of one message. *watch is null after an error. */
int lightq_watch_open(lightq_consumer* consumer, const lightq_message* message, lightq_watch** watch);
/* Any thread. Returns 1 if the message was revoked, or was settled some time ago. 1 for null. */
int lightq_watch_revoked(const lightq_watch* watch);
/* Frees a watch. Null does nothing. */
void lightq_watch_free(lightq_watch* watch);

/* Moves the group, or the own cursor. `value`: of LIGHTQ_FROM_OFFSET and LIGHTQ_FROM_TIME. `offset` may be
   null; `*offset` is the new position. Messages in flight are revoked. Errors: TIMEOUT, CLOSED (the
   connection ended: moved or not), the broker's. */
int lightq_seek(lightq_consumer* consumer, int from, uint64_t value, uint64_t* offset, int timeout_ms);
/* 1: asks the broker for no more messages. Those on their way still arrive. 0: continues. */
int lightq_consumer_pause(lightq_consumer* consumer, int paused);
/* Connects, reads and sends, without waiting. In an event loop, call it as lightq_interest says, and then
   lightq_next with timeout 0 until it returns TIMEOUT. */
int lightq_consumer_poll(lightq_consumer* consumer);
/* Writes the descriptor and the time to wait for before the next lightq_consumer_poll. */
int lightq_consumer_interest(lightq_consumer* consumer, lightq_interest* interest);
/* Returns lightq_interest.fd, or -1. */
int lightq_consumer_fd(lightq_consumer* consumer);
/* Waits until the topic is open again after a broken connection. Errors: TIMEOUT, or the final error. */
int lightq_consumer_wait_open(lightq_consumer* consumer, int timeout_ms);
/* Sends all acknowledgements so far. Errors: TIMEOUT, CLOSED (there is no connection). */
int lightq_consumer_flush(lightq_consumer* consumer, int timeout_ms);
/* Returns LIGHTQ_STATE_...; CLOSED for null. */
int lightq_consumer_state(lightq_consumer* consumer);
/* Writes the counters since the consumer was opened. */
int lightq_consumer_get_stats(lightq_consumer* consumer, lightq_consumer_stats* stats);
/* Copies up to `most` ranges of messages that were settled with OK, but too late. `*count` is how many were
   copied; call it again until that is less than `most`. */
int lightq_consumer_late(lightq_consumer* consumer, lightq_range* ranges, size_t most, size_t* count);
/* Sends all acknowledgements, waits for the broker's reply, and gives the other messages back. Errors:
   TIMEOUT (also if messages were settled too late), CLOSED (it was closed before, or the connection was
   lost). The consumer is closed all the same. */
int lightq_consumer_close(lightq_consumer* consumer, int timeout_ms);
/* Frees a consumer without waiting: the last acknowledgements may not reach the broker. Null does nothing.
   Error: IN_USE (another thread is in a call): it was not freed. */
int lightq_consumer_free(lightq_consumer* consumer);

/* --- Reader: reads by offset, and changes nothing --- */

typedef struct lightq_reader lightq_reader;
typedef struct lightq_reader_options {
  size_t size;
  const char* name; /* these are those of lightq_consumer_options */
  int transport;
  int over_zmq;
  int no_shared_memory;
  int heartbeat_ms;
  int attempt_timeout_ms;
  int backoff_ms;
  int backoff_max_ms;
  int frame_bytes_max;
} lightq_reader_options;
#define LIGHTQ_READER_OPTIONS_INIT {sizeof(lightq_reader_options), NULL, 0, 0, 0, 0, 0, 0, 0, 0}

/* The message is valid during the call. It must not use the reader. */
typedef void (*lightq_message_callback)(void* user, const lightq_message* message);
/* Opens a reader of a topic. `options` may be null. *reader is null after an error. */
int lightq_reader_open(lightq_client* client, const char* topic, const lightq_reader_options* options,
                       lightq_reader** reader);
/* Calls `callback` for each stored message with an offset of `begin` to `end` - 1, and stops at `bytes_max`
   bytes, but not before one message; 0: as much as the broker allows. `next` may be null; `*next` is where to
   continue. Errors: TIMEOUT (some messages may have been passed), TOO_LARGE, CALLBACK, or the error that
   ended the reader. */
int lightq_read(lightq_reader* reader, uint64_t begin, uint64_t end, uint64_t bytes_max,
                lightq_message_callback callback, void* user, uint64_t* next, int timeout_ms);
/* Reads as lightq_read does, and keeps a copy of each message for lightq_next_fetched, instead of a callback.
   Messages of an earlier call that were not taken are dropped, also after an error. */
int lightq_fetch(lightq_reader* reader, uint64_t begin, uint64_t end, uint64_t bytes_max, uint64_t* next,
                 int timeout_ms);
/* Takes the next kept message, valid until the next call on the reader. Errors: TIMEOUT (none is left). */
int lightq_next_fetched(lightq_reader* reader, lightq_message* message);
/* Frees a reader. Null does nothing. Error: IN_USE: it was not freed. */
int lightq_reader_free(lightq_reader* reader);

#ifdef __cplusplus
}
#endif

#endif
