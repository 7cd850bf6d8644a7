# Sends and receives over plain ZeroMQ sockets that present the ticket of a join (gem ffi-rzmq, Debian: ruby-ffi-rzmq). For a
# broker without encryption. Environment: LIGHTQ_BROKER, LIGHTQ_USER and LIGHTQ_PASSWORD, and a topic `parcels` that the
# user may use.
require "ffi-rzmq"
require "json"

CONTEXT = ZMQ::Context.new
CONTROL = CONTEXT.socket(ZMQ::REQ)
CONTROL.connect(ENV.fetch("LIGHTQ_BROKER"))

def received(socket) = String.new.tap { |text| socket.recv_string(text) }

def connected(kind, type)
  user = { user_id: ENV.fetch("LIGHTQ_USER"), password: ENV.fetch("LIGHTQ_PASSWORD") }
  CONTROL.send_string({ cmd: "join", topic: "parcels", type:, **user }.to_json)
  joined = JSON.parse(received(CONTROL))
  raise joined["code"] unless joined["status"] == "ok"

  socket = CONTEXT.socket(kind)
  socket.setsockopt(ZMQ::PLAIN_USERNAME, joined["ticket"]["id"]) # before the socket connects
  socket.setsockopt(ZMQ::PLAIN_PASSWORD, joined["ticket"]["secret"])
  socket.connect(joined["bind_uri"])
  socket
end

out = connected(ZMQ::PUSH, "push")
come = connected(ZMQ::PULL, "pull")
3.times { |number| out.send_string("parcel #{number}") }
3.times { puts received(come) }
