package control

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"lightq/internal/fault"
)

const busyPause = 50 * time.Millisecond

// Conn is the connection to the control socket. It sends one request at a time, and connects again after a failure.
// Goroutines may share it.
type Conn struct {
	Place  *Place
	keys   *curveKeys
	turn   chan struct{} // holds a token while no request is under way
	closed chan struct{}
	conn   net.Conn
	zmtp   *zmtp
}

// NewConn makes a connection, which connects with its first request. Errors: invalid_argument.
func NewConn(place *Place) (*Conn, error) {
	keys, err := place.keys()
	if err != nil {
		return nil, err
	}
	made := &Conn{Place: place, keys: keys, turn: make(chan struct{}, 1), closed: make(chan struct{})}
	made.turn <- struct{}{}
	return made, nil
}

// Ask returns the reply to a command. It repeats a request that the broker answers busy. Errors: timeout, closed, io_error,
// the broker's.
func (c *Conn) Ask(ctx context.Context, cmd string, fields map[string]any) (map[string]any, error) {
	payload, err := c.Place.request(cmd, fields)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.closed:
		return nil, fault.New("closed", "this client is closed")
	case <-ctx.Done():
		return nil, fault.Ended(ctx, nil, "%s", cmd)
	case <-c.turn:
	}
	defer func() { c.turn <- struct{}{} }()
	for {
		data, err := c.exchange(ctx, payload, onlyReads[cmd])
		if err != nil {
			return nil, c.reason(ctx, cmd, err)
		}
		reply, err := replyOf(data)
		if err == nil || fault.CodeOf(err) != "busy" {
			return reply, err
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return nil, fault.Ended(ctx, err, "%s", cmd)
		}
	}
}

// reason returns the error of a failed request for the program.
func (c *Conn) reason(ctx context.Context, cmd string, err error) error {
	var known *fault.Error
	select {
	case <-c.closed:
		return fault.New("closed", "this client is closed")
	default:
	}
	switch {
	case ctx.Err() != nil:
		return fault.Ended(ctx, nil, "%s: the broker at %s did not reply in time", cmd, c.Place.URI)
	case errors.As(err, &known):
		return known
	}
	return fault.Lost(err, "no connection to the broker at %s", c.Place.URI)
}

// exchange sends a request. Once more over a new connection, if an old one has ended in the meantime; but not if the broker may
// have executed it and it changes something.
func (c *Conn) exchange(ctx context.Context, payload []byte, isHarmless bool) ([]byte, error) {
	select {
	case <-c.closed:
		return nil, net.ErrClosed
	default:
	}
	isOld := c.conn != nil
	reply, err := c.attempt(ctx, payload)
	if err == nil {
		return reply, nil
	}
	isHarmless = isHarmless || c.zmtp == nil || !c.zmtp.isWritten
	c.disconnect() // a reply that comes later must not answer another request
	var known *fault.Error
	if isOld && isHarmless && ctx.Err() == nil && !errors.As(err, &known) {
		return c.exchange(ctx, payload, isHarmless)
	}
	return nil, err
}

func (c *Conn) attempt(ctx context.Context, payload []byte) ([]byte, error) {
	if c.conn == nil {
		if err := c.Place.CheckExposure(c.Place.URI); err != nil {
			return nil, err
		}
		network, host := "unix", strings.TrimPrefix(c.Place.URI, "ipc://")
		if strings.HasPrefix(c.Place.URI, "tcp://") {
			network, host = "tcp", strings.TrimPrefix(c.Place.URI, "tcp://")
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
		if err != nil {
			return nil, err
		}
		c.conn, c.zmtp = conn, nil
	}
	defer c.interruptible(ctx)()
	if c.zmtp == nil {
		opened, err := openZMTP(struct {
			io.Reader
			io.Writer
		}{bufio.NewReader(c.conn), c.conn}, c.keys)
		if err != nil {
			return nil, err
		}
		c.zmtp = opened
	}
	return c.zmtp.ask(payload)
}

// interruptible ends the connection when the context ends or the client is closed, until the function that it returns is
// called.
func (c *Conn) interruptible(ctx context.Context) (stop func()) {
	conn, done, ended := c.conn, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			conn.Close()
		case <-c.closed:
			conn.Close()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func (c *Conn) disconnect() {
	if c.conn != nil {
		c.conn.Close()
	}
	c.conn, c.zmtp = nil, nil
}

// Close ends the connection, and the request that is under way. Requires: it is called once.
func (c *Conn) Close() {
	close(c.closed)
	<-c.turn
	c.disconnect()
	c.turn <- struct{}{}
}
