package lightq

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"lightq/internal/fault"
)

// Producer sends messages to a topic. Each is stored once, in order, also over broken connections.
type Producer struct {
	core    *producing
	driver  *driver
	fates   *fates
	timeout time.Duration
	isOver  bool // Close was called; the driver's lock guards it
}

// fates collects the fates of messages. The driver's lock guards it, except where it is said otherwise.
type fates struct {
	failure  error
	unstored uint64
	queue    []Settled
	changed  *sync.Cond
	isOver   bool
	call     func(Settled)
	panicked error // of the callback
}

func (f *fates) settled(each fate) {
	if each.err != nil {
		f.failure, f.unstored = each.err, f.unstored+each.end-each.begin
	}
	if f.call != nil {
		f.queue = append(f.queue, Settled{each.begin, each.end, each.err})
		f.changed.Signal()
	}
}

// run calls back until everything is over. Requires: no lock.
func (f *fates) run() {
	f.changed.L.Lock()
	defer f.changed.L.Unlock()
	for {
		for len(f.queue) == 0 {
			if f.isOver {
				return
			}
			f.changed.Wait()
		}
		queue := f.queue
		f.queue = nil
		f.changed.L.Unlock()
		failure := f.callAll(queue)
		f.changed.L.Lock()
		if f.panicked == nil {
			f.panicked = failure
		}
	}
}

func (f *fates) callAll(queue []Settled) (failure error) {
	for _, each := range queue {
		func() {
			defer func() {
				if reason := recover(); reason != nil {
					failure = fault.New("internal", "the function of OnSettled panicked: %v", reason)
				}
			}()
			f.call(each)
		}()
	}
	return failure
}

// take returns the panic of a callback, or the reason why messages were not stored; each once.
func (f *fates) take() error {
	panicked, failure, unstored := f.panicked, f.failure, f.unstored
	f.panicked, f.failure, f.unstored = nil, nil, 0
	switch {
	case panicked != nil:
		return panicked
	case failure != nil:
		return fmt.Errorf("%d messages were not confirmed: %w", unstored, failure)
	}
	return nil
}

func openProducer(ctx context.Context, q *Client, topic string, options producerOptions) (*Producer, error) {
	core := newProducing(topic, options)
	d := newDriver(core, q)
	f := &fates{call: options.onSettled, changed: sync.NewCond(&d.mu)}
	core.onSettled, d.onWrite = f.settled, core.wrote
	if err := d.open(ctx, "producer"); err != nil {
		return nil, err
	}
	if f.call != nil {
		go f.run()
	}
	p := &Producer{core: core, driver: d, fates: f, timeout: q.timeout}
	runtime.SetFinalizer(p, func(p *Producer) { go p.end(fault.New("closed", "the producer was garbage-collected")) })
	return p, nil
}

// Topic returns the name of the topic.
func (p *Producer) Topic() string { return p.core.topic }

// Identity returns the producer's id and epoch. The id is 0 while the broker has assigned none.
func (p *Producer) Identity() (id uint64, epoch uint16) {
	p.driver.mu.Lock()
	defer p.driver.mu.Unlock()
	return p.core.id, p.core.epoch
}

// Lost returns how many confirmed messages the broker lost later: by a power cut at level Received, or a restore.
func (p *Producer) Lost() uint64 {
	p.driver.mu.Lock()
	defer p.driver.mu.Unlock()
	return p.core.lost
}

// Confirm is the fate of a message that was sent.
type Confirm struct {
	producer *Producer
	number   uint64
}

// Number returns the number of the message, counted from 0.
func (c Confirm) Number() uint64 { return c.number }

// Send takes a message and returns at once. It waits only while 16 MiB are unconfirmed. After an error the message was not
// taken. Errors: invalid_argument, too_large, timeout, cancelled, closed, the final failure.
func (p *Producer) Send(ctx context.Context, m Msg) error {
	_, err := p.SendConfirm(ctx, m)
	return err
}

// SendConfirm sends as Send does, and returns a handle on the message's fate.
func (p *Producer) SendConfirm(ctx context.Context, m Msg) (Confirm, error) {
	record, err := m.record()
	if err != nil {
		return Confirm{}, err
	}
	size := record.SizeMax()
	p.driver.mu.Lock()
	defer p.driver.mu.Unlock()
	if ctx.Err() != nil {
		return Confirm{}, fault.Ended(ctx, nil, "sending to %s", p.core.topic)
	}
	if err := p.check(); err != nil {
		return Confirm{}, err
	}
	if err := p.core.check(&record, size-4); err != nil {
		return Confirm{}, err
	}
	if !p.core.hasRoom(size) {
		if err := p.driver.await(ctx, "sending to", func() bool { return p.isOver || p.core.hasRoom(size) }); err != nil {
			return Confirm{}, err
		}
		if err := p.check(); err != nil { // another goroutine may have closed it
			return Confirm{}, err
		}
	}
	number := p.core.add(&record, size)
	p.driver.kick()
	return Confirm{p, number}, nil
}

func (p *Producer) check() error {
	if p.isOver {
		return fault.New("closed", "the producer is closed")
	}
	return p.driver.check()
}

// SendSync sends a message and waits until it is stored. Errors: those of Send, and the reason why it is not stored. After
// timeout and cancelled it may be stored later.
func (p *Producer) SendSync(ctx context.Context, m Msg) error {
	ctx, cancel := bounded(ctx, p.timeout)
	defer cancel()
	confirm, err := p.SendConfirm(ctx, m)
	if err != nil {
		return err
	}
	return confirm.Wait(ctx)
}

// Wait waits until the message is stored. Errors: the reason why it is not stored, or in doubt; timeout, cancelled, closed.
func (c Confirm) Wait(ctx context.Context) error {
	p := c.producer
	if p == nil {
		return fault.New("invalid_argument", "the confirm is empty")
	}
	ctx, cancel := bounded(ctx, p.timeout)
	defer cancel()
	p.driver.mu.Lock()
	defer p.driver.mu.Unlock()
	if !p.core.isSettled(c.number) {
		p.core.flushing = true
		p.driver.kick()
		isDone := func() bool { return p.core.isSettled(c.number) }
		if err := p.driver.await(ctx, "confirming", isDone); err != nil {
			return err
		}
	}
	return p.core.fateOf(c.number)
}

// Done tells whether the message is settled. An empty confirm is not.
func (c Confirm) Done() bool {
	if c.producer == nil {
		return false
	}
	c.producer.driver.mu.Lock()
	defer c.producer.driver.mu.Unlock()
	return c.producer.core.isSettled(c.number)
}

// Flush waits until every message is stored. Errors: timeout, cancelled, closed; the reason of the last message since the
// last Flush that was not stored; the final failure.
func (p *Producer) Flush(ctx context.Context) error {
	ctx, cancel := bounded(ctx, p.timeout)
	defer cancel()
	p.driver.mu.Lock()
	defer p.driver.mu.Unlock()
	if err := p.check(); err != nil {
		return err
	}
	return p.flush(ctx)
}

func (p *Producer) flush(ctx context.Context) error {
	p.core.flushing = true
	p.driver.kick()
	until := p.core.next
	if err := p.driver.await(ctx, "flushing", func() bool { return p.core.settledBefore() >= until }); err != nil {
		return err
	}
	if err := p.fates.take(); err != nil {
		return err
	}
	return p.core.failure
}

// Close flushes and ends the connection. Messages that are not confirmed in time are in doubt. Errors: those of Flush. A
// second call does nothing.
func (p *Producer) Close(ctx context.Context) error {
	ctx, cancel := bounded(ctx, p.timeout)
	defer cancel()
	p.driver.mu.Lock()
	if p.isOver || p.driver.closed {
		p.driver.mu.Unlock()
		return nil
	}
	p.isOver = true
	p.driver.changed.broadcast() // goroutines that wait for room
	err := p.flush(ctx)
	if err == nil {
		p.driver.farewell(ctx)
	}
	p.driver.mu.Unlock()
	runtime.SetFinalizer(p, nil)
	p.end(fault.Ended(ctx, nil, "the producer was closed before the confirm came"))
	return err
}

// end ends the connection, and settles everything that is unconfirmed with an error.
func (p *Producer) end(reason error) {
	p.driver.abandon()
	p.driver.mu.Lock()
	defer p.driver.mu.Unlock()
	p.core.giveUp(reason)
	p.fates.isOver = true
	p.fates.changed.Broadcast()
	p.driver.changed.broadcast()
}
