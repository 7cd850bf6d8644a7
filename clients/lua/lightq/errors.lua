--- The errors of the client: tables with `kind`, `code`, `text` and `retryable`, which `error` throws.
--
-- `code` is a word of docs/protocol.md, such as `topic_not_found`. `kind` is the name that other clients give its class,
-- such as `NotFound`. `retryable`: the same call may succeed later, without a change of the program.
local native = require "lightq.native"

local errors = {OK = 0, LIMIT_REACHED = 15, TIMEOUT = 25, CLOSED = 26, INVALID_ARGUMENT = 27}

local KINDS = {
  NotFound = {"topic_not_found", "group_not_found", "user_not_found", "schedule_not_found", "endpoint_not_found"},
  AlreadyExists = {"topic_already_exists", "user_already_exists"}, Unauthorized = {"unauthorized_access"},
  Refused = {"limit_reached", "no_space", "too_large", "busy", "shutting_down", "corrupt", "group_in_use", "request_too_large",
             "address_in_use"},
  InvalidArgument = {"invalid_argument", "invalid_request", "invalid_cmd", "invalid_json"},
  NotSupported = {"not_supported", "foreign_format"}, Fenced = {"in_use"}, Revoked = {"revoked"}, Timeout = {"timeout"},
  Closed = {"closed"}, ConnectionLost = {"io_error"},
}
local kind_of = {}
for kind, words in pairs(KINDS) do
  for _, word in ipairs(words) do kind_of[word] = kind end
end

local Error = {__name = "lightq.Error"}
Error.__index = Error
function Error:__tostring()
  return ("lightq: %s: %s"):format(self.code, self.text)
end

--- Returns an error. `kind` is by default that of the code's word.
function errors.new(code, text, kind)
  local word = native.word(code)
  if text == "" then text = word end
  return setmetatable({code = word, kind = kind or kind_of[word] or "Error", text = text, retryable = native.retryable(code)}, Error)
end

--- Returns the error of the last call, which has returned `code`.
function errors.last(code, kind)
  local found, text = native.last_error()
  return errors.new(code, found == code and text or "", kind)
end

--- Throws the error of a code that is not OK.
function errors.check(code, kind)
  if code ~= errors.OK then error(errors.last(code, kind), 0) end
end

function errors.invalid(text, ...)
  error(errors.new(errors.INVALID_ARGUMENT, text:format(...)), 0)
end

function errors.closed(what)
  error(errors.new(errors.CLOSED, "this " .. what .. " is closed"), 0)
end

--- Tells whether a value is an error of the client, and if `kind` is given, of that kind.
function errors.is(value, kind)
  return getmetatable(value) == Error and (kind == nil or value.kind == kind)
end

return errors
