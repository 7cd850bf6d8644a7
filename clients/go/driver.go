package lightq

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"math/rand"
	"net"
	"sync"
	"time"

	"lightq/internal/control"
	"lightq/internal/fault"
	"lightq/internal/wire"
)

const (
	attemptTime   = 5 * time.Second // for a join, and for opening the channel
	heartbeatTime = 5 * time.Second
	farewellTime  = time.Second
	pauseLeast    = 50 * time.Millisecond
	pauseMost     = 2 * time.Second
	readerBytes   = 1 << 18
)

// core is the part of a producer, consumer or reader that knows the protocol, without input and output. The driver's lock
// guards it.
type core interface {
	state() *base
	attach(l *link)                               // the welcome has arrived
	detach(err error)                             // the connection has ended
	handle(frame wire.Frame, now time.Time) error // an error ends the connection
	work(now time.Time)                           // sends the due frames
	nextTimer() time.Time                         // when work has something to do although nothing arrives; or no time
}

// base is the part that all cores have.
type base struct {
	topic, joinType string
	codecs          uint32
	link            *link // nil: not connected
	channel         uint32
	isOpen          bool
	opens           int
	failure         error // ends the object for good
}

func (b *base) state() *base { return b }

func (b *base) fail(err error) error {
	if b.failure == nil {
		b.failure = err
	}
	return b.failure
}

func (b *base) detached() { b.link, b.channel, b.isOpen = nil, 0, false }

// signal wakes goroutines that wait for a change. A lock guards it.
type signal struct{ c chan struct{} }

func (s *signal) wait() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) broadcast() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

type joinFunc func(ctx context.Context, topic, kind string) (control.Address, error)

// driver owns the connection of a core. A goroutine connects, reads, and connects again after an interruption; another one
// writes and sends heartbeats.
type driver struct {
	mu      sync.Mutex
	core    core
	changed signal
	closed  bool
	lastErr error

	join      joinFunc
	name      string
	heartbeat time.Duration // how often this client wants a frame
	kicks     chan struct{}
	kicked    bool // the writer knows that there is something to do
	conn      net.Conn
	ctx       context.Context
	cancel    context.CancelFunc
	done      chan struct{} // closed when the goroutines have ended
	onWrite   func()        // called with the lock after each write
}

func newDriver(c core, q *Client) *driver {
	d := &driver{core: c, join: q.join, name: q.name, heartbeat: q.heartbeat, kicks: make(chan struct{}, 1), done: make(chan struct{}), onWrite: func() {}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// run connects again and again, until the driver is closed or the core has failed for good.
func (d *driver) run() {
	defer close(d.done)
	pause := pauseLeast
	for {
		opens := d.core.state().opens
		err := d.session()
		d.mu.Lock()
		d.lastErr, d.conn = err, nil
		d.core.detach(err)
		d.changed.broadcast()
		state := d.core.state()
		if state.opens > opens {
			pause = pauseLeast
		}
		ended := state.failure != nil || d.closed
		d.mu.Unlock()
		if ended {
			return
		}
		wait := time.NewTimer(pause - time.Duration(rand.Int63n(int64(pause)/2)))
		select {
		case <-wait.C:
		case <-d.ctx.Done():
			wait.Stop()
		}
		if pause *= 2; pause > pauseMost {
			pause = pauseMost
		}
	}
}

// session joins, connects, and serves the connection until its end. It returns the reason.
func (d *driver) session() error {
	ctx, cancel := context.WithTimeout(d.ctx, attemptTime)
	defer cancel()
	address, err := d.join(ctx, d.core.state().topic, d.core.state().joinType)
	if err != nil {
		if control.IsFinalJoin(err) {
			d.mu.Lock()
			d.core.state().fail(err)
			d.mu.Unlock()
		}
		return err
	}
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	d.mu.Lock()
	d.conn = conn
	isClosed := d.closed
	d.mu.Unlock()
	if isClosed {
		return fault.New("closed", "the object was closed")
	}
	conn.SetDeadline(time.Now().Add(attemptTime))
	pulse := &pulse{conn: conn, silence: 2 * d.heartbeat}
	reader := bufio.NewReaderSize(pulse, readerBytes)
	l, err := d.greet(conn, reader, address.Ticket)
	if err != nil {
		return asLost(err)
	}
	conn.SetDeadline(time.Time{})
	pulse.alive()
	d.mu.Lock()
	d.core.attach(l)
	d.changed.broadcast()
	d.mu.Unlock()
	return d.serve(conn, l, pulse, reader)
}

// dial connects to the address of a join. Nothing is sent to a side with another certificate than the join named.
func dial(ctx context.Context, address control.Address) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, address.Network, address.Host)
	if err != nil {
		return nil, fault.Lost(err, "no connection")
	}
	if address.CertificateSHA256 == "" {
		return conn, nil
	}
	secure := tls.Client(conn, &tls.Config{
		MinVersion:             tls.VersionTLS13,
		InsecureSkipVerify:     true, // names and authorities do not matter: the SHA-256 below says it all
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("the other side has no certificate")
			}
			shown := sha256.Sum256(state.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(shown[:])), []byte(address.CertificateSHA256)) != 1 {
				return errors.New("the certificate is not the one that the join named: it is not the broker")
			}
			return nil
		}})
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fault.Lost(err, "no TLS connection to %s", address.Host)
	}
	return secure, nil
}

// greet sends hello and waits for the answer.
func (d *driver) greet(conn net.Conn, reader *bufio.Reader, ticket string) (*link, error) {
	l := &link{sentAt: time.Now()}
	hello := wire.EncodeHello(l.request(), wire.FrameBytesMax, uint32(d.heartbeat.Milliseconds()), d.core.state().codecs, d.name, ticket)
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	frame, err := wire.ReadFrame(reader, wire.FrameBytesMax)
	if err != nil {
		return nil, err
	}
	switch frame.Op {
	case wire.Welcome:
		welcome, err := wire.DecodeWelcome(frame.Body)
		l.heartbeat = time.Duration(welcome.HeartbeatMS) * time.Millisecond
		return l, err
	case wire.Error, wire.Goodbye:
		return nil, failureOf(frame)
	}
	return nil, fault.Violation("the broker answered hello with op %d", frame.Op)
}

// failureOf returns the error of an error or a goodbye.
func failureOf(frame wire.Frame) error {
	failure, err := wire.DecodeFailure(frame.Body)
	switch {
	case err != nil:
		return err
	case failure.Code == "ok":
		return fault.Lost(nil, "the broker ended the session")
	}
	return fault.New(failure.Code, "%s", failure.Text)
}

func asLost(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	return fault.Lost(err, "the connection ended")
}

// serve reads frames until the connection ends, while another goroutine writes.
func (d *driver) serve(conn net.Conn, l *link, pulse *pulse, reader *bufio.Reader) error {
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- d.write(conn, l, stop) }()
	err := d.read(pulse, reader)
	close(stop)
	conn.Close()
	if writeErr := <-stopped; writeErr != nil {
		var known *fault.Error
		if !errors.As(err, &known) || errors.Is(err, net.ErrClosed) {
			return asLost(writeErr)
		}
	}
	return asLost(err)
}

func (d *driver) read(pulse *pulse, reader *bufio.Reader) error {
	for {
		frame, err := wire.ReadFrame(reader, wire.FrameBytesMax)
		if err != nil {
			return err
		}
		pulse.alive()
		switch frame.Op {
		case wire.Heartbeat:
			continue
		case wire.Goodbye:
			return failureOf(frame)
		}
		d.mu.Lock()
		err = d.core.handle(frame, time.Now())
		d.changed.broadcast()
		d.kick()
		d.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// write sends the frames of the core and the link, until it is stopped. It closes the connection if that fails.
func (d *driver) write(conn net.Conn, l *link, stop <-chan struct{}) error {
	openBy := time.Now().Add(attemptTime)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		d.mu.Lock()
		now := time.Now()
		d.kicked = false
		state := d.core.state()
		if !state.isOpen && now.After(openBy) {
			d.mu.Unlock()
			conn.Close()
			return fault.Lost(nil, "the broker did not open the topic within %v", attemptTime)
		}
		d.core.work(now)
		l.beat(now)
		out, until := l.out, l.queued
		l.out = nil
		next := earliest(d.core.nextTimer(), l.nextBeat())
		if !state.isOpen {
			next = earliest(next, openBy)
		}
		d.mu.Unlock()
		if len(out) > 0 {
			if _, err := out.WriteTo(conn); err != nil {
				conn.Close()
				return err
			}
			d.mu.Lock()
			l.written, l.sentAt = until, time.Now()
			d.onWrite()
			d.changed.broadcast()
			d.mu.Unlock()
			continue
		}
		if !pauseFor(next, timer, d.kicks, stop) {
			return nil
		}
	}
}

// pauseFor waits for a kick or a time. It returns false when stopped.
func pauseFor(next time.Time, timer *time.Timer, kicks, stop <-chan struct{}) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		if !timer.Stop() {
			select {
			case <-timer.C:
			default:
			}
		}
		timer.Reset(time.Until(next) + time.Millisecond)
		due = timer.C
	}
	select {
	case <-kicks:
	case <-due:
	case <-stop:
		return false
	}
	return true
}

// earliest returns the earlier one; no time counts as never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// kick lets the writer look for work. Requires: the lock.
func (d *driver) kick() {
	if !d.kicked {
		d.kicked = true
		select {
		case d.kicks <- struct{}{}:
		default:
		}
	}
}

// check returns the reason why the object cannot be used any more. Requires: the lock.
func (d *driver) check() error {
	if d.closed {
		return fault.New("closed", "the object is closed")
	}
	return d.core.state().failure
}

// await waits, with the lock released, until the condition holds. Errors: the final failure, closed, timeout, cancelled.
// Requires: the lock.
func (d *driver) await(ctx context.Context, call string, isDone func() bool) error {
	for !isDone() {
		if err := d.check(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			var last error
			if !d.core.state().isOpen {
				last = d.lastErr
			}
			return fault.Ended(ctx, last, "%s %s", call, d.core.state().topic)
		}
		changed := d.changed.wait()
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		d.mu.Lock()
	}
	return nil
}

// open starts the goroutines, and waits until the channel is open. After an error the driver has ended.
func (d *driver) open(ctx context.Context, what string) error {
	go d.run()
	d.mu.Lock()
	err := d.await(ctx, "opening a "+what+" of", func() bool { return d.core.state().isOpen })
	d.mu.Unlock()
	if err != nil {
		d.abandon()
	}
	return err
}

// farewell says goodbye, and waits for the answer. Requires: the lock.
func (d *driver) farewell(ctx context.Context) {
	state := d.core.state()
	if state.link == nil {
		return
	}
	state.link.send(wire.EncodeGoodbye())
	d.kick()
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	ended := state.link
	d.await(ctx, "closing", func() bool { return state.link != ended }) // the connection ends in any case
}

// abandon ends the connection, and waits for the goroutines. It may be called again.
func (d *driver) abandon() {
	d.mu.Lock()
	d.closed = true
	if d.conn != nil {
		d.conn.Close()
	}
	d.changed.broadcast()
	d.mu.Unlock()
	d.cancel()
	<-d.done
}
