package lightq

import (
	"math"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"lightq/internal/fault"
	"lightq/internal/wire"
)

const (
	gatherTime     = 100 * time.Millisecond // so long acknowledgements wait at most
	gatherMax      = 1024                   // so many messages
	namedMax       = 256                    // messages that one frame names as started
	quickTime      = 2 * time.Millisecond
	rangesMax      = 4000 // of one frame of at most 64 KiB
	reasonBytesMax = 256
)

// The ways to settle a message.
const (
	ack = iota
	release
	retry
	dead
	extend
)

type settlement struct {
	how    int
	delay  time.Duration
	reason string
}

// milliseconds rounds up. Errors: invalid_argument.
func milliseconds(d time.Duration, name string) (uint32, error) {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	if d < 0 || ms > math.MaxUint32 {
		return 0, fault.New("invalid_argument", "the %s is %v; it is 0 to 49 days", name, d)
	}
	return uint32(ms), nil
}

type answer struct {
	value uint64
	err   error
}

// consuming is a consumer without input and output: docs/session.md, "Consuming".
type consuming struct {
	base
	options     consumerOptions
	timeoutMS   uint32
	start       Position
	incarnation uint64
	opened      wire.ConsumerOpened
	credit      *credit
	ready       []*Message          // the program does not have them yet
	held        map[uint64]*Message // by offset: the program has them
	namedCount  int                 // how many messages the last frame named
	namedTime   time.Time
	acks        map[uint32][]wire.Range
	ackCount    int
	gathered    time.Time // when the first of them was settled
	ackedAt     uint64    // the number of the link's last frame with acknowledgements
	isAckLost   bool      // the last connection has ended with acknowledgements that were not written
	requests    map[uint32]string
	forgotten   map[uint32]bool // requests whose answers nobody wants any more
	answers     map[uint32]answer
	givenAt     time.Time // when the program received its last message; zero: it has asked since
	late, lost  uint64
	isPaused    bool
	isLeaving   bool // the program receives nothing more
}

func newConsuming(topic string, options consumerOptions) (*consuming, error) {
	c := &consuming{base: base{topic: topic, joinType: "pull"}, options: options, start: options.start, namedCount: 1,
		held: map[uint64]*Message{}, acks: map[uint32][]wire.Range{}, requests: map[uint32]string{}, answers: map[uint32]answer{},
		forgotten: map[uint32]bool{}}
	c.codecs = wire.KnowsDead | wire.KnowsLeases | wire.MayBeBusy | wire.KnowsLate
	if options.own {
		c.joinType = "sub"
	}
	fixed := options.prefetch
	if fixed == 0 && (options.own || options.automatic) {
		fixed = fixedPrefetch
	}
	c.credit = newCredit(fixed, options.prefetchBytes)
	var err error
	c.timeoutMS, err = milliseconds(options.ackTimeout, "acknowledge timeout")
	return c, err
}

// --- The connection's side. ---

func (c *consuming) attach(l *link) {
	c.link, c.ackedAt = l, 0
	request := l.request()
	c.requests = map[uint32]string{request: "open"}
	opening := wire.ConsumeOpening{Topic: c.topic, Group: c.options.group, Mode: 1, Acknowledgement: 1, Start: c.start.kind,
		StartValue: c.start.value, Holds: c.options.holds, Incarnation: c.incarnation, AckTimeoutMS: c.timeoutMS}
	if c.options.own {
		opening.Mode = 2
	}
	if c.options.automatic {
		opening.Acknowledgement = 2
	}
	opening.CreditMessages, opening.CreditBytes = c.credit.reset()
	l.send(opening.Encode(request))
}

func (c *consuming) handle(frame wire.Frame, now time.Time) error {
	isOwn := c.isOpen && frame.Channel == c.channel
	what := c.requests[frame.Request]
	switch {
	case frame.Op == wire.Deliver && isOwn:
		return c.handleDeliver(frame)
	case frame.Op == wire.ConsumeOpened && what == "open":
		return c.handleOpened(frame)
	case frame.Op == wire.Revoked && isOwn:
		return c.handleRevoked(frame.Body)
	case frame.Op == wire.Late && isOwn:
		all, err := wire.DecodeLate(frame.Body)
		for _, each := range all {
			c.late += each.End - each.Begin
		}
		return err
	case frame.Op == wire.Done && what != "" && what != "open":
		c.handleDone(frame, what)
		return nil
	case frame.Op == wire.Error:
		return c.handleError(frame, what)
	}
	return fault.Violation("the broker sent op %d to a consumer", frame.Op)
}

func (c *consuming) handleOpened(frame wire.Frame) error {
	opened, err := wire.DecodeConsumeOpened(frame)
	if err != nil {
		return err
	}
	delete(c.requests, frame.Request)
	c.isAckLost = false // lost messages come again
	c.opened, c.channel, c.isOpen, c.opens = opened, frame.Channel, true, c.opens+1
	if c.hasFleetingCursor() {
		c.start, c.incarnation = At(opened.Next), opened.Incarnation
	}
	return nil
}

// hasFleetingCursor: the broker forgets the cursor with the connection. The next one begins where this one ends.
func (c *consuming) hasFleetingCursor() bool { return c.options.own && c.options.group == "" }

func (c *consuming) handleDeliver(frame wire.Frame) error {
	delivered := wire.DecodeDeliver(frame)
	all, first, err := messages(delivered)
	if err != nil {
		return err
	}
	if delivered.HandOut == 0 && c.opened.Leases {
		return fault.Violation("the broker delivered messages without the number of a hand-out")
	}
	for i := range all {
		if !c.credit.take(all[i].size) {
			return fault.Violation("the broker delivered more than this consumer requested")
		}
	}
	c.lost += delivered.Lost
	for i := range all {
		all[i].opens = c.opens
		c.ready = append(c.ready, &all[i])
	}
	if end := first + uint64(len(all)); c.hasFleetingCursor() && end > c.start.value {
		c.start = At(end)
	}
	return nil
}

func (c *consuming) handleRevoked(body []byte) error {
	revocation, err := wire.DecodeRevoked(body)
	if err != nil {
		return err
	}
	isMeant := func(m *Message) bool { return m.handOut < revocation.Before && wire.Holds(revocation.Ranges, m.Offset) }
	kept := make([]*Message, 0, len(c.ready))
	for _, each := range c.ready {
		if isMeant(each) {
			c.credit.dropped(each.size)
		} else {
			kept = append(kept, each)
		}
	}
	c.ready = kept
	for _, each := range c.held {
		if isMeant(each) {
			c.takeBack(each)
		}
	}
	return nil
}

func (c *consuming) takeBack(m *Message) {
	m.revoked = true
	delete(c.held, m.Offset)
	c.credit.settled(m.size)
	m.end()
}

func (c *consuming) handleDone(frame wire.Frame, what string) {
	delete(c.requests, frame.Request)
	value := wire.DecodeDone(frame.Body)
	c.answered(frame.Request, answer{value: value})
	if what != "seek" {
		return
	}
	// Everything that came before is from the old position.
	for _, each := range c.ready {
		c.credit.dropped(each.size)
	}
	c.ready = nil
	for _, each := range c.held {
		c.takeBack(each)
	}
	if c.hasFleetingCursor() {
		c.start = At(value)
	}
}

// answered keeps an answer for the goroutine that waits for it.
func (c *consuming) answered(request uint32, got answer) {
	if c.forgotten[request] {
		delete(c.forgotten, request)
		return
	}
	c.answers[request] = got
}

// forget: nobody waits for the answer any more.
func (c *consuming) forget(request uint32) {
	delete(c.answers, request)
	if c.requests[request] != "" {
		c.forgotten[request] = true
	}
}

func (c *consuming) handleError(frame wire.Frame, what string) error {
	err := failureOf(frame)
	if what != "" && what != "open" {
		delete(c.requests, frame.Request)
		c.answered(frame.Request, answer{err: err})
		return nil
	}
	if code := fault.CodeOf(err); finalCodes[code] || code == "incarnation_changed" {
		return c.fail(err)
	}
	return err
}

// detach: the broker delivers everything that is not settled again.
func (c *consuming) detach(err error) {
	if c.ackCount > 0 || c.link != nil && c.link.written < c.ackedAt {
		c.isAckLost = true
	}
	c.detached()
	c.ready, c.acks, c.ackCount = nil, map[uint32][]wire.Range{}, 0
	for _, each := range c.held {
		c.takeBack(each)
	}
	for request, what := range c.requests {
		if what != "open" {
			c.answered(request, answer{err: err})
		}
	}
	c.requests, c.forgotten = map[uint32]string{}, map[uint32]bool{}
}

// --- The program's side. ---

// asked: the program asks for a message.
func (c *consuming) asked(now time.Time) {
	if !c.givenAt.IsZero() {
		c.credit.worked(now.Sub(c.givenAt))
		c.givenAt = time.Time{}
	}
}

// take returns the next message for the program, or nil. The broker knows before that the program begins it: `isNamed` is
// false if it does not know yet.
func (c *consuming) take(now time.Time) (m *Message, isNamed bool) {
	if len(c.ready) == 0 || !c.isOpen || c.isLeaving {
		return nil, true
	}
	m = c.ready[0]
	if c.opened.Leases && !m.named {
		c.name(now)
	}
	if m.named && c.link.written < m.namedAt {
		return nil, false
	}
	c.ready[0] = nil
	c.ready = c.ready[1:]
	c.givenAt = now
	c.credit.begun()
	if c.options.automatic {
		m.settled = true
		c.credit.settled(m.size)
	} else {
		c.held[m.Offset] = m
	}
	return m, true
}

// name tells the broker that the program begins messages. It names more at a time if the program is quick, and redelivered
// ones singly.
func (c *consuming) name(now time.Time) {
	if now.Sub(c.namedTime) >= quickTime {
		c.namedCount = 1
	} else if c.namedCount *= 2; c.namedCount > namedMax {
		c.namedCount = namedMax
	}
	c.namedTime = now
	first := c.ready[0]
	var ranges []wire.Range
	at := c.link.queued + 1
	for count, each := range c.ready {
		if count == c.namedCount || each.handOut != first.handOut || each.Delivery != first.Delivery || count > 0 && first.Delivery > 1 {
			break
		}
		each.named, each.namedAt = true, at
		ranges = append(ranges, wire.Range{Begin: each.Offset, End: each.Offset + 1})
	}
	c.link.send(wire.EncodeStarted(c.channel, joined(ranges), first.handOut))
}

// joined returns the ranges in ascending order and as few as possible.
func joined(ranges []wire.Range) []wire.Range {
	sort.Slice(ranges, func(i, j int) bool { return ranges[i].Begin < ranges[j].Begin })
	made := ranges[:0]
	for _, each := range ranges {
		if last := len(made) - 1; last >= 0 && each.Begin <= made[last].End {
			if each.End > made[last].End {
				made[last].End = each.End
			}
		} else {
			made = append(made, each)
		}
	}
	return made
}

// settle settles a message of the program. It returns false for one that the program does not have any more.
func (c *consuming) settle(m *Message, s settlement, delayMS uint32) bool {
	if c.held[m.Offset] != m || m.opens != c.opens {
		return false
	}
	if s.how == extend {
		c.link.send(wire.EncodeExtend(c.channel, []wire.Range{{Begin: m.Offset, End: m.Offset + 1}}, m.handOut, delayMS))
		return true
	}
	m.settled = true
	delete(c.held, m.Offset)
	c.credit.settled(m.size)
	m.end()
	if s.how == ack {
		c.gather(m)
	} else {
		c.reject([]*Message{m}, s, delayMS)
	}
	return true
}

func (c *consuming) gather(m *Message) {
	if c.ackCount == 0 {
		c.gathered = time.Now()
	}
	c.ackCount++
	all := c.acks[m.handOut]
	if last := len(all) - 1; last >= 0 && all[last].End == m.Offset {
		all[last].End++
		return
	}
	c.acks[m.handOut] = append(all, wire.Range{Begin: m.Offset, End: m.Offset + 1})
}

func (c *consuming) reject(all []*Message, s settlement, delayMS uint32) {
	flags, reason := uint8(0), ""
	switch {
	case s.how == dead && c.opened.Dead:
		flags, reason, delayMS = wire.FlagDead, shortened(s.reason), 0
	case s.how == release && c.opened.Leases:
		flags, delayMS = wire.FlagRelease, 0
	}
	byHandOut := map[uint32][]wire.Range{}
	for _, each := range all {
		byHandOut[each.handOut] = append(byHandOut[each.handOut], wire.Range{Begin: each.Offset, End: each.Offset + 1})
	}
	for handOut, ranges := range byHandOut {
		for _, part := range parts(joined(ranges)) {
			c.link.send(wire.EncodeReject(c.channel, part, handOut, delayMS, flags, reason))
		}
	}
}

// shortened returns at most 256 bytes of the reason, as valid UTF-8.
func shortened(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) > reasonBytesMax {
		end := reasonBytesMax
		for !utf8.RuneStart(reason[end]) {
			end--
		}
		reason = reason[:end]
	}
	return reason
}

// parts returns ranges as they fit into frames.
func parts(ranges []wire.Range) (all [][]wire.Range) {
	for len(ranges) > rangesMax {
		all, ranges = append(all, ranges[:rangesMax]), ranges[rangesMax:]
	}
	return append(all, ranges)
}

// seek requests another position. It returns the request's number, for `answers`. Requires: open.
func (c *consuming) seek(to Position) uint32 {
	c.flush()
	request := c.link.request()
	c.requests[request] = "seek"
	c.link.send(wire.EncodeSeek(c.channel, request, to.kind, to.value))
	return request
}

// leave returns messages that the program has not begun, and requests the end of the channel. Requires: open.
func (c *consuming) leave() uint32 {
	c.flush()
	var named []*Message
	for _, each := range c.ready {
		if each.named {
			named = append(named, each)
		}
	}
	if len(named) > 0 {
		c.reject(named, settlement{how: release}, 0)
	}
	c.ready, c.isLeaving = nil, true
	request := c.link.request()
	c.requests[request] = "close"
	c.link.send(wire.Encode(wire.Close, 0, c.channel, request, nil))
	return request
}

// flush sends all acknowledgements.
func (c *consuming) flush() {
	if c.link == nil || c.ackCount == 0 {
		return
	}
	for handOut, ranges := range c.acks {
		for _, part := range parts(joined(ranges)) {
			c.link.send(wire.EncodeAcknowledge(c.channel, part, handOut))
		}
	}
	c.acks, c.ackCount, c.ackedAt = map[uint32][]wire.Range{}, 0, c.link.queued
}

func (c *consuming) work(now time.Time) {
	if !c.isOpen {
		return
	}
	if c.ackCount >= gatherMax || c.ackCount > 0 && now.Sub(c.gathered) >= gatherTime {
		c.flush()
	}
	if c.isPaused || c.isLeaving {
		return
	}
	if messages, bytes := c.credit.due(); messages+bytes > 0 {
		c.credit.give(messages, bytes)
		c.link.send(wire.EncodeCredit(c.channel, uint32(messages), uint64(bytes)))
	}
}

func (c *consuming) nextTimer() time.Time {
	if c.isOpen && c.ackCount > 0 {
		return c.gathered.Add(gatherTime)
	}
	return time.Time{}
}
