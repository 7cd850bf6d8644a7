package lightq

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"lightq/internal/wire"
)

// producingOf returns a producer with an open channel, which has sent 1,000 messages before.
func producingOf(options producerOptions) *producing {
	p := newProducing("t", options)
	p.attach(&link{})
	p.channel, p.isOpen, p.opens, p.isKnown, p.id, p.epoch = 1, true, 1, true, 77, 3
	p.opened.MessageBytesMax, p.opened.BatchBytesMax = 1<<20, 1<<20
	p.sequence, p.confirmed = 1000, 1000
	return p
}

func addTo(p *producing, body string) uint64 {
	return p.add(&wire.Record{Body: []byte(body)}, 4+len(body))
}

func produceOpened(p *producing, id, expected uint64) wire.Frame {
	body := make([]byte, 48)
	binary.LittleEndian.PutUint64(body, id)
	body[10] = 1
	binary.LittleEndian.PutUint32(body[12:], 1<<20)
	binary.LittleEndian.PutUint64(body[16:], 1<<20)
	binary.LittleEndian.PutUint64(body[24:], expected)
	return wire.Frame{Op: wire.ProduceOpened, Channel: 1, Request: p.request, Body: body}
}

func TestAForgottenIdentityNumbersNothingMore(t *testing.T) {
	p := producingOf(producerOptions{})
	var failed []fate
	p.onSettled = func(f fate) { failed = append(failed, f) }
	addTo(p, "sent")
	p.work(time.Now())
	later := addTo(p, "never sent")
	p.ended(wire.Failure{Code: "unknown_producer"})
	if p.isOpen {
		t.Error("the channel is still open")
	}
	p.work(time.Now()) // the writer runs before the connection ends
	p.detach(nil)
	p.attach(&link{})
	if err := p.handle(produceOpened(p, 88, 0), time.Now()); err != nil {
		t.Fatal(err)
	}
	p.work(time.Now())
	if len(p.flight) != 1 || p.flight[0].first != later || p.flight[0].sequence != 0 {
		t.Errorf("%+v", p.flight)
	}
	if len(failed) != 1 || failed[0].begin != 0 || failed[0].err == nil {
		t.Error(failed)
	}
}

func TestAnotherIdentityRenumbersWhatWaits(t *testing.T) {
	p := producingOf(producerOptions{})
	addTo(p, "sent under the old identity")
	p.work(time.Now())
	p.detach(nil)
	p.attach(&link{})
	if err := p.handle(produceOpened(p, 88, 5), time.Now()); err != nil {
		t.Fatal(err)
	}
	p.work(time.Now())
	if len(p.flight) != 1 || p.flight[0].sequence != 5 {
		t.Errorf("%+v", p.flight)
	}
}

func TestAForgottenFailureIsNoSuccess(t *testing.T) {
	p := producingOf(producerOptions{})
	refused := errors.New("refused")
	for i := 0; i <= failuresMax; i++ {
		addTo(p, "x")
		p.closeBatch()
		given := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.settle(given, refused)
	}
	out := &Producer{core: p, driver: &driver{core: p}, timeout: time.Second}
	is(t, Confirm{out, 0}.Wait(limited(t)), ErrInDoubt)
	is(t, Confirm{out, 1}.Wait(limited(t)), refused)
	is(t, Confirm{out, failuresMax}.Wait(limited(t)), refused)
}

func TestAnEmptyConfirmIsNotDone(t *testing.T) {
	if (Confirm{}).Done() {
		t.Error("done")
	}
}
