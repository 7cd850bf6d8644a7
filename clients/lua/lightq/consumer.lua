--- Receives a topic's messages, as a member of a group or with a cursor of its own.
--
-- It sends and receives inside calls only. The broker knows that the program may be busy: it may work on a message for as
-- long as `ack_timeout`, 30 minutes by default, without a call. Acknowledgements are gathered: they are sent when the
-- consumer waits, when there are many, or by `flush`.
local errors = require "lightq.errors"
local handle = require "lightq.handle"
local Message = require "lightq.message"
local native = require "lightq.native"
local options = require "lightq.options"

local Consumer = handle.class("consumer")

local SECONDS = 5
local STATES = {[0] = "connecting", "open", "in_doubt", "failed", "closed"}

--- Wraps a handle of the library.
function Consumer.of(topic, opened)
  return setmetatable({topic = topic, handle = opened}, Consumer)
end

-- Returns the error of a code. The library says `closed` if the connection has ended, and if the consumer is of the parent process:
-- then its `state` is "closed" before the call, too.
local function failure(code, state)
  return errors.last(code, code == errors.CLOSED and state ~= "closed" and "ConnectionLost" or nil)
end

-- Throws the error of a code that is not OK.
local function check(self, code)
  if code ~= errors.OK then error(failure(code, self:state()), 0) end
end

--- Returns the next message, or nil if none arrives within so many seconds; nil: no limit. Errors: the final failure.
function Consumer:receive(timeout)
  local opened = self:open_handle()
  local ms = timeout and options.timeout(timeout) or nil
  local code, parts = handle.sliced(ms, function(slice) return native.next(opened, slice) end)
  if code == errors.TIMEOUT then return nil end
  errors.check(code)
  return Message.of(parts, self)
end

--- Returns an iterator over messages, which the loop settles, until none arrives for so many seconds. Without a limit it
-- never ends.
function Consumer:messages(idle_timeout)
  return function() return self:receive(idle_timeout) end
end

--- Calls `work(message)` for messages as `messages` returns them, and settles each as Message:process does.
function Consumer:process(work, idle_timeout)
  for message in self:messages(idle_timeout) do message:process(work) end
end

--- Sends and receives without waiting: messages learn that they are revoked. Errors: the final failure.
function Consumer:poll()
  errors.check(native.consumer_poll(self:open_handle()))
end

--- Sends everything that was settled. Errors: Timeout, ConnectionLost, the final failure.
function Consumer:flush(timeout)
  local opened = self:open_handle()
  check(self, (handle.sliced(options.timeout(timeout, SECONDS), function(ms) return native.consumer_flush(opened, ms) end)))
end

--- Waits until the topic is open again after a broken connection. Errors: Timeout, the final failure.
function Consumer:wait_open(timeout)
  local opened = self:open_handle()
  check(self, (handle.sliced(options.timeout(timeout, SECONDS), function(ms) return native.wait_open(opened, ms) end)))
end

--- Moves the group, or the own cursor, to "first", "next", "last", an offset, or {time = seconds since 1970}. Returns the new
-- offset. Messages that were received before are revoked. Errors: Timeout, ConnectionLost (moved or not), the broker's.
function Consumer:seek(to, timeout)
  local opened = self:open_handle()
  local from, value = options.place(to)
  local code, offset = native.seek(opened, from, value, options.timeout(timeout, SECONDS))
  check(self, code)
  return offset
end

--- Asks for no more messages until `resume`. Those on their way still arrive.
function Consumer:pause()
  errors.check(native.pause(self:open_handle(), true))
end

function Consumer:resume()
  errors.check(native.pause(self:open_handle(), false))
end

--- Finishes the messages with the offsets `first` to `last` - 1 that the consumer has. Returns how many were in flight.
function Consumer:ack_range(first, last)
  local code, count = native.ack_range(self:open_handle(), options.whole(first, "the offset"), options.whole(last, "the offset"))
  errors.check(code)
  return count
end

--- Finishes all messages before this offset that were received. Returns how many were in flight.
function Consumer:ack_before(offset)
  local code, count = native.ack_before(self:open_handle(), options.whole(offset, "the offset"))
  errors.check(code)
  return count
end

--- See Message.
function Consumer:settle(message, how, argument)
  errors.check(native.settle(self:open_handle(), how, message.offset, message.lease, argument))
end

function Consumer:is_revoked(message)
  return self.handle == nil or native.revoked(self.handle, message.offset, message.lease)
end

--- Returns "connecting", "open", "failed" or "closed".
function Consumer:state()
  return self.handle and STATES[native.state(self.handle)] or "closed"
end

--- Returns the counters since the consumer was opened, by their names in lightq.h.
function Consumer:stats()
  local code, stats = native.stats(self:open_handle())
  errors.check(code)
  return stats
end

--- Returns a list of ranges {first, last} of messages that were settled too late, since the last call; `last` is not included.
function Consumer:late()
  local ranges = {}
  while true do
    local code, first, last = native.late(self:open_handle())
    errors.check(code)
    if not first then return ranges end
    ranges[#ranges + 1] = {first, last}
  end
end

--- Sends everything that was settled, waits until the broker has it, gives the other messages back, and ends the session.
-- Errors: Timeout; ConnectionLost or the final failure: settled messages may be delivered again. A second call does nothing.
function Consumer:close(timeout)
  if not self.handle then return end
  local state = self:state()
  local code = native.consumer_close(self.handle, options.timeout(timeout, SECONDS))
  local failed = code ~= errors.OK and failure(code, state)
  self:free()
  if failed then error(failed, 0) end
end

return Consumer
