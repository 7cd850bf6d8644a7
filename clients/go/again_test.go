package lightq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"lightq/internal/wire"
)

// Codes of docs/session.md, "Codes".
const (
	codeLimitReached    = 6
	codeCorrupt         = 8
	codeFenced          = 10
	codeUnknownProducer = 11
)

// scriptedBroker answers a producer without input and output. sent has the batches since the opening, as "sequence:bodies".
type scriptedBroker struct {
	t       *testing.T
	core    *producing
	link    *link
	sent    []string
	settled []string
	asked   string // the last opening: "id/epoch"
}

func newScriptedBroker(t *testing.T, options producerOptions) *scriptedBroker {
	b := &scriptedBroker{t: t, core: newProducing("t", options)}
	b.core.onSettled = func(f fate) { b.settled = append(b.settled, fmt.Sprintf("%d-%d %v", f.begin, f.end, codeOf(f.err))) }
	return b
}

func codeOf(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.Code
	}
	return "stored"
}

// frames takes the frames that the producer has sent.
func (b *scriptedBroker) frames() (found [][]byte) {
	var out []byte
	for _, each := range b.link.out {
		out = append(out, each...)
	}
	b.link.out = nil
	for len(out) > 0 {
		end := 20 + binary.LittleEndian.Uint32(out[12:])
		found, out = append(found, out[:end]), out[end:]
	}
	return found
}

func (b *scriptedBroker) connect() {
	if b.link != nil {
		b.core.detach(nil)
	}
	b.link = &link{}
	b.core.attach(b.link)
	for _, frame := range b.frames() {
		b.asked = fmt.Sprint(binary.LittleEndian.Uint64(frame[20:]), "/", binary.LittleEndian.Uint16(frame[28:]))
	}
}

// open connects again and lets the broker continue. It returns the error of the producer.
func (b *scriptedBroker) open(id, expected uint64, epoch uint16, level uint8) error {
	b.connect()
	b.sent = nil
	frame := produceOpened(b.core, id, expected)
	binary.LittleEndian.PutUint16(frame.Body[8:], epoch)
	frame.Body[10] = level
	return b.core.handle(frame, time.Now())
}

// refuseOpening connects again, and answers with a code.
func (b *scriptedBroker) refuseOpening(code uint16) error {
	b.connect()
	body := binary.LittleEndian.AppendUint16(nil, code)
	return b.core.handle(wire.Frame{Op: wire.Error, Request: b.core.request, Body: append(body, 0, 0)}, time.Now())
}

func (b *scriptedBroker) confirm(received, flushed uint64) {
	b.t.Helper()
	body := binary.LittleEndian.AppendUint64(nil, received)
	body = binary.LittleEndian.AppendUint64(body, flushed)
	body = binary.LittleEndian.AppendUint64(body, received)
	if err := b.core.handle(wire.Frame{Op: wire.Confirm, Channel: 1, Body: body}, time.Now()); err != nil {
		b.t.Fatal(err)
	}
}

// send sends bodies as one batch.
func (b *scriptedBroker) send(bodies ...string) {
	b.t.Helper()
	for _, body := range bodies {
		addTo(b.core, body)
	}
	b.core.flushing = true
	b.work(later())
}

func later() time.Time { return time.Now().Add(time.Hour) }

func (b *scriptedBroker) work(now time.Time) {
	b.t.Helper()
	b.core.work(now)
	for _, frame := range b.frames() {
		data := append([]byte{}, frame[20:]...)
		if id, epoch := binary.LittleEndian.Uint64(data[32:]), binary.LittleEndian.Uint16(data[48:]); id != b.core.id || epoch != b.core.epoch {
			b.t.Errorf("a batch of %d/%d, but the producer is %d/%d", id, epoch, b.core.id, b.core.epoch)
		}
		batch, err := wire.DecodeBatch(rebased(data, 0)) // as the log stamps it
		if err != nil {
			b.t.Fatal(err)
		}
		text := fmt.Sprint(binary.LittleEndian.Uint64(data[40:]), ":")
		for _, record := range batch.Records {
			text += string(record.Body)
		}
		b.sent = append(b.sent, text)
	}
	b.core.wrote()
}

func (b *scriptedBroker) hasSent(wanted ...string) {
	b.t.Helper()
	if fmt.Sprint(b.sent) != fmt.Sprint(wanted) {
		b.t.Errorf("sent %v instead of %v", b.sent, wanted)
	}
}

func (b *scriptedBroker) hasSettled(wanted ...string) {
	b.t.Helper()
	if fmt.Sprint(b.settled) != fmt.Sprint(wanted) {
		b.t.Errorf("settled %v instead of %v", b.settled, wanted)
	}
}

func opened(t *testing.T, options producerOptions, expected uint64) *scriptedBroker {
	t.Helper()
	b := newScriptedBroker(t, options)
	is(t, b.open(7, expected, 0, 1), nil)
	return b
}

func TestUnconfirmedBatchesAreSentAgainAsTheyWere(t *testing.T) {
	b := opened(t, producerOptions{}, 40)
	b.send("a", "b")
	b.send("c")
	b.confirm(42, 0)
	is(t, b.open(7, 42, 0, 1), nil)
	b.work(later())
	b.hasSent("42:c")
	if b.asked != "7/0" {
		t.Error(b.asked)
	}
	b.confirm(43, 0)
	b.hasSettled("0-2 stored", "2-3 stored")
}

// flushedWith returns a broker that confirms at level flushed, and a producer that has sent these batches.
func flushedWith(t *testing.T, bodies ...string) *scriptedBroker {
	t.Helper()
	b := newScriptedBroker(t, producerOptions{})
	is(t, b.open(7, 0, 0, 2), nil)
	for _, body := range bodies {
		b.send(body)
	}
	return b
}

func TestBatchesBeforeExpectedAreKeptUntilTheyAreConfirmed(t *testing.T) {
	b := flushedWith(t, "a", "b", "c") // at level flushed, a stored batch is not confirmed yet
	is(t, b.open(7, 2, 0, 2), nil)
	b.work(later())
	b.hasSent("2:c")
	b.hasSettled()
	b.confirm(2, 1)
	b.hasSettled("0-1 stored")
	is(t, b.open(7, 1, 0, 2), nil) // a crash of the broker has lost the batches that were not flushed
	b.work(later())
	b.hasSent("1:b", "2:c")
	if b.core.lost != 0 {
		t.Error(b.core.lost)
	}
	b.confirm(3, 3)
	b.hasSettled("0-1 stored", "1-2 stored", "2-3 stored")
}

func TestAConfirmMayFollowTheOpeningWithoutABatch(t *testing.T) {
	b := flushedWith(t, "a", "b")
	is(t, b.open(7, 2, 0, 2), nil)
	b.confirm(2, 2)
	b.work(later())
	b.hasSent()
	b.hasSettled("0-1 stored", "1-2 stored")
	is(t, b.open(7, 2, 0, 2), nil)
	b.confirm(2, 2)
	b.send("c")
	b.hasSent("2:c")
}

func TestWhatIsReceivedBeforeTheOpeningIsConfirmedByIt(t *testing.T) {
	b := opened(t, producerOptions{}, 0)
	b.send("a")
	b.send("b")
	is(t, b.open(7, 1, 0, 1), nil)
	b.work(later())
	b.hasSent("1:b")
	b.hasSettled("0-1 stored")
}

func TestAProducerFinishesAlthoughEachConnectionEndsAfterOneBatch(t *testing.T) {
	b := flushedWith(t)
	const batches = 30
	for number := 0; number < batches; number++ {
		b.send(fmt.Sprint("m", number))
	}
	for stored := 0; stored < batches; stored++ {
		is(t, b.open(7, uint64(stored), 0, 2), nil)
		b.work(later())
		if len(b.sent) != batches-stored || b.sent[0] != fmt.Sprint(stored, ":m", stored) {
			t.Fatal(stored, b.sent)
		}
	}
	is(t, b.open(7, batches, 0, 2), nil)
	b.work(later())
	b.hasSent()
	b.confirm(batches, batches)
	if len(b.settled) != batches || b.core.bytes != 0 {
		t.Error(b.settled, b.core.bytes)
	}
}

func TestABatchThatExpectedDividesIsCut(t *testing.T) {
	b := opened(t, producerOptions{}, 0)
	b.send("a", "b", "c")
	is(t, b.open(7, 1, 0, 1), nil)
	b.work(later())
	b.hasSent("1:bc")
	b.confirm(3, 0)
	b.hasSettled("0-1 stored", "1-3 stored")
}

func TestMessagesThatTheBrokerLostAreCountedAndLaterOnesRenumbered(t *testing.T) {
	b := opened(t, producerOptions{}, 0)
	for _, body := range []string{"a", "b", "c"} {
		b.send(body)
	}
	b.confirm(2, 0)
	is(t, b.open(7, 1, 0, 1), nil)
	b.work(later())
	b.hasSent("1:c")
	if b.core.lost != 1 {
		t.Error(b.core.lost)
	}
	b.confirm(2, 0)
	b.hasSettled("0-1 stored", "1-2 stored", "2-3 stored")
}

func TestAnotherIdOrEpochChangesWhatWaits(t *testing.T) {
	b := opened(t, producerOptions{}, 1000) // numbers belong to the id that they were given for
	b.send("a")
	b.send("b")
	is(t, b.open(7, 1001, 1, 1), nil)
	b.work(later())
	b.hasSent("1001:b")
	is(t, b.open(8, 5, 0, 1), nil)
	b.work(later())
	b.hasSent("5:b")
	if b.core.lost != 0 {
		t.Error(b.core.lost)
	}
	b.confirm(6, 0)
	b.hasSettled("0-1 stored", "1-2 stored")
}

func TestAnUnknownProducerLeavesSentMessagesInDoubt(t *testing.T) {
	b := opened(t, producerOptions{}, 0)
	b.send("a")
	addTo(b.core, "later")
	is(t, b.refuseOpening(codeUnknownProducer), ErrInDoubt)
	b.hasSettled("0-1 unknown_producer")
	is(t, b.open(8, 0, 0, 1), nil)
	if b.asked != "0/0" {
		t.Error(b.asked)
	}
	b.work(later())
	b.hasSent("0:later")
}

func TestMessagesInDoubtAreSentAgainOnRequest(t *testing.T) {
	b := opened(t, producerOptions{resends: true}, 5)
	b.send("a")
	is(t, b.refuseOpening(codeUnknownProducer), ErrInDoubt)
	is(t, b.open(8, 0, 0, 1), nil)
	b.work(later())
	b.hasSent("0:a")
	b.hasSettled()
}

func TestAnotherProcessThatUsedTheIdEndsTheProducer(t *testing.T) {
	b := opened(t, producerOptions{}, 0)
	b.send("a")
	is(t, b.open(7, 9, 0, 1), ErrInDoubt)
	is(t, b.core.failure, ErrInDoubt)
}

func TestAFencedProducerEnds(t *testing.T) {
	b := opened(t, producerOptions{}, 0)
	is(t, b.refuseOpening(codeFenced), ErrFenced)
	is(t, b.core.failure, ErrFenced)
}

func (b *scriptedBroker) refuse(begin, end, expected uint64, code uint16) {
	b.t.Helper()
	body := make([]byte, 28)
	for i, value := range []uint64{begin, end, expected} {
		binary.LittleEndian.PutUint64(body[8*i:], value)
	}
	binary.LittleEndian.PutUint16(body[24:], code)
	if err := b.core.handle(wire.Frame{Op: wire.Refuse, Channel: 1, Body: body}, time.Now()); err != nil {
		b.t.Fatal(err)
	}
	b.sent = nil
}

func TestARefusedBatchIsSentAgainLaterBeforeTheOthers(t *testing.T) {
	b := opened(t, producerOptions{}, 0)
	for _, body := range []string{"a", "b", "c"} {
		b.send(body)
	}
	b.refuse(1, 2, 1, codeLimitReached)
	b.work(time.Now())
	b.hasSent()
	if wait := time.Until(b.core.notBefore); wait <= 0 || wait > time.Second {
		t.Error(wait)
	}
	b.work(later())
	b.hasSent("1:b", "2:c")
	b.confirm(3, 0)
	b.hasSettled("0-1 stored", "1-2 stored", "2-3 stored")
}

func TestARefusedBatchIsGivenUpAndTheOthersRenumbered(t *testing.T) {
	b := opened(t, producerOptions{givesUp: true}, 0)
	for _, body := range []string{"a", "b", "c"} {
		b.send(body)
	}
	b.refuse(1, 2, 1, codeLimitReached)
	b.work(time.Now())
	b.hasSent("1:c")
	b.confirm(2, 0)
	b.hasSettled("1-2 limit_reached", "0-1 stored", "2-3 stored")
	if !b.core.isSettled(1) || codeOf(b.core.fateOf(1)) != "limit_reached" {
		t.Error(b.core.fateOf(1))
	}
}

func TestADamagedBatchIsSentAgainAtOnce(t *testing.T) {
	b := opened(t, producerOptions{givesUp: true}, 0)
	b.send("a")
	b.refuse(0, 1, 0, codeCorrupt)
	b.work(time.Now())
	b.hasSent("0:a")
	b.hasSettled()
}

func TestCreditFollowsTheWork(t *testing.T) {
	quick, slow := newCredit(0, 1000), newCredit(0, 1000)
	for c, work := range map[*credit]time.Duration{quick: 10 * time.Microsecond, slow: time.Second / 2} {
		c.reset()
		for i := 0; i < 100; i++ {
			if !c.take(1) {
				t.Fatal("no credit was left")
			}
			c.begun()
			c.worked(work)
			c.settled(1)
			c.give(c.due())
		}
	}
	if quick.target != creditFirst+100 || slow.target != 1 {
		t.Error(quick.target, slow.target)
	}
}

func TestFixedCreditBoundsTheMessagesInFlight(t *testing.T) {
	c := newCredit(10, 1000)
	c.reset()
	inFlight, given := 0, 10
	for i := 0; i < 50; i++ {
		inFlight, given = inFlight+given, 0
		for c.unsettled < inFlight {
			if !c.take(1) {
				t.Fatal("the broker delivered what was granted")
			}
		}
		if inFlight > 10 || c.granted <= 0 && c.take(1) {
			t.Fatal(inFlight, c.granted)
		}
		c.begun()
		c.settled(1)
		inFlight--
		messages, bytes := c.due()
		c.give(messages, bytes)
		given = messages
	}
}
