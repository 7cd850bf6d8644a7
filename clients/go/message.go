package lightq

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"lightq/internal/fault"
	"lightq/internal/wire"
)

const (
	daysMax    = 3653
	idBytesMax = 128
)

// Header is a name and a value that a message carries. A message may have several headers with the same name.
type Header struct {
	Name  string // 1 to 128 bytes
	Value []byte
}

// Msg is a message for sending. All fields but Body may be left out. The client copies Body, Key and Headers before Send
// returns.
type Msg struct {
	Body      []byte
	Key       []byte // at most 1,024 bytes
	Headers   []Header
	Time      time.Time     // as the producer states it
	TTL       time.Duration // the message expires so long after the log has taken it; whole milliseconds, at most ten years
	ID        string        // at most 128 bytes; by it a delayed message can be cancelled
	Delay     time.Duration // of a producer with Delayed: the message is delivered so much later, at most ten years
	DeliverAt time.Time     // or the time at which it is delivered
}

// record returns the message as it is sent. Errors: invalid_argument.
func (m *Msg) record() (wire.Record, error) {
	r := wire.Record{Body: m.Body, Key: m.Key}
	if len(m.Key) > 0 {
		r.Kinds |= wire.KindKey
	}
	if !m.Time.IsZero() {
		r.TimeUS, r.Kinds = m.Time.UnixMicro(), r.Kinds|wire.KindTime
	}
	if len(m.Headers) == 0 && m.ID == "" && m.TTL == 0 && m.Delay == 0 && m.DeliverAt.IsZero() && len(m.Key) <= wire.KeyBytesMax {
		return r, nil
	}
	if err := m.due(&r); err != nil {
		return r, err
	}
	return r, m.headers(&r)
}

func (m *Msg) due(r *wire.Record) error {
	switch {
	case m.Delay != 0 && !m.DeliverAt.IsZero():
		return fault.New("invalid_argument", "give Delay or DeliverAt, not both")
	case m.Delay < 0 || m.Delay > daysMax*24*time.Hour:
		return fault.New("invalid_argument", "the delay is %v; it is 0 to %d days", m.Delay, daysMax)
	case m.Delay > 0:
		r.DueUS, r.Kinds = -int64((m.Delay+time.Microsecond-1)/time.Microsecond), r.Kinds|wire.KindDue
	case !m.DeliverAt.IsZero():
		r.DueUS, r.Kinds = m.DeliverAt.UnixMicro(), r.Kinds|wire.KindDue
		if r.DueUS < 0 {
			r.DueUS = 0
		}
	}
	return nil
}

func (m *Msg) headers(r *wire.Record) error {
	if len(m.ID) > idBytesMax {
		return fault.New("invalid_argument", "an id has at most %d bytes", idBytesMax)
	}
	if m.ID != "" {
		r.Headers = append(r.Headers, wire.Field{Name: "lightq-id", Value: []byte(m.ID)})
	}
	if m.TTL < 0 || m.TTL > daysMax*24*time.Hour {
		return fault.New("invalid_argument", "the time to live is %v; it is 1 ms to %d days", m.TTL, daysMax)
	}
	if m.TTL > 0 {
		ms := int64((m.TTL + time.Millisecond - 1) / time.Millisecond)
		r.Headers = append(r.Headers, wire.Field{Name: "lightq-ttl-ms", Value: strconv.AppendInt(nil, ms, 10)})
	}
	for _, each := range m.Headers {
		if len(each.Name) < 1 || len(each.Name) > wire.HeaderNameBytesMax || len(each.Value) > math.MaxUint16 {
			return fault.New("invalid_argument", "the name of a header has 1 to %d bytes, its value at most %d", wire.HeaderNameBytesMax,
				math.MaxUint16)
		}
		if strings.HasPrefix(each.Name, "lightq-dead-") || each.Name == "lightq-ttl-ms" || each.Name == "lightq-id" {
			return fault.New("invalid_argument", "%q: use TTL and ID; the broker sets lightq-dead-*", each.Name)
		}
		r.Headers = append(r.Headers, wire.Field(each))
	}
	if len(r.Headers) > 0 {
		r.Kinds |= wire.KindHeaders
	}
	if len(r.Key) > wire.KeyBytesMax {
		return fault.New("invalid_argument", "the key has %d bytes; at most %d are allowed", len(r.Key), wire.KeyBytesMax)
	}
	if len(r.Headers) > wire.HeadersMax || r.SizeMax()-len(r.Body) > wire.AttributesBytesMax {
		return fault.New("invalid_argument", "a message has at most %d headers, and %d bytes of attributes", wire.HeadersMax,
			wire.AttributesBytesMax)
	}
	return nil
}

// Message is a received message. Settle each exactly once: Ack, Release, Retry or Dead. A later call does nothing.
// Goroutines may share a message.
type Message struct {
	Body         []byte
	Key          []byte
	Headers      []Header
	Offset       uint64
	Delivery     uint32    // how often it was delivered, including this time
	Time         time.Time // at which the log took it
	ProducerTime time.Time // as the producer stated it; zero: not stated
	Lost         uint64    // messages directly before it that are never delivered
	Expired      bool      // only in the results of Read

	consumer *Consumer // nil: of a Reader
	parent   context.Context
	ctx      context.Context // made when the program asks for it
	cancel   context.CancelFunc
	handOut  uint32
	size     int
	opens    int
	named    bool   // the broker was told that the program begins it
	namedAt  uint64 // with this frame of the link
	settled  bool
	revoked  bool
}

// Header returns the value of the first header with this name, or nil.
func (m *Message) Header(name string) []byte {
	for _, each := range m.Headers {
		if each.Name == name {
			return each.Value
		}
	}
	return nil
}

// messages makes messages of a delivery.
func messages(d wire.Delivered) (all []Message, base uint64, err error) {
	batch, err := wire.DecodeBatch(d.Batch)
	if err != nil {
		return nil, 0, err
	}
	all = make([]Message, len(batch.Records))
	at := time.UnixMicro(batch.AppendTimeUS)
	for i := range all {
		m, record := &all[i], &batch.Records[i]
		m.Body, m.Key, m.Offset, m.size = record.Body, record.Key, batch.BaseOffset+uint64(i), record.Bytes
		m.Delivery, m.handOut, m.Time, m.Expired = d.Delivery, d.HandOut, at, d.Expired
		if record.TimeUS != 0 {
			m.ProducerTime = time.UnixMicro(record.TimeUS)
		}
		for _, each := range record.Headers {
			m.Headers = append(m.Headers, Header(each))
		}
	}
	all[0].Lost = d.Lost
	return all, batch.BaseOffset, nil
}

// Context returns a context for the work on the message. It ends when the broker has taken the message back, when the
// message is settled, when the consumer is closed, and with the context that was given to Next or Handle.
func (m *Message) Context() context.Context {
	if m.consumer == nil {
		return context.Background()
	}
	return m.consumer.contextOf(m)
}

// Revoked tells whether the broker has taken the message back, or the connection has ended: the message goes to another
// consumer, or comes again.
func (m *Message) Revoked() bool {
	if m.consumer == nil {
		return false
	}
	m.consumer.driver.mu.Lock()
	defer m.consumer.driver.mu.Unlock()
	return m.revoked
}

// Ack tells that the message is processed: it is not delivered again. Acknowledgements are gathered for up to 0.1 s. Errors:
// revoked, closed, not_supported (a message of a Reader).
func (m *Message) Ack() error { return m.settle(settlement{how: ack}) }

// Release tells that the message was not begun, or is not at fault: it is delivered again at once, and this delivery does
// not count. Errors as of Ack.
func (m *Message) Release() error { return m.settle(settlement{how: release}) }

// Retry tells that the message failed: it is delivered again after the delay, or after the group's back-off if that is 0.
// Errors: invalid_argument, and those of Ack.
func (m *Message) Retry(delay time.Duration) error {
	return m.settle(settlement{how: retry, delay: delay})
}

// Dead tells that no consumer can process the message: it goes to the dead letters. At most 256 bytes of the reason are
// kept. Errors as of Ack.
func (m *Message) Dead(reason string) error { return m.settle(settlement{how: dead, reason: reason}) }

// Extend asks for so much time from now. Errors: invalid_argument, and those of Ack.
func (m *Message) Extend(d time.Duration) error { return m.settle(settlement{how: extend, delay: d}) }

func (m *Message) settle(s settlement) error {
	if m.consumer == nil {
		return fault.New("not_supported", "a message of a reader is not settled")
	}
	return m.consumer.settle(m, s)
}

// end ends the context of the work on the message. Requires: the consumer's lock.
func (m *Message) end() {
	if m.cancel != nil {
		m.cancel()
	}
	m.parent = nil
}
