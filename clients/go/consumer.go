package lightq

import (
	"context"
	"runtime"
	"time"

	"lightq/internal/fault"
)

// Consumer receives a topic's messages, as a member of a group or with a cursor of its own.
type Consumer struct {
	core    *consuming
	driver  *driver
	timeout time.Duration
	message *Message // of Next
	err     error
	isOver  bool // Close was called; the driver's lock guards it
}

func openConsumer(ctx context.Context, q *Client, topic string, options consumerOptions) (*Consumer, error) {
	core, err := newConsuming(topic, options)
	if err != nil {
		return nil, err
	}
	d := newDriver(core, q)
	if err := d.open(ctx, "consumer"); err != nil {
		return nil, err
	}
	c := &Consumer{core: core, driver: d, timeout: q.timeout}
	runtime.SetFinalizer(c, func(c *Consumer) { go c.driver.abandon() })
	return c, nil
}

// Topic returns the name of the topic.
func (c *Consumer) Topic() string { return c.core.topic }

// Late returns how many messages were settled too late: the broker had already taken them back.
func (c *Consumer) Late() uint64 {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	return c.core.late
}

// Lost returns how many messages were dropped or damaged before they could be delivered.
func (c *Consumer) Lost() uint64 {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	return c.core.lost
}

// Next waits for the next message, which Message then returns. It returns false when the context has ended, when the
// consumer is closed, and after the final failure, which Err then returns. For one goroutine; others use Receive.
func (c *Consumer) Next(ctx context.Context) bool {
	c.message, c.err = c.receive(ctx, ctx)
	if c.err != nil && ctx.Err() != nil {
		c.err = nil
	}
	return c.message != nil
}

// Message returns the message of the last call of Next.
func (c *Consumer) Message() *Message { return c.message }

// Err returns the reason why Next returned false: nil if its context has ended.
func (c *Consumer) Err() error { return c.err }

// Receive waits for the next message. The message's own context does not end with the one that is given here. Errors:
// timeout, cancelled, closed, the final failure.
func (c *Consumer) Receive(ctx context.Context) (*Message, error) {
	return c.receive(ctx, context.Background())
}

func (c *Consumer) receive(ctx, parent context.Context) (*Message, error) {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	now := time.Now()
	c.core.asked(now)
	m, err := (*Message)(nil), error(nil)
	if !c.isOver && c.driver.check() == nil && ctx.Err() == nil {
		m, _ = c.core.take(now)
	}
	if m == nil {
		m, err = c.wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	m.consumer, m.parent = c, parent
	if c.core.credit.isDue() {
		c.driver.kick()
	}
	return m, nil
}

// wait waits for a message. Requires: the lock.
func (c *Consumer) wait(ctx context.Context) (m *Message, err error) {
	err = c.driver.await(ctx, "receiving from", func() bool {
		if c.isOver || c.driver.check() != nil || ctx.Err() != nil {
			return c.isOver
		}
		if m, _ = c.core.take(time.Now()); m == nil {
			c.core.flush()
			c.driver.kick()
		}
		return m != nil
	})
	if m == nil && err == nil {
		err = fault.New("closed", "the consumer is closed")
	}
	return m, err
}

// Handle calls the function for each message, until the context ends (it returns nil), or the consumer fails for good. It
// acknowledges a message for which the function returns nil, and rejects one for which it returns an error, for another
// attempt; unless the function has settled the message. If the end of the context has interrupted the work on a message, it is
// released. If the function panics, the message is rejected and the panic goes on. Goroutines may call it at the same time.
func (c *Consumer) Handle(ctx context.Context, work func(ctx context.Context, m *Message) error) error {
	for {
		m, err := c.receive(ctx, ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		c.handle(ctx, m, work)
	}
}

func (c *Consumer) handle(ctx context.Context, m *Message, work func(ctx context.Context, m *Message) error) {
	isDone := false
	defer func() {
		if !isDone { // a panic
			m.Retry(0)
		}
	}()
	err := work(m.Context(), m)
	isDone = true
	switch { // a revoked message, or a closed consumer, shows in the next call
	case err == nil:
		m.Ack()
	case ctx.Err() != nil:
		m.Release()
	default:
		m.Retry(0)
	}
}

func (c *Consumer) contextOf(m *Message) context.Context {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	if m.ctx == nil {
		parent := m.parent
		if parent == nil {
			parent = context.Background()
		}
		m.ctx, m.cancel = context.WithCancel(parent)
		if m.settled || m.revoked {
			m.cancel()
		}
	}
	return m.ctx
}

func (c *Consumer) settle(m *Message, s settlement) error {
	ms, err := milliseconds(s.delay, "delay")
	if err != nil {
		return err
	}
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	if m.settled {
		return nil
	}
	if c.isOver {
		return fault.New("closed", "the consumer is closed")
	}
	if err := c.driver.check(); err != nil {
		return err
	}
	if !c.core.settle(m, s, ms) {
		return fault.New("revoked", "the message at offset %d", m.Offset)
	}
	if s.how != ack || c.core.ackCount == 1 || c.core.ackCount >= gatherMax || c.core.credit.isDue() {
		c.driver.kick()
	}
	return nil
}

// Flush sends everything that was settled. Errors: timeout, cancelled, closed, io_error (there is no connection: the messages
// are delivered again), the final failure.
func (c *Consumer) Flush(ctx context.Context) error {
	ctx, cancel := bounded(ctx, c.timeout)
	defer cancel()
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	if err := c.driver.check(); err != nil {
		return err
	}
	l := c.core.link
	if l == nil {
		return acksLost()
	}
	c.core.flush()
	c.driver.kick()
	until := l.queued
	if err := c.driver.await(ctx, "flushing", func() bool { return l.written >= until || c.core.link != l }); err != nil {
		return err
	}
	if l.written < until {
		return acksLost()
	}
	return nil
}

func acksLost() error {
	return fault.Lost(nil, "there is no connection: the messages are delivered again")
}

// Seek moves the group, or the own cursor. It returns the new offset. Messages that were received before are revoked.
// Errors: timeout, cancelled, closed, the broker's.
func (c *Consumer) Seek(ctx context.Context, to Position) (uint64, error) {
	if to.kind == 0 {
		return 0, fault.New("invalid_argument", "the position is empty; use First, Next, Last, At or Since")
	}
	ctx, cancel := bounded(ctx, c.timeout)
	defer cancel()
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	if err := c.driver.await(ctx, "seeking", func() bool { return c.core.isOpen }); err != nil {
		return 0, err
	}
	if err := c.driver.check(); err != nil {
		return 0, err
	}
	return c.answerTo(ctx, c.core.seek(to), "seeking")
}

// answerTo waits for the answer to a request.
func (c *Consumer) answerTo(ctx context.Context, request uint32, what string) (uint64, error) {
	c.driver.kick()
	err := c.driver.await(ctx, what, func() bool {
		_, has := c.core.answers[request]
		return has
	})
	if err != nil {
		c.core.forget(request)
		return 0, err
	}
	got := c.core.answers[request]
	delete(c.core.answers, request)
	return got.value, got.err
}

// Pause asks for no more messages until Resume. Those under way still arrive.
func (c *Consumer) Pause() { c.setPaused(true) }

// Resume ends a Pause.
func (c *Consumer) Resume() { c.setPaused(false) }

func (c *Consumer) setPaused(isPaused bool) {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	c.core.isPaused = isPaused
	c.driver.kick()
}

// Close sends everything that was settled, waits until the broker has it, and ends the connection. Messages that were not
// settled are delivered again. Errors: timeout, cancelled, io_error, the final failure. A second call does nothing.
func (c *Consumer) Close(ctx context.Context) error {
	ctx, cancel := bounded(ctx, c.timeout)
	defer cancel()
	c.driver.mu.Lock()
	if c.isOver || c.driver.closed {
		c.driver.mu.Unlock()
		return nil
	}
	c.isOver = true
	c.driver.changed.broadcast() // goroutines that wait for a message
	err := c.core.failure
	if err == nil && c.core.isOpen {
		if _, err = c.answerTo(ctx, c.core.leave(), "closing"); err == nil {
			c.driver.farewell(ctx)
		}
	} else if err == nil && c.core.isAckLost {
		err = acksLost()
	}
	c.driver.mu.Unlock()
	runtime.SetFinalizer(c, nil)
	c.driver.abandon()
	return err
}
