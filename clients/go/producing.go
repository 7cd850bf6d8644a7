package lightq

import (
	"time"

	"lightq/internal/fault"
	"lightq/internal/wire"
)

const (
	eagerBatches = 2      // with fewer unconfirmed batches, a batch that is not full is sent at once
	failuresMax  = 10_000 // ranges of failed messages that are remembered
)

// fate is the fate of a range of messages.
type fate struct {
	begin, end uint64
	err        error
}

// producing is a producer without input and output: docs/session.md, "Producing". Messages are numbered from 0.
type producing struct {
	base
	options   producerOptions
	id        uint64
	epoch     uint16
	secret    []byte
	opened    wire.ProducerOpened
	next      uint64 // the number of the next message
	lost      uint64 // messages that were confirmed and that the broker lost later
	bytes     int    // unconfirmed
	failures  []fate
	forgotten uint64 // failures of messages before this number may be dropped
	onSettled func(fate)

	building  *outBatch
	waiting   []*outBatch
	flight    []*outBatch
	flightLen int // bytes
	writing   []*outBatch
	spare     [][]byte

	sequence  uint64 // of the next batch that was never sent
	confirmed uint64
	isKnown   bool // the broker has assigned the id
	request   uint32
	notBefore time.Time
	pause     time.Duration
	flushing  bool
}

func newProducing(topic string, options producerOptions) *producing {
	return &producing{base: base{topic: topic, joinType: "push", codecs: wire.KeepsSecret}, options: options, id: options.id,
		epoch: options.epoch, isKnown: options.id != 0, pause: pauseLeast, onSettled: func(fate) {}}
}

// hasRoom tells whether a message fits into the memory for unconfirmed ones. One of any size fits alone.
func (p *producing) hasRoom(size int) bool { return p.bytes == 0 || p.bytes+size <= memoryBytes }

// check returns the reason why the broker would refuse the message.
func (p *producing) check(record *wire.Record, size int) error {
	if record.Kinds&wire.KindDue != 0 && !p.options.delayed {
		return fault.New("invalid_argument", "a delay needs a producer with Delayed")
	}
	if p.opens > 0 && uint64(size) > p.opened.MessageBytesMax && uint64(len(record.Body)) > p.opened.MessageBytesMax {
		return fault.New("too_large", "a message of %d bytes; the broker accepts %d", len(record.Body), p.opened.MessageBytesMax)
	}
	return nil
}

// add takes a message. It returns its number.
func (p *producing) add(record *wire.Record, size int) uint64 {
	if p.options.delayed {
		record.Kinds |= wire.KindDue
	}
	if p.building != nil && (p.building.size()+size > p.batchBytes() || p.building.count == wire.RecordsMax) {
		p.closeBatch()
	}
	if p.building == nil {
		p.building = &outBatch{first: p.next, buffer: p.buffer(size)}
	}
	before := p.building.size()
	p.building.add(record)
	p.bytes += p.building.size() - before
	p.next++
	return p.next - 1
}

func (p *producing) batchBytes() int {
	if p.opens > 0 && int(p.opened.BatchBytesMax) < batchBytes {
		return int(p.opened.BatchBytesMax) - wire.BatchHeaderBytes
	}
	return batchBytes - wire.BatchHeaderBytes
}

// buffer returns memory for a batch that begins with a record of so many bytes.
func (p *producing) buffer(size int) []byte {
	if count := len(p.spare); count > 0 {
		taken := p.spare[count-1]
		p.spare = p.spare[:count-1]
		return taken[:recordsAt]
	}
	if size+recordsAt > firstCapacity {
		return make([]byte, recordsAt, recordsAt+size)
	}
	return make([]byte, recordsAt, firstCapacity)
}

func (p *producing) closeBatch() {
	if p.building != nil {
		p.waiting = append(p.waiting, p.building)
		p.building = nil
	}
}

// settledBefore: every message before this number is settled.
func (p *producing) settledBefore() uint64 {
	for _, batches := range [][]*outBatch{p.flight, p.waiting} {
		if len(batches) > 0 {
			return batches[0].first
		}
	}
	if p.building != nil {
		return p.building.first
	}
	return p.next
}

func (p *producing) failureOf(number uint64) error {
	for _, each := range p.failures {
		if each.begin <= number && number < each.end {
			return each.err
		}
	}
	return nil
}

// fateOf returns why a settled message is not stored, or nil. Requires: isSettled.
func (p *producing) fateOf(number uint64) error {
	err := p.failureOf(number)
	if err == nil && number < p.forgotten {
		return fault.New("in_doubt", "the fate of the message is not known any more: too many messages have failed")
	}
	return err
}

func (p *producing) isSettled(number uint64) bool {
	return number < p.settledBefore() || p.failureOf(number) != nil
}

func (p *producing) attach(l *link) {
	p.link, p.request = l, l.request()
	target := uint8(0)
	if p.options.delayed {
		target = 1
	}
	l.send(wire.EncodeProduceOpen(p.request, p.topic, p.id, p.epoch, p.options.level, target, p.secret))
}

func (p *producing) handle(frame wire.Frame, now time.Time) error {
	isOwn := p.isOpen && frame.Channel == p.channel
	switch {
	case frame.Op == wire.ProduceOpened && frame.Request == p.request && !p.isOpen:
		return p.continueFrom(frame)
	case frame.Op == wire.Confirm && isOwn:
		return p.handleConfirm(frame.Body)
	case frame.Op == wire.Refuse && isOwn:
		return p.handleRefuse(frame.Body, now)
	case frame.Op == wire.Error:
		failure, err := wire.DecodeFailure(frame.Body)
		if err != nil {
			return err
		}
		return p.ended(failure)
	}
	return fault.Violation("the broker sent op %d to a producer", frame.Op)
}

// continueFrom begins or continues where the broker says.
func (p *producing) continueFrom(frame wire.Frame) error {
	opened, err := wire.DecodeProduceOpened(frame.Body)
	if err != nil {
		return err
	}
	isOther := !p.isKnown || p.id != opened.Producer
	if isOther || p.opens == 0 {
		p.sequence, p.confirmed = opened.Expected, opened.Expected
	}
	for _, each := range p.waiting {
		each.isStamped = each.isStamped && p.epoch == opened.Epoch
		if isOther { // numbers of another id mean nothing
			each.unnumber()
		}
	}
	p.opened, p.channel, p.isOpen, p.opens = opened, frame.Channel, true, p.opens+1
	if len(opened.Secret) > 0 {
		p.secret = append([]byte{}, opened.Secret...)
	}
	p.id, p.epoch, p.isKnown, p.notBefore = opened.Producer, opened.Epoch, true, time.Time{}
	if opened.Expected > p.sequence {
		return p.fail(inDoubt("another process has used the producer id"))
	}
	if opened.Expected < p.confirmed {
		p.lost += p.confirmed - opened.Expected
		p.sequence, p.confirmed = opened.Expected, opened.Expected
		for _, each := range p.waiting {
			each.unnumber()
		}
	}
	p.cut(opened.Expected)
	p.skipStored(opened.Expected)
	if opened.Level != 2 {
		p.settleBefore(opened.Expected) // that is received, and the broker does not confirm it again
	}
	return nil
}

// cut cuts the batch that begins before `expected` and ends after it, because the broker would refuse it.
func (p *producing) cut(expected uint64) {
	for i, each := range p.waiting {
		if each.isSent && each.sequence < expected && expected < each.sequenceEnd() {
			left, right := each.split(int(expected - each.sequence))
			p.waiting = append(append(append([]*outBatch{}, p.waiting[:i]...), left, right), p.waiting[i+1:]...)
			return
		}
	}
}

// skipStored does not send stored batches again. They are in flight until the broker confirms them.
func (p *producing) skipStored(expected uint64) {
	for len(p.waiting) > 0 && p.waiting[0].isSent && p.waiting[0].sequenceEnd() <= expected {
		each := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.flight = append(p.flight, each)
		p.flightLen += each.size()
		each.isWritten = true // the writer of the former connection has ended
	}
}

func (p *producing) handleConfirm(body []byte) error {
	confirm, err := wire.DecodeConfirm(body)
	if err != nil {
		return err
	}
	if confirm.Received > p.sequence {
		return fault.Violation("the broker confirmed messages that were not sent")
	}
	value := confirm.Received
	if p.opened.Level == 2 {
		value = confirm.Flushed
	}
	p.settleBefore(value)
	p.pause = pauseLeast
	return nil
}

// settleBefore: everything before this sequence number is confirmed.
func (p *producing) settleBefore(sequence uint64) {
	if sequence > p.confirmed {
		p.confirmed = sequence
	}
	for len(p.flight) > 0 && p.flight[0].sequenceEnd() <= sequence {
		done := p.flight[0]
		p.flight = p.flight[1:]
		p.flightLen -= done.size()
		p.settle(done, nil)
		if done.isWritten && cap(done.buffer) >= spareLeast && len(p.spare) < spareBuffers {
			p.spare = append(p.spare, done.buffer)
		}
	}
}

func (p *producing) settle(done *outBatch, err error) {
	p.bytes -= done.size()
	settled := fate{done.first, done.end(), err}
	if err != nil {
		if len(p.failures) == failuresMax {
			if end := p.failures[0].end; end > p.forgotten {
				p.forgotten = end
			}
			p.failures = append([]fate{}, p.failures[1:]...)
		}
		p.failures = append(p.failures, settled)
	}
	p.onSettled(settled)
}

// handleRefuse gives the refused batch up, or sends it again. Those behind it are numbered from `expected`.
func (p *producing) handleRefuse(body []byte, now time.Time) error {
	refuse, err := wire.DecodeRefuse(body)
	if err != nil {
		return err
	}
	if endingCodes[refuse.Code] {
		return p.ended(refuse.Failure)
	}
	if refuse.Expected > p.sequence {
		return fault.Violation("the broker expects messages that were not sent")
	}
	kept := 0
	for kept < len(p.flight) && p.flight[kept].sequence < refuse.Expected {
		kept++
	}
	back := append([]*outBatch{}, p.flight[kept:]...)
	p.flight, p.sequence = p.flight[:kept:kept], refuse.Expected
	atOnce := againAtOnce[refuse.Code]
	for _, each := range back {
		p.flightLen -= each.size()
		each.unnumber()
	}
	if len(back) > 0 && !atOnce && (givenUp[refuse.Code] || p.options.givesUp) {
		given := back[0]
		back = back[1:]
		p.settle(given, fault.New(refuse.Code, "%s", refuse.Text))
	} else if !atOnce {
		p.notBefore = now.Add(p.pause)
		if p.pause *= 2; p.pause > pauseMost {
			p.pause = pauseMost
		}
	}
	p.unwritten(back)
	p.waiting = append(back, p.waiting...)
	return nil
}

// unwritten gives batches other memory if the writer may still read theirs, because it will be stamped again.
func (p *producing) unwritten(batches []*outBatch) {
	for _, each := range batches {
		if !each.isWritten {
			each.buffer = append([]byte{}, each.buffer...)
		}
	}
}

// ended handles an error of the channel. It returns an error in any case.
func (p *producing) ended(failure wire.Failure) error {
	err := fault.New(failure.Code, "%s", failure.Text)
	if failure.Code == "unknown_producer" {
		p.forgetIdentity(failure.Text)
	} else if finalCodes[failure.Code] {
		return p.fail(err)
	}
	return err
}

func inDoubt(text string) error {
	return fault.New("unknown_producer", "%s; the unconfirmed messages may be stored or not", text)
}

// forgetIdentity: the broker does not know the id. Messages that were sent may be stored or not; later ones get a new id.
func (p *producing) forgetIdentity(text string) {
	p.id, p.epoch, p.secret, p.isKnown, p.isOpen = 0, 0, nil, false, false // nothing more is numbered on this channel
	all := append(append([]*outBatch{}, p.flight...), p.waiting...)
	p.flight, p.waiting, p.flightLen = nil, nil, 0
	for _, each := range all {
		if each.isSent && !p.options.resends {
			p.settle(each, inDoubt(text))
			continue
		}
		each.unnumber()
		p.waiting = append(p.waiting, each)
	}
}

// detach lets batches in flight wait for the next connection, under the same numbers. Requires: the writer has ended.
func (p *producing) detach(error) {
	p.detached()
	p.waiting = append(append([]*outBatch{}, p.flight...), p.waiting...)
	p.flight, p.flightLen, p.writing = nil, 0, nil
}

// giveUp settles everything that is unconfirmed.
func (p *producing) giveUp(err error) {
	p.closeBatch()
	all := append(append([]*outBatch{}, p.flight...), p.waiting...)
	p.flight, p.waiting, p.flightLen = nil, nil, 0
	for _, each := range all {
		p.settle(each, err)
	}
}

// work sends batches as far as the window allows.
func (p *producing) work(now time.Time) {
	if !p.isOpen || now.Before(p.notBefore) {
		return
	}
	p.notBefore = time.Time{}
	for {
		if len(p.waiting) == 0 && p.building != nil && (p.flushing || len(p.flight) < eagerBatches) {
			p.closeBatch()
		}
		if len(p.waiting) == 0 {
			p.flushing = p.flushing && p.building != nil
			return
		}
		first := p.waiting[0]
		if len(p.flight) > 0 && p.flightLen+first.size() > windowBytes {
			return
		}
		p.waiting = p.waiting[1:]
		if !first.isSent {
			first.number(p.sequence)
			p.sequence = first.sequenceEnd()
		}
		p.flight = append(p.flight, first)
		p.flightLen += first.size()
		first.isWritten = false
		p.writing = append(p.writing, first)
		p.link.send(first.frame(p.channel, p.id, p.epoch))
	}
}

// wrote: the connection has taken everything that was sent. Requires: work was not called since the writer took that.
func (p *producing) wrote() {
	for _, each := range p.writing {
		each.isWritten = true
	}
	p.writing = p.writing[:0]
}

func (p *producing) nextTimer() time.Time {
	if p.isOpen && len(p.waiting) > 0 {
		return p.notBefore
	}
	return time.Time{}
}
