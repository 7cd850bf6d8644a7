package wire

import (
	"io"
	"strings"

	"lightq/internal/fault"
)

// Frame is a whole frame of the broker. Its checksum is right.
type Frame struct {
	Op, Flags        uint8
	Channel, Request uint32
	Body             []byte
}

type limits struct {
	flags       uint8
	least, most uint32 // most 0: as the receiver allows
}

// The frames that a broker sends, except those that this client does not request.
var fromBroker = map[uint8]limits{
	Welcome: {0, 32, 32}, ProduceOpened: {0, 48, 64}, Confirm: {0, 24, 24}, Refuse: {0, 28, smallBytes},
	ConsumeOpened: {3, 40, 40}, Deliver: {3, 84, 0}, Done: {0, 8, 8}, Heartbeat: {0, 0, 0}, Error: {0, 4, smallBytes},
	Goodbye: {0, 4, smallBytes}, Late: {0, 16, listBytes}, Revoked: {0, 24, listBytes},
}

// DecodeHeader checks everything in a header but the checksum, before memory is allocated for the body.
func DecodeHeader(b []byte, frameBytesMax uint32) (Header, error) {
	h := Header{Op: b[0], Flags: b[1], zero: le.Uint16(b[2:]), Channel: le.Uint32(b[4:]), Request: le.Uint32(b[8:]),
		BodyBytes: le.Uint32(b[12:]), crc: le.Uint32(b[16:])}
	allowed, known := fromBroker[h.Op]
	most := allowed.most
	if h.Op == Deliver {
		most = frameBytesMax
	}
	if !known || h.Flags&^allowed.flags != 0 || h.zero != 0 || h.BodyBytes < allowed.least || h.BodyBytes > most {
		return h, fault.Violation("the broker sent a malformed frame: op %d, flags %d, %d bytes", h.Op, h.Flags, h.BodyBytes)
	}
	return h, nil
}

// CheckFrame checks the checksum of a frame.
func CheckFrame(header []byte, h Header, body []byte) (Frame, error) {
	covered := body
	if h.Op == Deliver {
		covered = body[:16]
	}
	if CRC(header[:16], covered) != h.crc {
		return Frame{}, fault.Violation("the broker sent a damaged frame: op %d", h.Op)
	}
	return Frame{h.Op, h.Flags, h.Channel, h.Request, body}, nil
}

const stepBytes = 1 << 20

// ReadFrame reads a frame. It allocates memory as bytes arrive, at most 1 MiB ahead. Errors: a violation, those of the
// reader.
func ReadFrame(from io.Reader, frameBytesMax uint32) (Frame, error) {
	var header [HeaderBytes]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return Frame{}, err
	}
	h, err := DecodeHeader(header[:], frameBytesMax)
	if err != nil {
		return Frame{}, err
	}
	length := int(h.BodyBytes)
	body := make([]byte, least(length, stepBytes))
	for at := 0; at < length; {
		if at == len(body) {
			body = append(body, make([]byte, least(length-at, len(body)))...)
		}
		n, err := io.ReadFull(from, body[at:])
		if at += n; err != nil {
			return Frame{}, err
		}
	}
	return CheckFrame(header[:], h, body)
}

func least(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// Welcomed has the fields of welcome.
type Welcomed struct {
	FrameBytesMax, HeartbeatMS, ChannelsMax uint32
	Broker, Session                         uint64
}

// DecodeWelcome decodes a body of 32 bytes.
func DecodeWelcome(b []byte) (Welcomed, error) {
	if version := le.Uint16(b); version != 1 || le.Uint16(b[2:]) != 0 {
		return Welcomed{}, fault.Violation("the broker sent a welcome with the version %d", version)
	}
	return Welcomed{le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint64(b[16:]), le.Uint64(b[24:])}, nil
}

// ProducerOpened has the fields of produce_opened.
type ProducerOpened struct {
	Producer        uint64
	Epoch           uint16
	Level, Target   uint8
	BatchBytesMax   uint32
	MessageBytesMax uint64
	Expected        uint64
	NextOffset      uint64
	Incarnation     uint64
	Secret          []byte
}

// DecodeProduceOpened decodes a body of 48 to 64 bytes.
func DecodeProduceOpened(b []byte) (ProducerOpened, error) {
	o := ProducerOpened{le.Uint64(b), le.Uint16(b[8:]), b[10], b[11], le.Uint32(b[12:]), le.Uint64(b[16:]), le.Uint64(b[24:]),
		le.Uint64(b[32:]), le.Uint64(b[40:]), b[48:]}
	if len(o.Secret) != 0 && len(o.Secret) != 16 {
		return o, fault.Violation("the broker sent half a secret")
	}
	if o.Producer == 0 || o.Level < 1 || o.Level > 2 || o.Target > 1 {
		return o, fault.Violation("the broker opened a producer with invalid fields")
	}
	return o, nil
}

// Confirmed has the fields of confirm.
type Confirmed struct{ Received, Flushed, NextOffset uint64 }

// DecodeConfirm decodes a body of 24 bytes.
func DecodeConfirm(b []byte) (Confirmed, error) {
	c := Confirmed{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])}
	if c.Flushed > c.Received {
		return c, fault.Violation("the broker confirmed more on disk than in the log")
	}
	return c, nil
}

// Failure is an error or a goodbye.
type Failure struct{ Code, Text string }

// Refused has the fields of refuse.
type Refused struct {
	Begin, End, Expected uint64
	Failure
}

// DecodeRefuse decodes a body of at least 28 bytes.
func DecodeRefuse(b []byte) (Refused, error) {
	text, err := lastText(b, 26)
	r := Refused{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), Failure{CodeWord(le.Uint16(b[24:])), text}}
	if err == nil && r.Begin >= r.End {
		err = fault.Violation("the broker refused an empty range")
	}
	return r, err
}

// ConsumerOpened has the fields of consume_opened.
type ConsumerOpened struct {
	Next, Committed, NextOffset, Incarnation uint64
	AckTimeoutMS                             uint32
	Leases, Dead                             bool
}

// DecodeConsumeOpened decodes a body of 40 bytes.
func DecodeConsumeOpened(f Frame) (ConsumerOpened, error) {
	b := f.Body
	if le.Uint32(b[36:]) != 0 {
		return ConsumerOpened{}, fault.Violation("the broker opened a consumer with reserved bytes")
	}
	return ConsumerOpened{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint32(b[32:]),
		f.Flags&FlagLeases != 0, f.Flags&FlagTakeDead != 0}, nil
}

// Delivered has the fields of deliver.
type Delivered struct {
	Delivery, HandOut uint32
	Lost              uint64
	Expired           bool
	Batch             []byte
}

// DecodeDeliver decodes a body of at least 84 bytes. The batch is not checked.
func DecodeDeliver(f Frame) Delivered {
	b := f.Body
	return Delivered{le.Uint32(b), le.Uint32(b[4:]), le.Uint64(b[8:]), f.Flags&FlagExpired != 0, b[16:]}
}

// DecodeDone decodes a body of 8 bytes.
func DecodeDone(b []byte) uint64 { return le.Uint64(b) }

// DecodeFailure decodes the body of error or goodbye, of at least 4 bytes.
func DecodeFailure(b []byte) (Failure, error) {
	text, err := lastText(b, 2)
	return Failure{CodeWord(le.Uint16(b)), text}, err
}

// DecodeLate decodes the body of late.
func DecodeLate(b []byte) ([]Range, error) { return ranges(b) }

// Revocation has the fields of revoked.
type Revocation struct {
	Cause  uint8
	Before uint32
	Ranges []Range
}

// DecodeRevoked decodes a body of at least 24 bytes.
func DecodeRevoked(b []byte) (Revocation, error) {
	if b[0] == 0 || b[1] != 0 || b[2] != 0 || b[3] != 0 {
		return Revocation{}, fault.Violation("the broker revoked messages without a cause")
	}
	all, err := ranges(b[8:])
	return Revocation{b[0], le.Uint32(b[4:]), all}, err
}

func lastText(b []byte, at int) (string, error) {
	if len(b) != at+2+int(le.Uint16(b[at:])) {
		return "", fault.Violation("the broker sent a text with a wrong length")
	}
	return strings.ToValidUTF8(string(b[at+2:]), "\uFFFD"), nil
}

func ranges(b []byte) ([]Range, error) {
	if len(b) == 0 || len(b)%16 != 0 {
		return nil, fault.Violation("the broker sent half a range")
	}
	all := make([]Range, len(b)/16)
	for i := range all {
		all[i] = Range{le.Uint64(b[16*i:]), le.Uint64(b[16*i+8:])}
		if all[i].Begin >= all[i].End || i > 0 && all[i].Begin <= all[i-1].End {
			return nil, fault.Violation("the broker sent ranges in a wrong order")
		}
	}
	return all, nil
}

// Holds tells whether the ranges, which ascend, contain the offset.
func Holds(all []Range, offset uint64) bool {
	low, high := 0, len(all)
	for low < high {
		if middle := (low + high) / 2; all[middle].End <= offset {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low < len(all) && all[low].Begin <= offset
}
