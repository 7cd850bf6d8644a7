--- The common part of clients, producers, consumers and readers: a handle of the library, which `close` or the garbage
-- collector frees.
local errors = require "lightq.errors"
local native = require "lightq.native"

local handle = {}

local SLICE_MS = 1000 -- a wait ends that often, so that hooks run, such as the one for Ctrl-C

--- Makes a class. Its objects have `handle` and `what`, a word for errors.
function handle.class(what)
  local class = {what = what, __name = "lightq." .. what}
  class.__index = class
  class.__tostring = function(self)
    return ("lightq %s %s%s"):format(what, self.topic or "", self.handle and "" or " (closed)")
  end
  class.__close = function(self, failure)
    if failure == nil then return self:close() end
    pcall(self.close, self, 1) -- the failure is more important
  end

  --- Returns the handle. Errors: Closed.
  function class:open_handle()
    return self.handle or errors.closed(what)
  end

  --- Tells whether `close` was called.
  function class:is_closed()
    return self.handle == nil
  end

  --- Frees the handle.
  function class:free()
    local freed = self.handle
    self.handle = nil
    if freed then native.free(freed) end
  end
  return class
end

--- Repeats a call that waits, until it does not return TIMEOUT or the time has passed. `call(ms)` returns a code first.
-- `ms` is nil without a limit.
function handle.sliced(ms, call)
  local code, first, second
  repeat
    local slice = ms and math.min(ms, SLICE_MS) or SLICE_MS
    code, first, second = call(slice)
    if ms then ms = ms - slice end
  until code ~= errors.TIMEOUT or (ms and ms <= 0)
  return code, first, second
end

return handle
