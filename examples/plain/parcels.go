// Command parcels sends and receives over plain ZeroMQ sockets that present the ticket of a join (module
// github.com/go-zeromq/zmq4). For a broker without encryption. Environment: LIGHTQ_BROKER, LIGHTQ_USER and
// LIGHTQ_PASSWORD, and a topic `parcels` that the user may use.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/plain"
)

var ctx = context.Background()

func connected(control zmq4.Socket, kind func(context.Context, ...zmq4.Option) zmq4.Socket, word string) zmq4.Socket {
	request, _ := json.Marshal(map[string]string{"cmd": "join", "topic": "parcels", "type": word,
		"user_id": os.Getenv("LIGHTQ_USER"), "password": os.Getenv("LIGHTQ_PASSWORD")})
	check(control.Send(zmq4.NewMsg(request)))
	reply, err := control.Recv()
	check(err)
	var joined struct {
		Status, Code string
		BindURI      string `json:"bind_uri"`
		Ticket       struct{ ID, Secret string }
	}
	check(json.Unmarshal(reply.Bytes(), &joined))
	if joined.Status != "ok" {
		log.Fatal(joined.Code)
	}
	socket := kind(ctx, zmq4.WithSecurity(plain.Security(joined.Ticket.ID, joined.Ticket.Secret)))
	check(socket.Dial(joined.BindURI))
	return socket
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	control := zmq4.NewReq(ctx)
	check(control.Dial(os.Getenv("LIGHTQ_BROKER")))
	out, in := connected(control, zmq4.NewPush, "push"), connected(control, zmq4.NewPull, "pull")
	for number := 0; number < 3; number++ {
		check(out.Send(zmq4.NewMsgString(fmt.Sprint("parcel ", number))))
	}
	for number := 0; number < 3; number++ {
		message, err := in.Recv()
		check(err)
		fmt.Println(string(message.Bytes()))
	}
}
