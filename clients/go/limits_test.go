package lightq

import (
	"context"
	"testing"
	"time"

	"lightq/internal/wire"
)

// consumingOf returns a consumer with an open channel, without a connection.
func consumingOf(t *testing.T, prefetch, bytes int) (*Consumer, *link) {
	t.Helper()
	core, err := newConsuming("t", consumerOptions{start: First, prefetch: prefetch, prefetchBytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	l := &link{}
	core.attach(l)
	core.channel, core.isOpen, core.opens = 1, true, 1
	return &Consumer{core: core, driver: newDriver(core, &Client{}), timeout: time.Second}, l
}

func acknowledged(t *testing.T, c *Consumer) {
	t.Helper()
	m := &Message{Offset: 5, opens: 1, consumer: c}
	c.core.held[5] = m
	if err := m.Ack(); err != nil {
		t.Fatal(err)
	}
}

// deliver returns a frame with as many messages of 4 bytes.
func deliver(request uint32, first uint64, count int) wire.Frame {
	buffer := make([]byte, wire.BatchHeaderBytes)
	for i := 0; i < count; i++ {
		buffer = wire.AppendRecord(buffer, &wire.Record{Body: []byte("body")}, 0)
	}
	wire.PutBatchHeader(buffer, wire.Stamp{Count: uint32(count)})
	return wire.Frame{Op: wire.Deliver, Channel: 1, Request: request, Body: append(make([]byte, 16), rebased(buffer, first)...)}
}

func rebased(batch []byte, first uint64) []byte {
	for i := 0; i < 8; i++ {
		batch[16+i] = byte(first >> (8 * i))
	}
	crc := wire.CRC(batch[:60])
	for i := 0; i < 4; i++ {
		batch[60+i] = byte(crc >> (8 * i))
	}
	return batch
}

func TestFlushTellsOfLostAcknowledgements(t *testing.T) {
	c, _ := consumingOf(t, 0, 1<<20)
	acknowledged(t, c)
	go func() {
		time.Sleep(20 * time.Millisecond)
		c.driver.mu.Lock()
		defer c.driver.mu.Unlock()
		c.core.detach(nil)
		c.driver.changed.broadcast()
	}()
	is(t, c.Flush(context.Background()), ErrConnectionLost)
}

func TestCloseTellsOfLostAcknowledgements(t *testing.T) {
	for _, isQueued := range []bool{false, true} {
		c, _ := consumingOf(t, 0, 1<<20)
		acknowledged(t, c)
		if isQueued {
			c.core.flush()
		}
		c.core.detach(nil)
		close(c.driver.done)
		is(t, c.Close(context.Background()), ErrConnectionLost)
	}
	c, l := consumingOf(t, 0, 1<<20)
	acknowledged(t, c)
	c.core.flush()
	l.written = l.queued
	c.core.detach(nil)
	close(c.driver.done)
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestMoreMessagesThanRequestedAreAViolation(t *testing.T) {
	c, _ := consumingOf(t, 3, 1<<20)
	now := time.Now()
	if err := c.core.handle(deliver(0, 0, 3), now); err != nil {
		t.Error(err)
	}
	is(t, c.core.handle(deliver(0, 3, 1), now), ErrProtocol)
	c, _ = consumingOf(t, 10, 5)
	if err := c.core.handle(deliver(0, 0, 2), now); err != nil { // the second one may be longer than the rest
		t.Error(err)
	}
	is(t, c.core.handle(deliver(0, 2, 1), now), ErrProtocol)
}

func readingOf(begin, end, bytes uint64) *reading {
	r := &reading{base: base{topic: "t"}}
	r.attach(&link{})
	r.begin, r.end, r.bytes, r.isWanted = begin, end, bytes, true
	r.work(time.Now())
	return r
}

func TestMessagesThatWereNotReadAreAViolation(t *testing.T) {
	now := time.Now()
	r := readingOf(10, 20, 1<<20)
	for _, each := range []struct {
		first uint64
		count int
	}{{9, 1}, {20, 1}, {19, 2}, {1<<64 - 1, 1}} {
		is(t, r.handle(deliver(r.request, each.first, each.count), now), ErrProtocol)
	}
	if err := r.handle(deliver(r.request, 12, 2), now); err != nil {
		t.Error(err)
	}
	is(t, r.handle(deliver(r.request, 13, 1), now), ErrProtocol)
	done := func(next byte) error {
		return r.handle(wire.Frame{Op: wire.Done, Request: r.request, Body: []byte{next, 0, 0, 0, 0, 0, 0, 0}}, now)
	}
	is(t, done(13), ErrProtocol)
	is(t, done(21), ErrProtocol)
	if err := done(14); err != nil {
		t.Error(err)
	}
	r = readingOf(0, 20, 5)
	is(t, r.handle(deliver(r.request, 0, 3), now), ErrProtocol)
}

func TestTheAnswerToASeekThatNobodyWaitsForIsForgotten(t *testing.T) {
	c, _ := consumingOf(t, 0, 1<<20)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := c.Seek(ctx, First)
	is(t, err, ErrTimeout)
	request := c.core.link.lastRequest
	if err := c.core.handle(wire.Frame{Op: wire.Done, Channel: 1, Request: request, Body: make([]byte, 8)}, time.Now()); err != nil {
		t.Error(err)
	}
	if len(c.core.answers)+len(c.core.requests)+len(c.core.forgotten) != 1 { // the opening
		t.Error(c.core.answers, c.core.requests, c.core.forgotten)
	}
}
