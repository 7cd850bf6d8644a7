package lightq

import (
	"context"
	"runtime"
	"time"

	"lightq/internal/fault"
	"lightq/internal/wire"
)

// ReadBytesMax is the most bytes of messages that one Read returns, except for one longer message.
const ReadBytesMax = 64 << 20

// reading reads by offset, without input and output: docs/session.md, "read". One read at a time.
type reading struct {
	base
	begin, end uint64
	bytes      uint64
	messages   []*Message
	size       uint64 // bytes of the messages
	isWanted   bool   // a read was requested
	isDone     bool
	next       uint64
	err        error
	request    uint32 // 0: none on this connection
}

func (r *reading) attach(l *link) {
	r.link, r.isOpen, r.request = l, true, 0
	r.opens++
}

func (r *reading) detach(error) {
	r.detached()
	r.request = 0
}

func (r *reading) finish(next uint64, err error) {
	r.isWanted, r.isDone, r.next, r.err = false, true, next, err
}

func (r *reading) work(time.Time) {
	if !r.isOpen || !r.isWanted || r.request != 0 {
		return
	}
	begin, bytes := r.begin, r.bytes
	if count := len(r.messages); count > 0 { // an earlier connection has brought these
		begin = r.expected()
		for _, each := range r.messages {
			if bytes <= uint64(each.size) || begin >= r.end {
				r.finish(begin, nil)
				return
			}
			bytes -= uint64(each.size)
		}
	}
	r.request = r.link.request()
	r.link.send(wire.EncodeRead(r.request, r.topic, begin, r.end, bytes))
}

// expected returns the least offset that the next message may have.
func (r *reading) expected() uint64 {
	if count := len(r.messages); count > 0 {
		return r.messages[count-1].Offset + 1
	}
	return r.begin
}

// handleDeliver takes messages. Errors: a violation if they were not requested.
func (r *reading) handleDeliver(frame wire.Frame) error {
	all, first, err := messages(wire.DecodeDeliver(frame))
	if err != nil {
		return err
	}
	if first < r.expected() || first >= r.end || uint64(len(all)) > r.end-first {
		return fault.Violation("the broker delivered messages from offset %d to a read of [%d, %d)", first, r.begin, r.end)
	}
	for i := range all {
		if r.size >= r.bytes && len(r.messages) > 0 {
			return fault.Violation("the broker delivered more than %d bytes to a read", r.bytes)
		}
		r.messages = append(r.messages, &all[i])
		r.size += uint64(all[i].size)
	}
	return nil
}

func (r *reading) handle(frame wire.Frame, _ time.Time) error {
	isOwn := r.request != 0 && frame.Request == r.request && r.isWanted
	switch {
	case frame.Op == wire.Deliver && isOwn:
		return r.handleDeliver(frame)
	case frame.Op == wire.Done && isOwn:
		next := wire.DecodeDone(frame.Body)
		if next < r.expected() || next > r.end && next > r.begin {
			return fault.Violation("the broker ended a read of [%d, %d) at %d", r.begin, r.end, next)
		}
		r.finish(next, nil)
		return nil
	case frame.Op == wire.Error && isOwn:
		r.finish(0, failureOf(frame))
		return nil
	case frame.Op == wire.Error && frame.Request == 0:
		return failureOf(frame)
	case (frame.Op == wire.Deliver || frame.Op == wire.Done || frame.Op == wire.Error) && frame.Channel == 0:
		return nil // of a read that was given up
	}
	return fault.Violation("the broker sent op %d to a reader", frame.Op)
}

func (r *reading) nextTimer() time.Time { return time.Time{} }

// Reader reads messages by their offsets, and changes nothing in the topic. Goroutines take turns.
type Reader struct {
	core    *reading
	driver  *driver
	timeout time.Duration
	turn    chan struct{} // holds a token while no read is under way
}

func openReader(ctx context.Context, q *Client, topic string) (*Reader, error) {
	core := &reading{base: base{topic: topic, joinType: "pull", codecs: wire.KnowsExpired}}
	d := newDriver(core, q)
	if err := d.open(ctx, "reader"); err != nil {
		return nil, err
	}
	r := &Reader{core: core, driver: d, timeout: q.timeout, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	runtime.SetFinalizer(r, func(r *Reader) { go r.driver.abandon() })
	return r, nil
}

// Read returns the stored messages of [begin, end), of at most ReadBytesMax bytes but at least one message, and the offset at
// which to continue. Errors: timeout, cancelled, closed, the broker's.
func (r *Reader) Read(ctx context.Context, begin, end uint64) ([]*Message, uint64, error) {
	ctx, cancel := bounded(ctx, r.timeout)
	defer cancel()
	select {
	case <-r.turn:
	case <-ctx.Done():
		return nil, 0, fault.Ended(ctx, nil, "reading")
	}
	defer func() { r.turn <- struct{}{} }()
	r.driver.mu.Lock()
	defer r.driver.mu.Unlock()
	if err := r.driver.check(); err != nil {
		return nil, 0, err
	}
	core := r.core
	core.begin, core.end, core.bytes, core.messages, core.size, core.request = begin, end, ReadBytesMax, nil, 0, 0
	core.isWanted, core.isDone, core.err = true, false, nil
	r.driver.kick()
	err := r.driver.await(ctx, "reading", func() bool { return core.isDone })
	core.isWanted = false
	if err == nil {
		err = core.err
	}
	if err != nil {
		return nil, 0, err
	}
	return core.messages, core.next, nil
}

// Close ends the connection. A second call does nothing.
func (r *Reader) Close(context.Context) error {
	runtime.SetFinalizer(r, nil)
	r.driver.abandon()
	return nil
}
