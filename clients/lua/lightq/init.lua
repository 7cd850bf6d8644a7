--- A client of the message broker LightQ, over the library liblightq.so.0, for Lua 5.3, Lua 5.4 and LuaJIT.
local Client = require "lightq.client"
local errors = require "lightq.errors"
local json = require "lightq.json"
local native = require "lightq.native"

local lightq = {version = "0.1.0", null = json.null, array = json.array, is_error = errors.is}

--- Returns the version of the library.
lightq.library_version = native.version

--- Connects to a broker, and returns a client. `uri` and options that are not given come from the environment (LIGHTQ_BROKER,
-- LIGHTQ_USER, LIGHTQ_PASSWORD …), as for the command line. On the broker's machine they also come from its files. With
-- `discover = false` they have their defaults. Options: `user`, `password`, `admin`, `admin_password`, `server_key` (everything is encrypted),
-- `client_key_file`, `data_dir`, `insecure`, and `timeout`: seconds for each request, and to open a producer, consumer or
-- reader; 5 by default. Errors: Timeout, ConnectionLost, Unauthorized, InvalidArgument. A wrong password shows in later calls.
function lightq.connect(uri, options)
  if type(uri) == "table" and options == nil then uri, options = nil, uri end
  return Client.connect(uri, options)
end

return lightq
