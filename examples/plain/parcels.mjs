// Sends and receives over plain ZeroMQ sockets that present the ticket of a join (npm package zeromq, version 6). For a broker
// without encryption. Environment: LIGHTQ_BROKER, LIGHTQ_USER and LIGHTQ_PASSWORD, and a topic `parcels` that the user may use.
import { createRequire } from "node:module";
const { Request, Push, Pull } = createRequire(process.cwd() + "/")("zeromq");

const control = new Request();
control.connect(process.env.LIGHTQ_BROKER);

async function connected(Kind, type) {
  const user = { user_id: process.env.LIGHTQ_USER, password: process.env.LIGHTQ_PASSWORD };
  await control.send(JSON.stringify({ cmd: "join", topic: "parcels", type, ...user }));
  const joined = JSON.parse((await control.receive())[0]);
  if (joined.status !== "ok") throw new Error(joined.code);
  const socket = new Kind({ plainUsername: joined.ticket.id, plainPassword: joined.ticket.secret });
  socket.connect(joined.bind_uri);
  return socket;
}

const out = await connected(Push, "push");
const come = await connected(Pull, "pull");
for (let number = 0; number < 3; ++number) await out.send(`parcel ${number}`);
for (let number = 0; number < 3; ++number) console.log(String((await come.receive())[0]));
