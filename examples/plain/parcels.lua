-- Sends and receives over plain ZeroMQ sockets that present the ticket of a join. LuaJIT and libzmq, no binding is needed. For
-- a broker without encryption. Environment: LIGHTQ_BROKER, LIGHTQ_USER and LIGHTQ_PASSWORD, and a topic `parcels` that the user
-- may use.
local ffi = require "ffi"
ffi.cdef [[void* zmq_ctx_new(void); void* zmq_socket(void*, int); int zmq_connect(void*, const char*);
  int zmq_setsockopt(void*, int, const void*, size_t); int zmq_send(void*, const char*, size_t, int);
  int zmq_recv(void*, char*, size_t, int);]]
local zmq, buffer = ffi.load "libzmq.so.5", ffi.new "char[65536]"
local context = zmq.zmq_ctx_new()
local REQ, PULL, PUSH, PLAIN_USERNAME, PLAIN_PASSWORD = 3, 7, 8, 45, 46

-- Every end is by os.exit: at another end LuaJIT would unload libzmq while its threads run.
local function check(value, problem)
  if not value then io.stderr:write(problem or "a call of libzmq failed", "\n") os.exit(1) end
  return value
end
local function send(socket, text) check(zmq.zmq_send(socket, text, #text, 0) >= 0) end
local function receive(socket)
  local bytes = zmq.zmq_recv(socket, buffer, 65536, 0)
  check(bytes >= 0 and bytes <= 65536)
  return ffi.string(buffer, bytes)
end
local control = zmq.zmq_socket(context, REQ)
check(zmq.zmq_connect(control, check(os.getenv "LIGHTQ_BROKER", "LIGHTQ_BROKER is not set")) == 0)

local function connected(kind, word)
  send(control, ('{"cmd":"join","topic":"parcels","type":"%s","user_id":"%s","password":"%s"}')
    :format(word, os.getenv "LIGHTQ_USER", os.getenv "LIGHTQ_PASSWORD"))
  local joined, socket = receive(control), zmq.zmq_socket(context, kind)
  local function field(name) return check(joined:match('"' .. name .. '":"(.-)"'), joined) end
  zmq.zmq_setsockopt(socket, PLAIN_USERNAME, field "id", #field "id") -- before the socket connects
  zmq.zmq_setsockopt(socket, PLAIN_PASSWORD, field "secret", #field "secret")
  check(zmq.zmq_connect(socket, field "bind_uri") == 0)
  return socket
end

local out, come = connected(PUSH, "push"), connected(PULL, "pull")
for number = 0, 2 do send(out, "parcel " .. number) end
for _ = 0, 2 do print(receive(come)) end
os.exit(0)
