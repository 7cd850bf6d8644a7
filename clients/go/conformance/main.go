// Command conformance is this client's agent for the conformance kit (clients/conformance/README.md).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"lightq"
)

var features = []string{"control", "keys", "delayed", "ttl", "leases", "dead", "seek", "read", "tls", "ipc", "epoch"}

// command is a line of the driver.
type command struct {
	ID           int         `json:"id"`
	Do           string      `json:"do"`
	On           string      `json:"on"`
	As           string      `json:"as"`
	URI          string      `json:"uri"`
	User         string      `json:"user"`
	Password     string      `json:"password"`
	Transport    string      `json:"transport"`
	ServerKey    string      `json:"server_key"`
	Admin        bool        `json:"admin"`
	Topic        string      `json:"topic"`
	BrokerType   string      `json:"broker_type"`
	TimeoutMS    *int        `json:"timeout_ms"`
	Level        string      `json:"level"`
	Delayed      bool        `json:"delayed"`
	RetryRefused *bool       `json:"retry_refused"`
	ProducerID   uint64      `json:"producer_id"`
	Epoch        uint16      `json:"epoch"`
	File         string      `json:"file"`
	Sizes        []int       `json:"sizes"`
	Size         int         `json:"size"`
	Count        int         `json:"count"`
	Keys         []string    `json:"keys"`
	Headers      [][2]string `json:"headers"`
	DelayMS      int         `json:"delay_ms"`
	TTLMS        int         `json:"ttl_ms"`
	Group        string      `json:"group"`
	Own          bool        `json:"own"`
	From         any         `json:"from"`
	To           any         `json:"to"`
	Prefetch     int         `json:"prefetch"`
	AckTimeoutMS int         `json:"ack_timeout_ms"`
	Into         string      `json:"into"`
	Settle       string      `json:"settle"`
	How          string      `json:"how"`
	Reason       string      `json:"reason"`
	Offsets      []uint64    `json:"offsets"`
	Begin        uint64      `json:"begin"`
	End          uint64      `json:"end"`
}

func (c *command) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), c.time())
}

func (c *command) time() time.Duration {
	if c.TimeoutMS == nil {
		return 10 * time.Second
	}
	return time.Duration(*c.TimeoutMS) * time.Millisecond
}

// line is a line of the agent.
type line map[string]any

// writeLine writes a line at once: the driver may end the agent at any time after it.
func writeLine(l line) {
	data, err := json.Marshal(l)
	if err == nil {
		_, err = os.Stdout.Write(append(data, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func codeOf(err error) string {
	var known *lightq.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return "internal"
}

// doer does commands on an object.
type doer interface {
	do(c *command) (line, error)
}

type agent struct {
	client  *lightq.Client
	objects map[string]doer
}

func (a *agent) do(c *command) (line, error) {
	ctx, cancel := c.context()
	defer cancel()
	switch c.Do {
	case "connect":
		return nil, a.connect(ctx, c)
	case "create_topic":
		_, err := a.client.CreateTopic(ctx, c.Topic, c.BrokerType, nil)
		return nil, err
	case "delete_topic":
		_, err := a.client.DeleteTopic(ctx, c.Topic)
		return nil, err
	case "stats":
		reply, err := a.client.Stats(ctx, c.Topic)
		return line{"messages_received": reply.Int("messages_received")}, err
	case "produce_open":
		made, err := openProducer(ctx, a.client, c)
		if err != nil {
			return nil, err
		}
		a.objects[c.As] = made
		id, epoch := made.producer.Identity()
		return line{"producer_id": id, "epoch": epoch}, nil
	case "consume_open":
		made, err := openConsumer(ctx, a.client, c)
		if err == nil {
			a.objects[c.As] = made
		}
		return nil, err
	case "read":
		return a.read(ctx, c)
	}
	return nil, fmt.Errorf("unknown command %q", c.Do)
}

func (a *agent) connect(ctx context.Context, c *command) (err error) {
	options := []lightq.Option{lightq.URI(c.URI), lightq.Transport(c.Transport), lightq.ServerKey(c.ServerKey)}
	if c.Admin {
		options = append(options, lightq.Admin(c.User, c.Password))
	} else {
		options = append(options, lightq.User(c.User, c.Password))
	}
	a.client, err = lightq.Connect(ctx, options...)
	return err
}

func (a *agent) read(ctx context.Context, c *command) (line, error) {
	reader, err := a.client.Reader(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	defer reader.Close(ctx)
	messages, next, err := reader.Read(ctx, c.Begin, c.End)
	if err != nil {
		return nil, err
	}
	into, err := openInto(c)
	if err != nil {
		return nil, err
	}
	defer into.Close()
	for _, each := range messages {
		into.Write(each.Body)
	}
	writeLine(line{"messages": described(messages)})
	return line{"next": next}, nil
}

// run does one command and returns its reply.
func (a *agent) run(c *command) line {
	var on doer = a
	if c.On != "" {
		on = a.objects[c.On]
	}
	done, err := on.do(c)
	reply := line{"id": c.ID, "ok": err == nil}
	if err != nil {
		reply["error"], reply["text"] = codeOf(err), err.Error()
	}
	for name, value := range done {
		reply[name] = value
	}
	return reply
}

func main() {
	writeLine(line{"client": "Go", "version": lightq.Version, "features": features})
	a := &agent{objects: map[string]doer{}}
	for lines := bufio.NewReaderSize(os.Stdin, 1<<16); ; {
		text, err := lines.ReadBytes('\n')
		var c command
		if err != nil || json.Unmarshal(text, &c) != nil || c.Do == "exit" {
			return
		}
		writeLine(a.run(&c))
	}
}
