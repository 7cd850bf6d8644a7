package lightq

import (
	"math"
	"regexp"
	"time"

	"lightq/internal/control"
	"lightq/internal/fault"
)

const (
	timeoutDefault = 30 * time.Second
	nameBytesMax   = 128
	fixedPrefetch  = 1000
	prefetchMost   = 1_000_000_000
	prefetchBytes  = 1 << 20
)

var topicName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func checkName(name, what string) error {
	if !topicName.MatchString(name) {
		return fault.New("invalid_argument", "%s is %q; it has 1 to 128 of A-Z a-z 0-9 . _ - and begins with none of . -", what, name)
	}
	return nil
}

// Option is an option of Connect.
type Option func(*clientOptions)

type clientOptions struct {
	place     control.Place
	transport string
	name      string
	timeout   time.Duration
}

// FromEnv takes values that other options leave out from the environment (LIGHTQ_BROKER, LIGHTQ_USER, LIGHTQ_PASSWORD and the others
// of the lightq command), and else finds the broker of this machine and its administrator's password in files, as the lightq
// command does.
func FromEnv() Option { return func(o *clientOptions) { o.place.Discovers = true } }

// URI is the address of the control socket: tcp://HOST:PORT or ipc://PATH. Without it: tcp://127.0.0.1:5000.
func URI(uri string) Option { return func(o *clientOptions) { o.place.URI = uri } }

// User gives the credentials of a user.
func User(name, password string) Option {
	return func(o *clientOptions) { o.place.User, o.place.Password = name, password }
}

// Admin gives the credentials of an administrator, for commands that need them.
func Admin(name, password string) Option {
	return func(o *clientOptions) { o.place.Admin, o.place.AdminPassword = name, password }
}

// ServerKey is the broker's public key, as `lightq broker key` prints it. Everything is encrypted then.
func ServerKey(key string) Option { return func(o *clientOptions) { o.place.ServerKey = key } }

// ClientKeyFile names a private file with this client's secret key, for a broker with a list of clients.
func ClientKeyFile(name string) Option {
	return func(o *clientOptions) { o.place.ClientKeyFile = name }
}

// Insecure permits to send passwords to another machine in clear.
func Insecure() Option { return func(o *clientOptions) { o.place.Insecure = true } }

// DataDir is where FromEnv looks for the broker's files.
func DataDir(name string) Option { return func(o *clientOptions) { o.place.DataDir = name } }

// Transport is tcp, or ipc for the broker's Unix socket. By default it is ipc if the control socket is one, and nothing is
// encrypted.
func Transport(name string) Option { return func(o *clientOptions) { o.transport = name } }

// Name is shown in the broker's logs; at most 128 bytes.
func Name(name string) Option { return func(o *clientOptions) { o.name = name } }

// Timeout bounds calls with a context without a deadline, except Send, Next, Receive and Handle; 30 s by default.
func Timeout(d time.Duration) Option { return func(o *clientOptions) { o.timeout = d } }

// Level is the meaning of a confirm.
type Level uint8

// Levels of confirms.
const (
	TopicDefault Level = iota // Flushed if the topic is on disk, else Received
	Received                  // the message is in the log
	Flushed                   // the message survives a power cut
)

// ProducerOption is an option of Client.Producer.
type ProducerOption func(*producerOptions)

type producerOptions struct {
	level     uint8
	delayed   bool
	id        uint64
	epoch     uint16
	givesUp   bool
	resends   bool
	onSettled func(Settled)
}

// ConfirmLevel chooses when a message counts as stored.
func ConfirmLevel(level Level) ProducerOption {
	return func(o *producerOptions) { o.level = uint8(level) }
}

// Delayed sends to the topic's schedule: messages may have Delay or DeliverAt.
func Delayed() ProducerOption { return func(o *producerOptions) { o.delayed = true } }

// ProducerIdentity continues with the identity of an earlier producer, see Producer.Identity. A greater epoch takes the id
// over: the earlier producer gets ErrFenced.
func ProducerIdentity(id uint64, epoch uint16) ProducerOption {
	return func(o *producerOptions) { o.id, o.epoch = id, epoch }
}

// GiveUpRefused gives messages up that a full topic or disk refuses. By default they are sent again later.
func GiveUpRefused() ProducerOption { return func(o *producerOptions) { o.givesUp = true } }

// ResendInDoubt sends messages again of which the broker does not know whether it has stored them. They may be stored twice.
func ResendInDoubt() ProducerOption { return func(o *producerOptions) { o.resends = true } }

// Settled tells the fate of the messages [Begin, End), counted from 0 in the order of sending.
type Settled struct {
	Begin, End uint64
	Err        error // nil: stored
}

// OnSettled calls back when the fates of messages are known, in a goroutine of its own, one call after the other. Calls may
// come after Flush has returned. After a panic of the function the next Flush returns an error.
func OnSettled(call func(Settled)) ProducerOption {
	return func(o *producerOptions) { o.onSettled = call }
}

// Position is where a group or a cursor begins.
type Position struct {
	kind  uint8
	value uint64
}

// Positions of a topic.
var (
	First = Position{kind: 1} // the oldest message
	Next  = Position{kind: 2} // the end
	Last  = Position{kind: 3} // the newest message
)

// At is the message with this offset, or the nearest one.
func At(offset uint64) Position { return Position{4, offset} }

// Since is the first message that the log took then or later.
func Since(t time.Time) Position {
	if us := t.UnixMicro(); us > 0 {
		return Position{5, uint64(us)}
	}
	return Position{5, 0}
}

// ConsumerOption is an option of Client.Consumer.
type ConsumerOption func(*consumerOptions)

type consumerOptions struct {
	group         string
	own           bool
	start         Position
	holds         bool
	automatic     bool
	prefetch      int
	prefetchBytes int
	ackTimeout    time.Duration
}

// Group names the group, between the members of which the broker divides the messages; without it: default. With Own it names the cursor.
func Group(name string) ConsumerOption { return func(o *consumerOptions) { o.group = name } }

// Own reads with a cursor of the consumer's own, which receives every message. Without a name it ends with the consumer.
func Own() ConsumerOption { return func(o *consumerOptions) { o.own = true } }

// From is where a group or cursor begins that does not exist yet; First by default.
func From(start Position) ConsumerOption { return func(o *consumerOptions) { o.start = start } }

// Holds lets the cursor keep messages from being dropped.
func Holds() ConsumerOption { return func(o *consumerOptions) { o.holds = true } }

// Automatic counts messages as processed when the broker sends them.
func Automatic() ConsumerOption { return func(o *consumerOptions) { o.automatic = true } }

// Prefetch is the number of messages that wait in the client or are worked on, 1 to 1,000,000,000. By default a member of a
// group adapts it to 0.1 s of its work.
func Prefetch(messages int) ConsumerOption { return func(o *consumerOptions) { o.prefetch = messages } }

// PrefetchBytes bounds the bytes of these messages; 1 MiB by default.
func PrefetchBytes(bytes int) ConsumerOption {
	return func(o *consumerOptions) { o.prefetchBytes = bytes }
}

// AckTimeout is how long the program may work on a message before the broker takes it back; by default the broker's.
func AckTimeout(d time.Duration) ConsumerOption { return func(o *consumerOptions) { o.ackTimeout = d } }

func consumerOptionsOf(topic string, options []ConsumerOption) (consumerOptions, error) {
	o := consumerOptions{start: First, prefetchBytes: prefetchBytes}
	for _, each := range options {
		each(&o)
	}
	if err := checkName(topic, "the topic"); err != nil {
		return o, err
	}
	if o.group != "" {
		if err := checkName(o.group, "the group"); err != nil {
			return o, err
		}
	}
	if o.prefetch < 0 || o.prefetch > prefetchMost || o.prefetchBytes < 1 || o.prefetchBytes > math.MaxInt32 {
		return o, fault.New("invalid_argument", "the prefetch is %d messages and %d bytes; it is 1 to %d messages and 1 to %d bytes",
			o.prefetch, o.prefetchBytes, prefetchMost, math.MaxInt32)
	}
	if o.start.kind == 0 {
		return o, fault.New("invalid_argument", "the position is empty; use First, Next, Last, At or Since")
	}
	return o, nil
}
