/* Opens handles with options, and frees them. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

static const char* const kinds[] = {"client", "producer", "consumer", "reader", NULL};

enum type { TEXT, INT, UINT64 };
struct field {
  const char* name;
  size_t offset;
  enum type type;
};
#define FIELD(of, name, type) {#name, offsetof(of, name), type}
#define CONNECTION(of)                                                                                    \
  FIELD(of, name, TEXT), FIELD(of, transport, INT), FIELD(of, over_zmq, INT),                             \
      FIELD(of, no_shared_memory, INT), FIELD(of, heartbeat_ms, INT), FIELD(of, attempt_timeout_ms, INT), \
      FIELD(of, backoff_ms, INT), FIELD(of, backoff_max_ms, INT)

static const struct field client_fields[] = {FIELD(lightq_options, uri, TEXT),
                                             FIELD(lightq_options, user, TEXT),
                                             FIELD(lightq_options, password, TEXT),
                                             FIELD(lightq_options, admin_user, TEXT),
                                             FIELD(lightq_options, admin_password, TEXT),
                                             FIELD(lightq_options, server_key, TEXT),
                                             FIELD(lightq_options, client_key_file, TEXT),
                                             FIELD(lightq_options, data_dir, TEXT),
                                             FIELD(lightq_options, no_discovery, INT),
                                             FIELD(lightq_options, insecure, INT),
                                             FIELD(lightq_options, request_timeout_ms, INT),
                                             FIELD(lightq_options, connect_timeout_ms, INT),
                                             {NULL, 0, INT}};
static const struct field producer_fields[] = {CONNECTION(lightq_producer_options),
                                               FIELD(lightq_producer_options, batch_bytes, UINT64),
                                               FIELD(lightq_producer_options, window_bytes, UINT64),
                                               FIELD(lightq_producer_options, memory_bytes_max, UINT64),
                                               FIELD(lightq_producer_options, level, INT),
                                               FIELD(lightq_producer_options, compression, INT),
                                               FIELD(lightq_producer_options, delayed, INT),
                                               FIELD(lightq_producer_options, full_batches, INT),
                                               FIELD(lightq_producer_options, linger_ms, INT),
                                               FIELD(lightq_producer_options, no_retry_refused, INT),
                                               FIELD(lightq_producer_options, resend_in_doubt, INT),
                                               {NULL, 0, INT}};
static const struct field consumer_fields[] = {CONNECTION(lightq_consumer_options),
                                               FIELD(lightq_consumer_options, group, TEXT),
                                               FIELD(lightq_consumer_options, from_value, UINT64),
                                               FIELD(lightq_consumer_options, incarnation, UINT64),
                                               FIELD(lightq_consumer_options, prefetch_bytes, UINT64),
                                               FIELD(lightq_consumer_options, from, INT),
                                               FIELD(lightq_consumer_options, own, INT),
                                               FIELD(lightq_consumer_options, holds, INT),
                                               FIELD(lightq_consumer_options, automatic, INT),
                                               FIELD(lightq_consumer_options, prefetch_messages, INT),
                                               FIELD(lightq_consumer_options, prefetch_time_ms, INT),
                                               FIELD(lightq_consumer_options, ack_timeout_ms, INT),
                                               FIELD(lightq_consumer_options, may_not_be_busy, INT),
                                               FIELD(lightq_consumer_options, frame_bytes_max, INT),
                                               {NULL, 0, INT}};
static const struct field reader_fields[] = {
    CONNECTION(lightq_reader_options), FIELD(lightq_reader_options, frame_bytes_max, INT), {NULL, 0, INT}};

/* Writes the fields of the table at `at` to a struct. Its texts live as long as the table. */
static void take_fields(lua_State* lua, int at, const struct field* fields, void* options) {
  luaL_checktype(lua, at, LUA_TTABLE);
  for (; fields->name != NULL; ++fields) {
    char* const to = (char*)options + fields->offset;
    if (lua_getfield(lua, at, fields->name) != LUA_TNIL) {
      if (fields->type == TEXT) *(const char**)to = luaL_checkstring(lua, -1);
      if (fields->type == INT) *(int*)to = (int)luaL_checkinteger(lua, -1);
      if (fields->type == UINT64) *(uint64_t*)to = (uint64_t)luaL_checkinteger(lua, -1);
    }
    lua_pop(lua, 1);
  }
}

/* Pushes a handle before the library opens one, so that an error of Lua frees it. */
static struct handle* new_handle(lua_State* lua, enum kind kind) {
  struct handle* const made = lua_newuserdata(lua, sizeof *made);
  made->kind = kind;
  made->pointer = NULL;
  luaL_setmetatable(lua, HANDLE);
  return made;
}

/* Returns a code, and if it is OK the handle at `at`. */
static int give_handle(lua_State* lua, int code, int at) {
  lua_pushinteger(lua, code);
  if (code != LIGHTQ_OK) return 1;
  lua_pushvalue(lua, at);
  return 2;
}

int lightq_lua_free(lua_State* lua) {
  struct handle* const handle = luaL_checkudata(lua, 1, HANDLE);
  void* const freed = handle->pointer;
  handle->pointer = NULL;
  switch (handle->kind) {
    case CLIENT: lightq_client_free(freed); break;
    case PRODUCER: lightq_producer_free(freed); break;
    case CONSUMER: lightq_consumer_free(freed); break;
    case READER: lightq_reader_free(freed); break;
  }
  return 0;
}

int lightq_lua_connect(lua_State* lua) {
  lightq_options options = LIGHTQ_OPTIONS_INIT;
  lightq_client* opened;
  struct handle* const made = new_handle(lua, CLIENT);
  const int at = lua_gettop(lua);
  int code;
  take_fields(lua, 1, client_fields, &options);
  code = lightq_connect(&options, &opened);
  made->pointer = opened;
  return give_handle(lua, code, at);
}

/* Takes the identity in the table at `at`. Returns 0 if there is none. */
static int take_identity(lua_State* lua, int at, lightq_identity* identity) {
  if (lua_getfield(lua, at, "identity") == LUA_TNIL) return 0;
  lua_getfield(lua, -1, "id");
  identity->id = strtoull(luaL_checkstring(lua, -1), NULL, 10);
  lua_getfield(lua, -2, "epoch");
  identity->epoch = (int)luaL_checkinteger(lua, -1);
  if (lua_getfield(lua, -3, "secret") == LUA_TSTRING) {
    size_t bytes;
    const char* secret = lua_tolstring(lua, -1, &bytes);
    identity->has_secret = 1;
    memcpy(identity->secret, secret, bytes < sizeof identity->secret ? bytes : sizeof identity->secret);
  }
  return 1;
}

/* Each of these opens a handle with the fields in the table at FIELDS, and returns the code. */
enum { FIELDS = 4 };
static int open_producer(lua_State* lua, lightq_client* client, const char* topic, void** made) {
  lightq_producer_options options = LIGHTQ_PRODUCER_OPTIONS_INIT;
  lightq_identity identity = LIGHTQ_IDENTITY_INIT;
  lightq_producer* opened;
  int code;
  take_fields(lua, FIELDS, producer_fields, &options);
  if (take_identity(lua, FIELDS, &identity)) options.identity = &identity;
  code = lightq_producer_open(client, topic, &options, &opened);
  *made = opened;
  return code;
}

static int open_consumer(lua_State* lua, lightq_client* client, const char* topic, void** made) {
  lightq_consumer_options options = LIGHTQ_CONSUMER_OPTIONS_INIT;
  lightq_consumer* opened;
  int code;
  take_fields(lua, FIELDS, consumer_fields, &options);
  code = lightq_consumer_open(client, topic, &options, &opened);
  *made = opened;
  return code;
}

static int open_reader(lua_State* lua, lightq_client* client, const char* topic, void** made) {
  lightq_reader_options options = LIGHTQ_READER_OPTIONS_INIT;
  lightq_reader* opened;
  int code;
  take_fields(lua, FIELDS, reader_fields, &options);
  code = lightq_reader_open(client, topic, &options, &opened);
  *made = opened;
  return code;
}

/* open(kind, client, topic, fields) */
int lightq_lua_open(lua_State* lua) {
  const enum kind kind = (enum kind)luaL_checkoption(lua, 1, NULL, kinds);
  const struct handle* client = luaL_checkudata(lua, 2, HANDLE);
  const char* topic = luaL_checkstring(lua, 3);
  struct handle* const made = new_handle(lua, kind);
  const int at = lua_gettop(lua);
  int code;
  luaL_argcheck(lua, kind != CLIENT, 1, "a client is connected, not opened");
  luaL_argcheck(lua, client->kind == CLIENT, 2, "no client");
  if (kind == PRODUCER) {
    code = open_producer(lua, client->pointer, topic, &made->pointer);
  } else if (kind == CONSUMER) {
    code = open_consumer(lua, client->pointer, topic, &made->pointer);
  } else {
    code = open_reader(lua, client->pointer, topic, &made->pointer);
  }
  return give_handle(lua, code, at);
}
