--- Reads messages by their offsets, and changes nothing in the topic.
local errors = require "lightq.errors"
local handle = require "lightq.handle"
local Message = require "lightq.message"
local native = require "lightq.native"
local options = require "lightq.options"

local Reader = handle.class("reader")

local SECONDS = 30

--- Wraps a handle of the library.
function Reader.of(topic, opened)
  return setmetatable({topic = topic, handle = opened}, Reader)
end

--- Returns a list of the stored messages with the offsets `first` to `last` - 1, and the offset at which to continue. It has
-- at least one message, and otherwise at most so many bytes. Without `bytes_max`: as much as the broker allows. Errors: Timeout, Refused.
function Reader:read(first, last, bytes_max, timeout)
  local opened = self:open_handle()
  local code, following = native.fetch(opened, options.whole(first, "the offset"), options.whole(last, "the offset"),
                                       options.whole(bytes_max or 0, "bytes_max"), options.timeout(timeout, SECONDS))
  errors.check(code)
  local messages = {}
  while true do
    local found, parts = native.next_fetched(opened)
    if found ~= errors.OK then return messages, following end
    messages[#messages + 1] = Message.of(parts)
  end
end

--- Ends the connection. A second call does nothing.
function Reader:close()
  self:free()
end

return Reader
