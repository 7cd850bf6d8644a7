package lightq

import "time"

const (
	creditFirst       = 16
	creditMost        = 10_000
	unacknowledgedMax = 10_000
	aheadTime         = 100 * time.Millisecond // of work
	weight            = 8                      // the newest measurement counts for an eighth
)

// credit is how many messages a consumer requests ahead of its program: docs/session.md, "Credit". Without a fixed number,
// it is as many as the program works off in 0.1 s, measured. Bytes are always fixed, and given back as messages are settled.
type credit struct {
	fixed, bytes       int
	target             int
	work               time.Duration // on a message
	granted            int
	grantedBytes       int
	waiting, unsettled int
	settledBytes       int
}

func newCredit(fixed, bytes int) *credit {
	c := &credit{fixed: fixed, bytes: bytes, target: fixed}
	if fixed == 0 {
		c.target = creditFirst
	}
	return c
}

// reset begins a channel. It returns the first credit.
func (c *credit) reset() (messages uint32, bytes uint64) {
	c.granted, c.grantedBytes, c.waiting, c.unsettled, c.settledBytes = c.target, c.bytes, 0, 0, 0
	return uint32(c.target), uint64(c.bytes)
}

// take takes the credit of a delivered message. It returns false if the broker had none. The last message may have more bytes
// than were left.
func (c *credit) take(bytes int) bool {
	if c.granted <= 0 || c.grantedBytes <= 0 {
		return false
	}
	c.granted--
	c.grantedBytes -= bytes
	c.waiting++
	c.unsettled++
	return true
}

// begun: the program has received a message.
func (c *credit) begun() { c.waiting-- }

// worked: the program has asked for another message, so long after it received one.
func (c *credit) worked(d time.Duration) {
	c.work += (d - c.work) / weight
	if c.fixed != 0 {
		return
	}
	wanted := creditMost
	if c.work > aheadTime/creditMost {
		wanted = int(aheadTime / c.work)
	}
	if c.target++; c.target > wanted {
		c.target = wanted
	}
	if c.target < 1 {
		c.target = 1
	}
}

func (c *credit) settled(bytes int) {
	c.unsettled--
	c.settledBytes += bytes
}

// dropped: a message that the program has not begun is not its own any more.
func (c *credit) dropped(bytes int) {
	c.waiting--
	c.settled(bytes)
}

// due returns the messages and bytes to give now, 0 and 0 if it is not worth a frame.
func (c *credit) due() (messages, bytes int) {
	ahead := c.waiting
	if c.fixed != 0 {
		ahead = c.unsettled
	}
	messages = c.target - ahead
	if room := unacknowledgedMax - c.unsettled; room < messages && c.fixed == 0 {
		messages = room
	}
	if messages -= c.granted; messages < 0 {
		messages = 0
	}
	isLow := c.granted <= 0 || c.granted+ahead <= c.target/2
	if !(messages > 0 && isLow) && c.settledBytes < c.bytes/4 {
		return 0, 0
	}
	return messages, c.settledBytes
}

func (c *credit) isDue() bool {
	messages, bytes := c.due()
	return messages+bytes > 0
}

// give: the due credit was given.
func (c *credit) give(messages, bytes int) {
	c.granted += messages
	c.grantedBytes += bytes
	c.settledBytes -= bytes
}
