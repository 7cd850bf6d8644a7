"""Sends and receives over plain ZeroMQ sockets that present the ticket of a join. For a broker without encryption.
Environment: LIGHTQ_BROKER, LIGHTQ_USER and LIGHTQ_PASSWORD, and a topic `parcels` that the user may use."""
import os

import zmq

context = zmq.Context()
control = context.socket(zmq.REQ)
control.connect(os.environ.get("LIGHTQ_BROKER", "tcp://127.0.0.1:5000"))


def connected(kind, word):
    control.send_json({"cmd": "join", "topic": "parcels", "type": word,
                       "user_id": os.environ["LIGHTQ_USER"], "password": os.environ["LIGHTQ_PASSWORD"]})
    joined = control.recv_json()
    assert joined["status"] == "ok", joined
    socket = context.socket(kind)
    socket.plain_username = joined["ticket"]["id"].encode()  # before the socket connects
    socket.plain_password = joined["ticket"]["secret"].encode()
    socket.connect(joined["bind_uri"])
    return socket


out, come = connected(zmq.PUSH, "push"), connected(zmq.PULL, "pull")
for number in range(3):
    out.send(b"parcel %d" % number)
for _ in range(3):
    print(come.recv().decode())
