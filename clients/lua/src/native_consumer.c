/* The functions of consumers and readers. */
#include "native.h"

int lightq_lua_consumer_stats(lua_State* lua) {
  lightq_consumer_stats stats = LIGHTQ_CONSUMER_STATS_INIT;
  lua_pushinteger(lua, lightq_consumer_get_stats(CONSUMER_OF(lua), &stats));
  lua_createtable(lua, 0, 10);
  lightq_lua_set_number(lua, "received", stats.received);
  lightq_lua_set_number(lua, "again", stats.again);
  lightq_lua_set_number(lua, "acknowledged", stats.acknowledged);
  lightq_lua_set_number(lua, "rejected", stats.rejected);
  lightq_lua_set_number(lua, "late", stats.late);
  lightq_lua_set_number(lua, "revoked", stats.revoked);
  lightq_lua_set_number(lua, "lost", stats.lost);
  lightq_lua_set_number(lua, "opens", stats.opens);
  lightq_lua_set_number(lua, "new_logs", stats.new_logs);
  lightq_lua_set_number(lua, "unacknowledged", stats.unacknowledged);
  return 2;
}

static void push_headers(lua_State* lua, const lightq_message* message) {
  lightq_header headers[HEADERS_MAX];
  size_t count = message->header_count == 0 ? 0 : lightq_message_headers(message, headers, HEADERS_MAX), i;
  if (count > HEADERS_MAX) count = HEADERS_MAX;
  lua_createtable(lua, (int)count, 0);
  for (i = 0; i < count; ++i) {
    lua_createtable(lua, 2, 0);
    lua_pushlstring(lua, headers[i].name, headers[i].name_bytes);
    lua_rawseti(lua, -2, 1);
    lua_pushlstring(lua, headers[i].value, headers[i].value_bytes);
    lua_rawseti(lua, -2, 2);
    lua_rawseti(lua, -2, (lua_Integer)i + 1);
  }
}

/* Returns a code, and if it is OK the parts of a message. */
static int give_message(lua_State* lua, int code, const lightq_message* message) {
  if (code != LIGHTQ_OK) return lightq_lua_give(lua, code);
  lua_pushinteger(lua, code);
  lua_createtable(lua, 0, 14);
  lua_pushlstring(lua, message->body, message->body_bytes);
  lua_setfield(lua, -2, "body");
  if (message->key_bytes > 0) {
    lua_pushlstring(lua, message->key, message->key_bytes);
    lua_setfield(lua, -2, "key");
  }
  push_headers(lua, message);
  lua_setfield(lua, -2, "headers");
  lightq_lua_set_number(lua, "offset", message->offset);
  lightq_lua_set_number(lua, "lease", message->lease);
  lightq_lua_set_number(lua, "lost", message->lost);
  lightq_lua_set_number(lua, "time_us", (uint64_t)message->time_us);
  lightq_lua_set_number(lua, "producer_time_us", (uint64_t)message->producer_time_us);
  lightq_lua_set_number(lua, "delivery", (uint64_t)message->delivery);
  lua_pushboolean(lua, message->expired);
  lua_setfield(lua, -2, "expired");
  return 2;
}

int lightq_lua_next(lua_State* lua) {
  lightq_message message = LIGHTQ_MESSAGE_INIT;
  const int code = lightq_next(CONSUMER_OF(lua), &message, lightq_lua_int(lua, 2));
  return give_message(lua, code, &message);
}

int lightq_lua_next_fetched(lua_State* lua) {
  lightq_message message = LIGHTQ_MESSAGE_INIT;
  const int code = lightq_next_fetched(READER_OF(lua), &message);
  return give_message(lua, code, &message);
}

int lightq_lua_fetch(lua_State* lua) {
  uint64_t next = 0;
  const int code = lightq_fetch(READER_OF(lua), lightq_lua_number(lua, 2), lightq_lua_number(lua, 3),
                                lightq_lua_number(lua, 4), &next, lightq_lua_int(lua, 5));
  return lightq_lua_give_number(lua, code, next);
}

static lightq_message known_message(lua_State* lua, int at) {
  lightq_message message = LIGHTQ_MESSAGE_INIT;
  message.offset = lightq_lua_number(lua, at);
  message.lease = lightq_lua_number(lua, at + 1);
  return message;
}

/* settle(consumer, how, offset, lease, argument) */
int lightq_lua_settle(lua_State* lua) {
  static const char* const words[] = {"ack", "release", "retry", "dead", "extend", NULL};
  lightq_consumer* consumer = CONSUMER_OF(lua);
  const lightq_message message = known_message(lua, 3);
  switch (luaL_checkoption(lua, 2, NULL, words)) {
    case 0: return lightq_lua_give(lua, lightq_ack(consumer, &message));
    case 1: return lightq_lua_give(lua, lightq_release(consumer, &message));
    case 2: return lightq_lua_give(lua, lightq_retry(consumer, &message, luaL_checkinteger(lua, 5)));
    case 3: return lightq_lua_give(lua, lightq_dead(consumer, &message, luaL_optstring(lua, 5, NULL)));
    default: return lightq_lua_give(lua, lightq_extend(consumer, &message, luaL_checkinteger(lua, 5)));
  }
}

int lightq_lua_revoked(lua_State* lua) {
  lightq_consumer* consumer = CONSUMER_OF(lua);
  const lightq_message message = known_message(lua, 2);
  lua_pushboolean(lua, lightq_revoked(consumer, &message));
  return 1;
}

int lightq_lua_ack_range(lua_State* lua) {
  uint64_t count = 0;
  const int code =
      lightq_ack_range(CONSUMER_OF(lua), lightq_lua_number(lua, 2), lightq_lua_number(lua, 3), &count);
  return lightq_lua_give_number(lua, code, count);
}

int lightq_lua_ack_before(lua_State* lua) {
  uint64_t count = 0;
  const int code = lightq_ack_before(CONSUMER_OF(lua), lightq_lua_number(lua, 2), &count);
  return lightq_lua_give_number(lua, code, count);
}

int lightq_lua_seek(lua_State* lua) {
  uint64_t offset = 0;
  const int code = lightq_seek(CONSUMER_OF(lua), lightq_lua_int(lua, 2), lightq_lua_number(lua, 3), &offset,
                               lightq_lua_int(lua, 4));
  return lightq_lua_give_number(lua, code, offset);
}

int lightq_lua_pause(lua_State* lua) {
  return lightq_lua_give(lua, lightq_consumer_pause(CONSUMER_OF(lua), lua_toboolean(lua, 2)));
}

int lightq_lua_consumer_poll(lua_State* lua) {
  return lightq_lua_give(lua, lightq_consumer_poll(CONSUMER_OF(lua)));
}

int lightq_lua_wait_open(lua_State* lua) {
  return lightq_lua_give(lua, lightq_consumer_wait_open(CONSUMER_OF(lua), lightq_lua_int(lua, 2)));
}

int lightq_lua_consumer_flush(lua_State* lua) {
  return lightq_lua_give(lua, lightq_consumer_flush(CONSUMER_OF(lua), lightq_lua_int(lua, 2)));
}

int lightq_lua_consumer_close(lua_State* lua) {
  return lightq_lua_give(lua, lightq_consumer_close(CONSUMER_OF(lua), lightq_lua_int(lua, 2)));
}

/* Returns one range, or nothing behind the code if there is none. */
int lightq_lua_late(lua_State* lua) {
  lightq_range range = {0, 0};
  size_t count = 0;
  const int code = lightq_consumer_late(CONSUMER_OF(lua), &range, 1, &count);
  lua_pushinteger(lua, code);
  if (code != LIGHTQ_OK || count == 0) return 1;
  lua_pushinteger(lua, (lua_Integer)range.begin);
  lua_pushinteger(lua, (lua_Integer)range.end);
  return 3;
}
