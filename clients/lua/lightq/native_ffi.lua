--- The functions of liblightq.so.0 by the FFI of LuaJIT: see native.lua. A handle is a table {pointer, kind}.
local ffi = require "ffi"

ffi.cdef(require "lightq.cdef")
ffi.cdef "unsigned long long strtoull(const char *text, char **end, int base);"
local ok, C = pcall(ffi.load, "liblightq.so.0")
if not ok then error("the library liblightq.so.0 (Debian: liblightq0) cannot be loaded: " .. tostring(C), 0) end

local native = {}
local FREE = {
  client = C.lightq_client_free, producer = C.lightq_producer_free, consumer = C.lightq_consumer_free, reader = C.lightq_reader_free,
}
local OK = 0
local HEADERS_MAX = 64

-- Structs that calls fill, and the places for numbers. No call runs inside of another one.
local message = ffi.new("lightq_message")
local known = ffi.new("lightq_message")
local report = ffi.new("lightq_report")
local range = ffi.new("lightq_range")
local headers = ffi.new("lightq_header[?]", HEADERS_MAX)
local number, count = ffi.new("uint64_t[1]"), ffi.new("size_t[1]")

local function sized(struct)
  struct.size = ffi.sizeof(struct)
  return struct
end
sized(message)
sized(known)
sized(report)

local function text_of(pointer)
  return pointer ~= nil and ffi.string(pointer) or ""
end

local function bytes_of(pointer, bytes)
  return bytes > 0 and ffi.string(pointer, bytes) or ""
end

-- The tables with the texts to which structs point, so that the garbage collector leaves them alone during a call.
local anchors = {}
native.anchors = anchors

-- Writes fields to a struct.
local function filled(name, fields)
  anchors.fields = fields
  local struct = sized(ffi.new(name))
  for field, value in pairs(fields) do struct[field] = value end
  return struct
end

function native.version()
  return ffi.string(C.lightq_version())
end

function native.word(code)
  return ffi.string(C.lightq_strerror(code))
end

function native.retryable(code)
  return C.lightq_retryable(code) == 1
end

function native.last_error()
  local last = C.lightq_last_error()
  return last.code, ffi.string(last.text)
end

local function opened(kind, code, place)
  if code ~= OK then return code end
  return code, {pointer = ffi.gc(place[0], FREE[kind]), kind = kind}
end

function native.connect(fields)
  local place = ffi.new("lightq_client*[1]")
  return opened("client", C.lightq_connect(filled("lightq_options", fields), place), place)
end

local function identity_of(given)
  local identity = sized(ffi.new("lightq_identity"))
  identity.id, identity.epoch = ffi.C.strtoull(given.id, nil, 10), given.epoch
  if given.secret then
    identity.has_secret = 1
    ffi.copy(identity.secret, given.secret, math.min(#given.secret, ffi.sizeof(identity.secret)))
  end
  return identity
end

function native.open(kind, client, topic, fields)
  local identity = fields.identity and identity_of(fields.identity) -- lives until the call returns
  fields.identity = identity
  local place = ffi.new("lightq_" .. kind .. "*[1]")
  local options = filled("lightq_" .. kind .. "_options", fields)
  return opened(kind, C["lightq_" .. kind .. "_open"](client.pointer, topic, options, place), place)
end

--- Frees a handle. A second call does nothing.
function native.free(handle)
  if handle.pointer == nil then return end
  FREE[handle.kind](ffi.gc(handle.pointer, nil))
  handle.pointer = nil
end

function native.command(client, json)
  local place = ffi.new("char*[1]")
  local code = C.lightq_command(client.pointer, json, place)
  if code ~= OK then return code end
  local reply = ffi.gc(place[0], C.lightq_free)
  return code, ffi.string(reply)
end

local function attributes_of(given)
  anchors.attributes = given
  local attributes = sized(ffi.new("lightq_attributes"))
  if given.key then attributes.key, attributes.key_bytes = given.key, #given.key end
  if given.id then attributes.id, attributes.id_bytes = given.id, #given.id end
  for at, pair in ipairs(given.headers or {}) do
    local header = headers[at - 1]
    header.name, header.name_bytes, header.value, header.value_bytes = pair[1], #pair[1], pair[2], #pair[2]
    attributes.headers, attributes.header_count = headers, at
  end
  attributes.time_us, attributes.delay_ms = given.time_us, given.delay_ms
  attributes.deliver_at_us, attributes.ttl_ms = given.deliver_at_us, given.ttl_ms
  return attributes
end

function native.send(producer, body, given, ms)
  local attributes = given and attributes_of(given) or nil
  local code = C.lightq_send_numbered(producer.pointer, body, #body, attributes, ms, number)
  return code, tonumber(number[0])
end

function native.flush(producer, ms)
  return C.lightq_flush(producer.pointer, ms)
end

function native.wait_settled(producer, which, ms)
  return C.lightq_wait_settled(producer.pointer, which, ms)
end

function native.producer_poll(producer, ms)
  return C.lightq_producer_poll(producer.pointer, ms)
end

function native.producer_close(producer, ms)
  return C.lightq_producer_close(producer.pointer, ms)
end

function native.resolve(producer, resend)
  return C.lightq_producer_resolve(producer.pointer, resend and 1 or 0)
end

function native.keep_reports(producer)
  return C.lightq_producer_keep_reports(producer.pointer)
end

function native.next_report(producer)
  local code = C.lightq_next_report(producer.pointer, report)
  if code ~= OK then return code end
  return code, tonumber(report.begin), tonumber(report["end"]), report.fate, report.code, text_of(report.text)
end

function native.identity(producer)
  local identity = sized(ffi.new("lightq_identity"))
  local code = C.lightq_producer_identity(producer.pointer, identity)
  local secret = identity.has_secret == 1 and ffi.string(identity.secret, ffi.sizeof(identity.secret)) or nil
  return code, tostring(identity.id):match("%d+"), identity.epoch, secret
end

function native.state(handle)
  return C["lightq_" .. handle.kind .. "_state"](handle.pointer)
end

local STATS = {
  producer = {"sent", "confirmed", "refused", "unknown", "lost", "unconfirmed", "opens"},
  consumer = {"received", "again", "acknowledged", "rejected", "late", "revoked", "lost", "opens", "new_logs", "unacknowledged"},
}
function native.stats(handle)
  local struct, stats = sized(ffi.new("lightq_" .. handle.kind .. "_stats")), {}
  local code = C["lightq_" .. handle.kind .. "_get_stats"](handle.pointer, struct)
  for _, name in ipairs(STATS[handle.kind]) do stats[name] = tonumber(struct[name]) end
  return code, stats
end

-- Returns the parts of the message that a call has filled.
local function parts_of()
  local parts = {
    body = bytes_of(message.body, message.body_bytes), headers = {}, offset = tonumber(message.offset), lease = message.lease,
    lost = tonumber(message.lost), time_us = tonumber(message.time_us), producer_time_us = tonumber(message.producer_time_us),
    delivery = message.delivery, expired = message.expired == 1,
  }
  if message.key_bytes > 0 then parts.key = bytes_of(message.key, message.key_bytes) end
  for at = 1, tonumber(C.lightq_message_headers(message, headers, message.header_count > 0 and HEADERS_MAX or 0)) do
    local header = headers[at - 1]
    parts.headers[at] = {bytes_of(header.name, header.name_bytes), bytes_of(header.value, header.value_bytes)}
  end
  return parts
end

function native.next(consumer, ms)
  local code = C.lightq_next(consumer.pointer, message, ms)
  if code ~= OK then return code end
  return code, parts_of()
end

local SETTLERS = {
  ack = function(consumer) return C.lightq_ack(consumer, known) end,
  release = function(consumer) return C.lightq_release(consumer, known) end,
  retry = function(consumer, delay_ms) return C.lightq_retry(consumer, known, delay_ms) end,
  dead = function(consumer, reason) return C.lightq_dead(consumer, known, reason) end,
  extend = function(consumer, time_ms) return C.lightq_extend(consumer, known, time_ms) end,
}
function native.settle(consumer, how, offset, lease, argument)
  known.offset, known.lease = offset, lease
  return SETTLERS[how](consumer.pointer, argument)
end

function native.revoked(consumer, offset, lease)
  known.offset, known.lease = offset, lease
  return C.lightq_revoked(consumer.pointer, known) == 1
end

function native.ack_range(consumer, first, last)
  return C.lightq_ack_range(consumer.pointer, first, last, number), tonumber(number[0])
end

function native.ack_before(consumer, offset)
  return C.lightq_ack_before(consumer.pointer, offset, number), tonumber(number[0])
end

function native.seek(consumer, from, value, ms)
  return C.lightq_seek(consumer.pointer, from, value, number, ms), tonumber(number[0])
end

function native.pause(consumer, paused)
  return C.lightq_consumer_pause(consumer.pointer, paused and 1 or 0)
end

function native.consumer_poll(consumer)
  return C.lightq_consumer_poll(consumer.pointer)
end

function native.wait_open(consumer, ms)
  return C.lightq_consumer_wait_open(consumer.pointer, ms)
end

function native.consumer_flush(consumer, ms)
  return C.lightq_consumer_flush(consumer.pointer, ms)
end

--- Returns one range, or nothing behind the code if there is none.
function native.late(consumer)
  local code = C.lightq_consumer_late(consumer.pointer, range, 1, count)
  if code ~= OK or count[0] == 0 then return code end
  return code, tonumber(range.begin), tonumber(range["end"])
end

function native.consumer_close(consumer, ms)
  return C.lightq_consumer_close(consumer.pointer, ms)
end

function native.fetch(reader, first, last, bytes_max, ms)
  return C.lightq_fetch(reader.pointer, first, last, bytes_max, number, ms), tonumber(number[0])
end

function native.next_fetched(reader)
  local code = C.lightq_next_fetched(reader.pointer, message)
  if code ~= OK then return code end
  return code, parts_of()
end

return native
