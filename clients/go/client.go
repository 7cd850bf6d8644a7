// Package lightq is a client of the LightQ message broker. Messages are confirmed, stored once, and acknowledged.
//
// Goroutines may share every object. Each producer, consumer and reader has a connection of its own, which it makes again
// after an interruption. Heartbeats are sent while the program works.
package lightq

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"lightq/internal/control"
	"lightq/internal/fault"
)

// Client is a broker, and the credentials for it.
type Client struct {
	control   *control.Conn
	transport string
	name      string
	timeout   time.Duration
	heartbeat time.Duration
	closing   sync.Once
}

// Connect finds the broker and asks whether it is there. Without FromEnv, only the options count: nothing is looked up in the
// environment or in files. Errors: invalid_argument, io_error, unauthorized_access (keys), timeout.
func Connect(ctx context.Context, options ...Option) (*Client, error) {
	o := clientOptions{timeout: timeoutDefault}
	for _, each := range options {
		each(&o)
	}
	if len(o.name) > nameBytesMax || o.timeout <= 0 {
		return nil, fault.New("invalid_argument", "the name has %d bytes (at most %d), the timeout is %v", len(o.name), nameBytesMax, o.timeout)
	}
	if err := o.place.Discover(); err != nil {
		return nil, err
	}
	transport, err := o.place.Transport(o.transport)
	if err != nil {
		return nil, err
	}
	conn, err := control.NewConn(&o.place)
	if err != nil {
		return nil, err
	}
	q := &Client{control: conn, transport: transport, name: o.name, timeout: o.timeout, heartbeat: heartbeatTime}
	if _, err := q.Ping(ctx); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// URI returns the address of the control socket.
func (q *Client) URI() string { return q.control.Place.URI }

// Close ends the control connection. Producers, consumers and readers go on until they have to connect again. A second call
// does nothing.
func (q *Client) Close() { q.closing.Do(q.control.Close) }

// bounded returns a context with a deadline.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// join asks for the address of a session.
func (q *Client) join(ctx context.Context, topic, kind string) (control.Address, error) {
	reply, err := q.control.Ask(ctx, "join", map[string]any{"topic": topic, "type": kind, "connection_type": "socket",
		"delivery": "session", "transport": q.transport})
	if err != nil {
		return control.Address{}, err
	}
	return q.control.Place.AddressOf(reply)
}

// Producer opens a producer of a topic. Errors: not_found, unauthorized_access, timeout, and others of the broker.
func (q *Client) Producer(ctx context.Context, topic string, options ...ProducerOption) (*Producer, error) {
	var o producerOptions
	for _, each := range options {
		each(&o)
	}
	if err := checkName(topic, "the topic"); err != nil {
		return nil, err
	}
	if o.level > uint8(Flushed) {
		return nil, fault.New("invalid_argument", "the level is %d; it is TopicDefault, Received or Flushed", o.level)
	}
	ctx, cancel := bounded(ctx, q.timeout)
	defer cancel()
	return openProducer(ctx, q, topic, o)
}

// Consumer opens a consumer of a topic. Errors: not_found, unauthorized_access, timeout, and others of the broker.
func (q *Client) Consumer(ctx context.Context, topic string, options ...ConsumerOption) (*Consumer, error) {
	o, err := consumerOptionsOf(topic, options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx, q.timeout)
	defer cancel()
	return openConsumer(ctx, q, topic, o)
}

// Reader opens a reader of a topic, which reads by offset. Errors: not_found, unauthorized_access, timeout, and others of the
// broker.
func (q *Client) Reader(ctx context.Context, topic string) (*Reader, error) {
	if err := checkName(topic, "the topic"); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx, q.timeout)
	defer cancel()
	return openReader(ctx, q, topic)
}

// Fields are members of a request: docs/protocol.md lists those of each command.
type Fields map[string]any

// Reply has the members of the broker's reply. Its numbers are of type json.Number.
type Reply map[string]any

// Int returns a number of the reply, or 0.
func (r Reply) Int(name string) int64 {
	number, _ := r[name].(json.Number)
	value, _ := number.Int64()
	return value
}

// Text returns a text of the reply, or an empty one.
func (r Reply) Text(name string) string {
	text, _ := r[name].(string)
	return text
}

// Decode stores the reply in a struct, as json.Unmarshal does.
func (r Reply) Decode(to any) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// Command sends any command of docs/protocol.md, with the client's credentials. Errors: the broker's, timeout, closed,
// io_error.
func (q *Client) Command(ctx context.Context, cmd string, fields Fields) (Reply, error) {
	ctx, cancel := bounded(ctx, q.timeout)
	defer cancel()
	reply, err := q.control.Ask(ctx, cmd, fields)
	return reply, err
}
