/* Shared by the files of the module in C. The modules in Lua have checked all arguments. */
#ifndef LIGHTQ_LUA_NATIVE_H
#define LIGHTQ_LUA_NATIVE_H

#include <lauxlib.h>
#include <lua.h>

#include <lightq/lightq.h>

enum kind { CLIENT, PRODUCER, CONSUMER, READER };

/* A userdata. `pointer` is null once it was freed: the library then returns INVALID_ARGUMENT. */
struct handle {
  enum kind kind;
  void* pointer;
};
#define HANDLE "lightq.handle"

enum { HEADERS_MAX = 64 };

/* Returns the pointer of the handle that is the first argument. Throws if it is of another kind. */
void* lightq_lua_pointer(lua_State* lua, enum kind kind);
#define CLIENT_OF(lua) ((lightq_client*)lightq_lua_pointer(lua, CLIENT))
#define PRODUCER_OF(lua) ((lightq_producer*)lightq_lua_pointer(lua, PRODUCER))
#define CONSUMER_OF(lua) ((lightq_consumer*)lightq_lua_pointer(lua, CONSUMER))
#define READER_OF(lua) ((lightq_reader*)lightq_lua_pointer(lua, READER))

/* Returns a code to Lua; the second one also a number that the call has written. */
int lightq_lua_give(lua_State* lua, int code);
int lightq_lua_give_number(lua_State* lua, int code, uint64_t number);
/* Sets a field of the table on the top of the stack. */
void lightq_lua_set_number(lua_State* lua, const char* name, uint64_t number);
int lightq_lua_int(lua_State* lua, int at);
uint64_t lightq_lua_number(lua_State* lua, int at);

/* The functions of the module. */
int lightq_lua_free(lua_State* lua);
int lightq_lua_connect(lua_State* lua);
int lightq_lua_open(lua_State* lua);
int lightq_lua_version(lua_State* lua);
int lightq_lua_word(lua_State* lua);
int lightq_lua_retryable(lua_State* lua);
int lightq_lua_last_error(lua_State* lua);
int lightq_lua_command(lua_State* lua);
int lightq_lua_send(lua_State* lua);
int lightq_lua_flush(lua_State* lua);
int lightq_lua_wait_settled(lua_State* lua);
int lightq_lua_producer_poll(lua_State* lua);
int lightq_lua_producer_close(lua_State* lua);
int lightq_lua_resolve(lua_State* lua);
int lightq_lua_keep_reports(lua_State* lua);
int lightq_lua_next_report(lua_State* lua);
int lightq_lua_identity(lua_State* lua);
int lightq_lua_producer_stats(lua_State* lua);
int lightq_lua_consumer_stats(lua_State* lua);
int lightq_lua_next(lua_State* lua);
int lightq_lua_next_fetched(lua_State* lua);
int lightq_lua_fetch(lua_State* lua);
int lightq_lua_settle(lua_State* lua);
int lightq_lua_revoked(lua_State* lua);
int lightq_lua_ack_range(lua_State* lua);
int lightq_lua_ack_before(lua_State* lua);
int lightq_lua_seek(lua_State* lua);
int lightq_lua_pause(lua_State* lua);
int lightq_lua_consumer_poll(lua_State* lua);
int lightq_lua_wait_open(lua_State* lua);
int lightq_lua_consumer_flush(lua_State* lua);
int lightq_lua_consumer_close(lua_State* lua);
int lightq_lua_late(lua_State* lua);
int lightq_lua_stats(lua_State* lua);
int lightq_lua_state(lua_State* lua);

#endif
