// Package wire encodes and decodes frames and batches: docs/session.md and docs/log_format.md. It has neither input nor
// output.
package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// Sizes in bytes.
const (
	HeaderBytes      = 20
	FrameBytesMax    = 1<<31 - 1 // an int of 32 bits holds it
	BatchHeaderBytes = 64
	smallBytes       = 1 << 10
	listBytes        = 1 << 16
	magic            = 0x5353514C
)

// Bits of codecs in hello: abilities of the client.
const (
	KnowsExpired uint32 = 1 << (26 + iota)
	KnowsDead
	KnowsLeases
	MayBeBusy
	KnowsLate
	KeepsSecret
)

// Numbers of the ops.
const (
	Hello uint8 = 1 + iota
	Welcome
	ProduceOpen
	ProduceOpened
	Produce
	Confirm
	Refuse
	ConsumeOpen
	ConsumeOpened
	Deliver
	Credit
	Acknowledge
	Reject
	Extend
	Seek
	Read
	Done
	Close
	Heartbeat
	Error
	Goodbye
	Present
	Share
	Shared
	Late
	Started
	Revoked
)

// Flags of frames.
const (
	FlagDead     uint8 = 1 // of reject
	FlagHandOut  uint8 = 2 // of acknowledge, reject and extend
	FlagRelease  uint8 = 4 // of reject
	FlagLeases   uint8 = 1 // of consume_opened
	FlagTakeDead uint8 = 2 // of consume_opened
	FlagExpired  uint8 = 2 // of deliver
)

var codes = [...]string{"ok", "invalid_frame", "unsupported_version", "unauthorized_access", "topic_not_found", "unknown_channel",
	"limit_reached", "too_large", "corrupt", "out_of_sequence", "fenced", "unknown_producer", "no_space", "io_error",
	"incarnation_changed", "shutting_down", "topic_deleted", "not_supported", "idle", "internal"}

// CodeWord returns the word of a code. Unknown ones are internal.
func CodeWord(code uint16) string {
	if int(code) < len(codes) {
		return codes[code]
	}
	return "internal"
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// CRC returns the CRC-32C of the parts, one behind the other.
func CRC(parts ...[]byte) uint32 {
	sum := uint32(0)
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// Range is [Begin, End) of offsets.
type Range struct{ Begin, End uint64 }

// Header is the first part of a frame.
type Header struct {
	Op, Flags        uint8
	Channel, Request uint32
	BodyBytes        uint32
	crc              uint32
	zero             uint16
}

// PutHeader writes a frame's header in front of its body. `covered`: the part of the body that the checksum covers.
func PutHeader(to []byte, h Header, covered []byte) {
	to[0], to[1] = h.Op, h.Flags
	le.PutUint16(to[2:], 0)
	le.PutUint32(to[4:], h.Channel)
	le.PutUint32(to[8:], h.Request)
	le.PutUint32(to[12:], h.BodyBytes)
	le.PutUint32(to[16:], CRC(to[:16], covered))
}

// Encode returns a whole frame, other than produce.
func Encode(op, flags uint8, channel, request uint32, body []byte) []byte {
	frame := make([]byte, HeaderBytes, HeaderBytes+len(body))
	PutHeader(frame, Header{Op: op, Flags: flags, Channel: channel, Request: request, BodyBytes: uint32(len(body))}, body)
	return append(frame, body...)
}

func appendText(to []byte, text string) []byte {
	return append(le.AppendUint16(to, uint16(len(text))), text...)
}

func appendRanges(to []byte, ranges []Range) []byte {
	for _, each := range ranges {
		to = le.AppendUint64(le.AppendUint64(to, each.Begin), each.End)
	}
	return to
}

// EncodeHello returns hello. The name has at most 128 bytes.
func EncodeHello(request, frameBytesMax, heartbeatMS, codecs uint32, name, ticket string) []byte {
	body := le.AppendUint32(nil, magic)
	body = le.AppendUint16(le.AppendUint16(body, 1), 1)
	body = le.AppendUint32(le.AppendUint32(le.AppendUint32(body, frameBytesMax), heartbeatMS), codecs)
	return Encode(Hello, 0, 0, request, appendText(appendText(body, name), ticket))
}

// EncodeProduceOpen returns produce_open.
func EncodeProduceOpen(request uint32, topic string, producer uint64, epoch uint16, level, target uint8, secret []byte) []byte {
	body := le.AppendUint16(le.AppendUint64(nil, producer), epoch)
	body = append(body, level, target)
	return Encode(ProduceOpen, 0, 0, request, appendText(appendText(body, topic), string(secret)))
}

// ConsumeOpening has the fields of consume_open.
type ConsumeOpening struct {
	Topic, Group                 string
	Mode, Acknowledgement, Start uint8
	Holds                        bool
	CreditMessages               uint32
	CreditBytes                  uint64
	StartValue, Incarnation      uint64
	AckTimeoutMS                 uint32
}

// Encode returns consume_open.
func (o ConsumeOpening) Encode(request uint32) []byte {
	holds := uint8(0)
	if o.Holds {
		holds = 1
	}
	body := le.AppendUint32([]byte{o.Mode, o.Acknowledgement, o.Start, holds}, o.CreditMessages)
	body = le.AppendUint64(le.AppendUint64(le.AppendUint64(body, o.CreditBytes), o.StartValue), o.Incarnation)
	body = le.AppendUint64(le.AppendUint32(le.AppendUint32(body, o.AckTimeoutMS), 0), 0)
	body = appendText(appendText(appendText(body, o.Topic), o.Group), "")
	return Encode(ConsumeOpen, 0, 0, request, body)
}

// EncodeCredit returns credit.
func EncodeCredit(channel, messages uint32, bytes uint64) []byte {
	return Encode(Credit, 0, channel, 0, le.AppendUint64(le.AppendUint32(nil, messages), bytes))
}

// EncodeAcknowledge returns acknowledge. The hand-out is 0 without leases.
func EncodeAcknowledge(channel uint32, ranges []Range, handOut uint32) []byte {
	if handOut == 0 {
		return Encode(Acknowledge, 0, channel, 0, appendRanges(nil, ranges))
	}
	head := le.AppendUint32(le.AppendUint32(nil, handOut), 0)
	return Encode(Acknowledge, FlagHandOut, channel, 0, appendRanges(head, ranges))
}

// EncodeReject returns reject. The reason is sent with FlagDead only.
func EncodeReject(channel uint32, ranges []Range, handOut, delayMS uint32, flags uint8, reason string) []byte {
	body := le.AppendUint32(nil, delayMS)
	if handOut != 0 {
		flags |= FlagHandOut
		body = le.AppendUint32(body, handOut)
	}
	if flags&FlagDead != 0 {
		body = appendText(body, reason)
	}
	return Encode(Reject, flags, channel, 0, appendRanges(body, ranges))
}

// EncodeExtend returns extend.
func EncodeExtend(channel uint32, ranges []Range, handOut, ms uint32) []byte {
	body, flags := le.AppendUint32(nil, ms), uint8(0)
	if handOut != 0 {
		body, flags = le.AppendUint32(body, handOut), FlagHandOut
	}
	return Encode(Extend, flags, channel, 0, appendRanges(body, ranges))
}

// EncodeStarted returns started.
func EncodeStarted(channel uint32, ranges []Range, handOut uint32) []byte {
	return Encode(Started, 0, channel, 0, appendRanges(le.AppendUint32(le.AppendUint32(nil, handOut), 0), ranges))
}

// EncodeSeek returns seek.
func EncodeSeek(channel, request uint32, start uint8, value uint64) []byte {
	return Encode(Seek, 0, channel, request, le.AppendUint64([]byte{start, 0, 0, 0, 0, 0, 0, 0}, value))
}

// EncodeRead returns read.
func EncodeRead(request uint32, topic string, begin, end, bytes uint64) []byte {
	body := le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, begin), end), bytes)
	return Encode(Read, 0, 0, request, appendText(body, topic))
}

// EncodeGoodbye returns a goodbye that ends a session normally.
func EncodeGoodbye() []byte {
	return Encode(Goodbye, 0, 0, 0, []byte{0, 0, 0, 0})
}
