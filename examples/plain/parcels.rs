//! Sends and receives over plain ZeroMQ sockets that present the ticket of a join (crates zmq 0.10 and serde_json). For a
//! broker without encryption. Environment: LIGHTQ_BROKER, LIGHTQ_USER and LIGHTQ_PASSWORD, and a topic `parcels` that the
//! user may use.
use std::env::var;

fn connected(context: &zmq::Context, control: &zmq::Socket, kind: zmq::SocketType, word: &str) -> zmq::Socket {
    let request = serde_json::json!({"cmd": "join", "topic": "parcels", "type": word,
        "user_id": var("LIGHTQ_USER").unwrap(), "password": var("LIGHTQ_PASSWORD").unwrap()});
    control.send(&request.to_string(), 0).unwrap();
    let joined: serde_json::Value = serde_json::from_slice(&control.recv_bytes(0).unwrap()).unwrap();
    assert_eq!(joined["status"], "ok", "{joined}");
    let socket = context.socket(kind).unwrap();
    socket.set_plain_username(joined["ticket"]["id"].as_str()).unwrap(); // before the socket connects
    socket.set_plain_password(joined["ticket"]["secret"].as_str()).unwrap();
    socket.connect(joined["bind_uri"].as_str().unwrap()).unwrap();
    socket
}

fn main() {
    let context = zmq::Context::new();
    let control = context.socket(zmq::REQ).unwrap();
    control.connect(&var("LIGHTQ_BROKER").unwrap()).unwrap();
    let out = connected(&context, &control, zmq::PUSH, "push");
    let come = connected(&context, &control, zmq::PULL, "pull");
    (0..3).for_each(|number| out.send(&format!("parcel {number}"), 0).unwrap());
    (0..3).for_each(|_| println!("{}", come.recv_string(0).unwrap().unwrap()));
}
