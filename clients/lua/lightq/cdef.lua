--- The declarations of lightq.h that native_ffi.lua needs, for the FFI of LuaJIT. A test compares them with the header.
return [[
typedef struct lightq_client lightq_client;
typedef struct lightq_producer lightq_producer;
typedef struct lightq_consumer lightq_consumer;
typedef struct lightq_reader lightq_reader;
typedef struct lightq_error { int code; int system_error; int retryable; int reserved; char text[1008]; } lightq_error;
typedef struct lightq_options { size_t size; const char* uri; const char* user; const char* password;
  const char* admin_user; const char* admin_password; const char* server_key; const char* client_key_file;
  const char* data_dir; int no_discovery; int insecure; int request_timeout_ms; int connect_timeout_ms; } lightq_options;
typedef struct lightq_header { const char* name; size_t name_bytes; const void* value; size_t value_bytes; } lightq_header;
typedef struct lightq_identity { size_t size; uint64_t id; int epoch; int has_secret; unsigned char secret[16]; } lightq_identity;
typedef struct lightq_producer_options { size_t size; const char* name; const lightq_identity* identity;
  uint64_t batch_bytes; uint64_t window_bytes; uint64_t memory_bytes_max; int level; int compression; int delayed;
  int full_batches; int linger_ms; int no_retry_refused; int resend_in_doubt; int transport; int over_zmq;
  int no_shared_memory; int heartbeat_ms; int attempt_timeout_ms; int backoff_ms; int backoff_max_ms; } lightq_producer_options;
typedef struct lightq_attributes { size_t size; const void* key; size_t key_bytes; const lightq_header* headers;
  size_t header_count; const void* id; size_t id_bytes; int64_t time_us; int64_t delay_ms; int64_t deliver_at_us;
  int64_t ttl_ms; } lightq_attributes;
typedef struct lightq_report { size_t size; uint64_t begin; uint64_t end; int fate; int code; const char* text;
  int64_t delayed_first; } lightq_report;
typedef struct lightq_producer_stats { size_t size; uint64_t sent; uint64_t confirmed; uint64_t refused;
  uint64_t unknown; uint64_t lost; uint64_t unconfirmed; uint64_t opens; } lightq_producer_stats;
typedef struct lightq_consumer_options { size_t size; const char* group; const char* name; uint64_t from_value;
  uint64_t incarnation; uint64_t prefetch_bytes; int from; int own; int holds; int automatic; int prefetch_messages;
  int prefetch_time_ms; int ack_timeout_ms; int may_not_be_busy; int transport; int over_zmq; int no_shared_memory;
  int heartbeat_ms; int attempt_timeout_ms; int backoff_ms; int backoff_max_ms; int frame_bytes_max; } lightq_consumer_options;
typedef struct lightq_message { size_t size; const void* body; size_t body_bytes; const void* key; size_t key_bytes;
  size_t header_count; uint64_t offset; uint64_t lease; uint64_t lost; int64_t time_us; int64_t producer_time_us;
  const void* attributes; int kinds; int delivery; int expired; int reserved; } lightq_message;
typedef struct lightq_range { uint64_t begin; uint64_t end; } lightq_range;
typedef struct lightq_consumer_stats { size_t size; uint64_t received; uint64_t again; uint64_t acknowledged;
  uint64_t rejected; uint64_t late; uint64_t revoked; uint64_t lost; uint64_t opens; uint64_t new_logs;
  uint64_t unacknowledged; } lightq_consumer_stats;
typedef struct lightq_reader_options { size_t size; const char* name; int transport; int over_zmq;
  int no_shared_memory; int heartbeat_ms; int attempt_timeout_ms; int backoff_ms; int backoff_max_ms;
  int frame_bytes_max; } lightq_reader_options;
const lightq_error* lightq_last_error(void);
const char* lightq_strerror(int code);
int lightq_retryable(int code);
const char* lightq_version(void);
void lightq_free(void* text);
int lightq_connect(const lightq_options* options, lightq_client** client);
void lightq_client_free(lightq_client* client);
int lightq_command(lightq_client* client, const char* json, char** reply);
int lightq_producer_open(lightq_client* client, const char* topic, const lightq_producer_options* options,
  lightq_producer** producer);
int lightq_send_numbered(lightq_producer* producer, const void* body, size_t body_bytes,
  const lightq_attributes* attributes, int timeout_ms, uint64_t* number);
int lightq_flush(lightq_producer* producer, int timeout_ms);
int lightq_wait_settled(lightq_producer* producer, uint64_t number, int timeout_ms);
int lightq_producer_poll(lightq_producer* producer, int timeout_ms);
int lightq_producer_keep_reports(lightq_producer* producer);
int lightq_next_report(lightq_producer* producer, lightq_report* report);
int lightq_producer_resolve(lightq_producer* producer, int resend);
int lightq_producer_state(lightq_producer* producer);
int lightq_producer_identity(lightq_producer* producer, lightq_identity* identity);
int lightq_producer_get_stats(lightq_producer* producer, lightq_producer_stats* stats);
int lightq_producer_close(lightq_producer* producer, int timeout_ms);
int lightq_producer_free(lightq_producer* producer);
int lightq_consumer_open(lightq_client* client, const char* topic, const lightq_consumer_options* options,
  lightq_consumer** consumer);
int lightq_next(lightq_consumer* consumer, lightq_message* message, int timeout_ms);
size_t lightq_message_headers(const lightq_message* message, lightq_header* headers, size_t most);
int lightq_ack(lightq_consumer* consumer, const lightq_message* message);
int lightq_release(lightq_consumer* consumer, const lightq_message* message);
int lightq_retry(lightq_consumer* consumer, const lightq_message* message, int64_t delay_ms);
int lightq_dead(lightq_consumer* consumer, const lightq_message* message, const char* reason);
int lightq_extend(lightq_consumer* consumer, const lightq_message* message, int64_t time_ms);
int lightq_ack_range(lightq_consumer* consumer, uint64_t begin, uint64_t end, uint64_t* count);
int lightq_ack_before(lightq_consumer* consumer, uint64_t offset, uint64_t* count);
int lightq_revoked(lightq_consumer* consumer, const lightq_message* message);
int lightq_seek(lightq_consumer* consumer, int from, uint64_t value, uint64_t* offset, int timeout_ms);
int lightq_consumer_pause(lightq_consumer* consumer, int paused);
int lightq_consumer_poll(lightq_consumer* consumer);
int lightq_consumer_wait_open(lightq_consumer* consumer, int timeout_ms);
int lightq_consumer_flush(lightq_consumer* consumer, int timeout_ms);
int lightq_consumer_state(lightq_consumer* consumer);
int lightq_consumer_get_stats(lightq_consumer* consumer, lightq_consumer_stats* stats);
int lightq_consumer_late(lightq_consumer* consumer, lightq_range* ranges, size_t most, size_t* count);
int lightq_consumer_close(lightq_consumer* consumer, int timeout_ms);
int lightq_consumer_free(lightq_consumer* consumer);
int lightq_reader_open(lightq_client* client, const char* topic, const lightq_reader_options* options,
  lightq_reader** reader);
int lightq_fetch(lightq_reader* reader, uint64_t begin, uint64_t end, uint64_t bytes_max, uint64_t* next,
  int timeout_ms);
int lightq_next_fetched(lightq_reader* reader, lightq_message* message);
int lightq_reader_free(lightq_reader* reader);
]]
