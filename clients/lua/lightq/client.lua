--- A broker, and the credentials for it.
local Consumer = require "lightq.consumer"
local errors = require "lightq.errors"
local handle = require "lightq.handle"
local json = require "lightq.json"
local native = require "lightq.native"
local options = require "lightq.options"
local Producer = require "lightq.producer"
local Reader = require "lightq.reader"

local Client = handle.class("client")

--- Connects to a broker: see init.lua.
function Client.connect(uri, given)
  local fields = options.fields("client", given)
  if uri ~= nil then fields.uri = options.text(uri, "uri") end
  fields.connect_timeout_ms = fields.request_timeout_ms
  local code, opened = native.connect(fields)
  errors.check(code)
  return setmetatable({handle = opened}, Client)
end

--- Sends any command of docs/protocol.md, with the client's credentials. Returns the reply as a table. Errors: the broker's;
-- Timeout (the broker may have carried it out).
function Client:command(cmd, fields)
  local request = {cmd = cmd}
  for name, value in pairs(fields or {}) do request[name] = value end
  local ok, text = pcall(json.encode, request)
  if not ok then errors.invalid("%s", text) end
  local code, reply = native.command(self:open_handle(), options.text(text, "the command"))
  errors.check(code)
  return json.decode(reply)
end

-- Opens a producer, consumer or reader of a topic.
local function open(self, class, topic, fields)
  local opened = self:open_handle()
  local code, made = native.open(class.what, opened, options.text(topic, "the topic"), fields)
  errors.check(code)
  return class.of(topic, made)
end

--- Opens a producer. Options: `level`, "received" (a confirm says that a message is in the log) or "flushed" (it survives a
-- power cut), by default the topic's; `delayed`: messages may have a delay; `identity`: continues after another producer,
-- with its id and an epoch one higher; `retry_refused` (true): messages that the broker refuses are sent again later;
-- `resend_in_doubt`: messages are sent again under a new id if the broker has forgotten the producer, which may store some
-- twice; `compression`: "lz4" or "zstd"; `transport`; and others of lightq.h, with times in seconds. Errors: Timeout,
-- NotFound, Unauthorized …
function Client:producer(topic, given)
  local fields = options.fields("producer", given, {identity = true})
  if given and given.identity ~= nil then fields.identity = options.identity(given.identity) end
  return open(self, Producer, topic, fields)
end

--- Opens a consumer: a member of a group, by default of the group `default`. With `own` it has a cursor of its own, which the
-- broker keeps if `group` names it. Options: `group`; `own`; `start`, "first", "next", "last", an offset or {time = seconds},
-- where a new group begins; `holds`: the cursor keeps messages from being dropped; `automatic`: a message counts as
-- processed when it is sent; `prefetch`: messages that are requested ahead; `ack_timeout`: seconds for a message; `transport`; and others of
-- lightq.h, with times in seconds. Errors: Timeout, NotFound, Unauthorized …
function Client:consumer(topic, given)
  local fields = options.fields("consumer", given, {start = true})
  if given and given.start ~= nil then fields.from, fields.from_value = options.place(given.start) end
  return open(self, Consumer, topic, fields)
end

--- Opens a reader, which reads by offset.
function Client:reader(topic, given)
  return open(self, Reader, topic, options.fields("reader", given))
end

--- Ends the client. Its producers, consumers and readers stay usable. A second call does nothing.
function Client:close()
  self:free()
end

return require("lightq.commands")(Client)
