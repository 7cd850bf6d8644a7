package wire

import (
	"lightq/internal/fault"
)

// Attributes of a batch's records.
const (
	KindKey     uint16 = 1
	KindHeaders uint16 = 2
	KindTime    uint16 = 4
	KindDue     uint16 = 8
)

// Limits of a message and a batch: docs/log_format.md.
const (
	RecordsMax         = 65536
	KeyBytesMax        = 1024
	HeadersMax         = 64
	HeaderNameBytesMax = 128
	AttributesBytesMax = 32 * 1024
	batchMagic         = 0x3142514C
)

// Field is a header of a message.
type Field struct {
	Name  string
	Value []byte
}

// Record is a message as it is sent or was delivered.
type Record struct {
	Body    []byte
	Key     []byte
	Headers []Field
	TimeUS  int64
	DueUS   int64 // less than 0: minus a delay; never in a delivered message
	Kinds   uint16
	Bytes   int // attributes and payload, of a delivered message
}

// SizeMax returns an upper bound of the bytes of the encoded record.
func (r *Record) SizeMax() int {
	size := 4 + len(r.Body)
	if r.Kinds != 0 {
		size += 20 + len(r.Key)
		for _, each := range r.Headers {
			size += 4 + len(each.Name) + len(each.Value)
		}
	}
	return size
}

// AppendRecord appends the record with the attributes that `kinds` names.
func AppendRecord(to []byte, r *Record, kinds uint16) []byte {
	begin := len(to)
	to = append(to, 0, 0, 0, 0)
	if kinds&KindDue != 0 {
		to = le.AppendUint64(to, uint64(r.DueUS))
	}
	if kinds&KindTime != 0 {
		to = le.AppendUint64(to, uint64(r.TimeUS))
	}
	if kinds&KindKey != 0 {
		to = append(le.AppendUint16(to, uint16(len(r.Key))), r.Key...)
	}
	if kinds&KindHeaders != 0 {
		to = le.AppendUint16(to, uint16(len(r.Headers)))
		for _, each := range r.Headers {
			to = append(appendText(to, each.Name), 0, 0)
			le.PutUint16(to[len(to)-2:], uint16(len(each.Value)))
			to = append(to, each.Value...)
		}
	}
	to = append(to, r.Body...)
	le.PutUint32(to[begin:], uint32(len(to)-begin-4))
	return to
}

// Stamp has the fields that a producer writes into a batch's header.
type Stamp struct {
	Producer, Sequence uint64
	Epoch, Kinds       uint16
	Count              uint32
}

// PutBatchHeader writes the header of a batch, in front of its records, as a producer makes it.
func PutBatchHeader(batch []byte, s Stamp) {
	for i := range batch[:BatchHeaderBytes] {
		batch[i] = 0
	}
	le.PutUint32(batch, batchMagic)
	batch[4] = 1
	le.PutUint16(batch[6:], s.Kinds)
	le.PutUint32(batch[8:], uint32(len(batch)))
	le.PutUint32(batch[12:], s.Count)
	le.PutUint64(batch[32:], s.Producer)
	le.PutUint64(batch[40:], s.Sequence)
	le.PutUint16(batch[48:], s.Epoch)
	le.PutUint32(batch[56:], bodyCRC(batch))
}

func bodyCRC(batch []byte) uint32 { return CRC(batch[4:16], batch[32:52], batch[BatchHeaderBytes:]) }

// Batch is a delivered batch.
type Batch struct {
	BaseOffset   uint64
	AppendTimeUS int64
	Records      []Record
}

// DecodeBatch decodes a delivered batch of at least 68 bytes, and checks both of its checksums. The records refer to the
// memory of the batch. Errors: a violation.
func DecodeBatch(b []byte) (Batch, error) {
	if le.Uint32(b[60:]) != CRC(b[:60]) {
		return Batch{}, fault.Violation("the broker delivered a batch with a damaged header")
	}
	kinds, count := le.Uint16(b[6:]), le.Uint32(b[12:])
	if le.Uint32(b) != batchMagic || b[4] != 1 || b[5] != 0 || uint64(le.Uint32(b[8:])) != uint64(len(b)) ||
		kinds&0xFF&^(KindKey|KindHeaders|KindTime) != 0 || le.Uint16(b[50:]) != 0 || count == 0 || count > RecordsMax {
		return Batch{}, fault.Violation("the broker delivered a batch of an unknown format")
	}
	if le.Uint32(b[56:]) != bodyCRC(b) {
		return Batch{}, fault.Violation("the broker delivered a damaged batch")
	}
	if uint64(count)*4 > uint64(len(b)-BatchHeaderBytes) {
		return Batch{}, fault.Violation("the broker delivered a batch with too few bytes for its records")
	}
	decoded := Batch{le.Uint64(b[16:]), int64(le.Uint64(b[24:])), make([]Record, count)}
	rest := b[BatchHeaderBytes:]
	for i := range decoded.Records {
		if len(rest) < 4 || uint64(le.Uint32(rest)) > uint64(len(rest)-4) {
			return Batch{}, fault.Violation("the broker delivered a record that is longer than its batch")
		}
		end := 4 + int(le.Uint32(rest))
		if !decodeRecord(&decoded.Records[i], rest[4:end:end], kinds) {
			return Batch{}, fault.Violation("the broker delivered a record with broken attributes")
		}
		rest = rest[end:]
	}
	if len(rest) != 0 {
		return Batch{}, fault.Violation("the broker delivered a batch whose records do not fill it")
	}
	return decoded, nil
}

func decodeRecord(r *Record, b []byte, kinds uint16) bool {
	r.Bytes = len(b)
	c := cursor{b, true}
	if kinds&KindDue != 0 {
		r.DueUS = int64(c.u64())
	}
	if kinds&KindTime != 0 {
		r.TimeUS = int64(c.u64())
	}
	if kinds&KindKey != 0 {
		r.Key = c.text()
	}
	if kinds&KindHeaders != 0 {
		count := int(c.u16())
		for i := 0; i < count && c.sound; i++ {
			name, value := c.text(), c.text()
			r.Headers = append(r.Headers, Field{string(name), value})
		}
	}
	r.Body, r.Kinds = c.rest, kinds
	return c.sound
}

// cursor reads a record from its beginning. After a read beyond its end it is not sound.
type cursor struct {
	rest  []byte
	sound bool
}

func (c *cursor) take(n int) []byte {
	if n > len(c.rest) {
		c.sound = false
		return make([]byte, n)
	}
	taken := c.rest[:n:n]
	c.rest = c.rest[n:]
	return taken
}

func (c *cursor) u16() uint16  { return le.Uint16(c.take(2)) }
func (c *cursor) u64() uint64  { return le.Uint64(c.take(8)) }
func (c *cursor) text() []byte { return c.take(int(c.u16())) }

// Reencode rewrites records that this client has encoded with some attributes, so that they have those of `kinds` too.
func Reencode(records []byte, from, kinds uint16) []byte {
	made := make([]byte, 0, len(records)+len(records)/4+64)
	for len(records) > 0 {
		end := 4 + int(le.Uint32(records))
		var record Record
		decodeRecord(&record, records[4:end], from)
		made = AppendRecord(made, &record, kinds)
		records = records[end:]
	}
	return made
}

// Split returns where record number `count` begins.
func Split(records []byte, count int) int {
	at := 0
	for i := 0; i < count; i++ {
		at += 4 + int(le.Uint32(records[at:]))
	}
	return at
}
