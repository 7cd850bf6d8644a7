package lightq

import (
	"lightq/internal/wire"
)

const (
	recordsAt     = wire.HeaderBytes + wire.BatchHeaderBytes // the frame's and the batch's header are in front
	batchBytes    = 128 << 10
	windowBytes   = 4 << 20  // unconfirmed bytes on the way
	memoryBytes   = 16 << 20 // unconfirmed bytes in all
	spareBuffers  = 2 * windowBytes / batchBytes
	spareLeast    = batchBytes / 2 // smaller buffers are not kept
	firstCapacity = 4 << 10
)

// outBatch is a batch of messages that the broker has not confirmed.
type outBatch struct {
	first     uint64 // the number of its first message
	count     int
	kinds     uint16
	buffer    []byte // the whole frame
	sequence  uint64
	isSent    bool // it has a sequence number
	isStamped bool // its headers are right
	isWritten bool // nobody reads the buffer any more
}

func (b *outBatch) end() uint64         { return b.first + uint64(b.count) }
func (b *outBatch) sequenceEnd() uint64 { return b.sequence + uint64(b.count) }
func (b *outBatch) size() int           { return len(b.buffer) - recordsAt }

// add appends a record. All records of a batch get the attributes of all of them.
func (b *outBatch) add(record *wire.Record) {
	if missing := record.Kinds &^ b.kinds; missing != 0 {
		if b.count > 0 {
			records := wire.Reencode(b.buffer[recordsAt:], b.kinds, b.kinds|missing)
			b.buffer = append(b.buffer[:recordsAt], records...)
		}
		b.kinds |= missing
	}
	b.buffer = wire.AppendRecord(b.buffer, record, b.kinds)
	b.count++
}

// number gives the batch a sequence number.
func (b *outBatch) number(sequence uint64) {
	b.isStamped = b.isStamped && b.isSent && b.sequence == sequence
	b.sequence, b.isSent = sequence, true
}

// unnumber takes the sequence number away: the batch gets another one.
func (b *outBatch) unnumber() { b.isSent, b.isStamped = false, false }

// split returns batches of the first messages and of the others. They have the same attributes.
func (b *outBatch) split(count int) (*outBatch, *outBatch) {
	at := recordsAt + wire.Split(b.buffer[recordsAt:], count)
	make := func(records []byte, skipped, count int) *outBatch {
		buffer := append(append([]byte{}, b.buffer[:recordsAt]...), records...)
		return &outBatch{first: b.first + uint64(skipped), count: count, kinds: b.kinds, buffer: buffer, isSent: b.isSent,
			sequence: b.sequence + uint64(skipped)}
	}
	return make(b.buffer[recordsAt:at], 0, count), make(b.buffer[at:], count, b.count-count)
}

// frame returns the whole frame for a channel.
func (b *outBatch) frame(channel uint32, producer uint64, epoch uint16) []byte {
	if !b.isStamped {
		wire.PutBatchHeader(b.buffer[wire.HeaderBytes:], wire.Stamp{Producer: producer, Sequence: b.sequence, Epoch: epoch,
			Kinds: b.kinds, Count: uint32(b.count)})
		b.isStamped = true
	}
	wire.PutHeader(b.buffer, wire.Header{Op: wire.Produce, Channel: channel, BodyBytes: uint32(len(b.buffer) - wire.HeaderBytes)}, nil)
	return b.buffer
}
