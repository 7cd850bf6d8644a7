// Command main is NATS's client for Go in suite `clients`, as clients/client_program.hpp specifies. Mode `core`: nothing
// is confirmed; mode `jetstream`: a stream in memory, 10,000 publishes under way.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"lightq_bench_clients/numbered"
)

const (
	patience = 30 * time.Second
	underWay = 10_000
	fetched  = 1000
)

type task struct {
	topic string
	bytes int
	count uint64
}

func produceCore(c *nats.Conn, t task) error {
	messages := numbered.Make(t.bytes)
	for i := uint64(0); i < t.count; i++ {
		if err := c.Publish(t.topic, messages.At(i)); err != nil {
			return err
		}
	}
	return c.FlushTimeout(patience)
}

func produceStream(c *nats.Conn, t task) error {
	stream, err := c.JetStream(nats.PublishAsyncMaxPending(underWay))
	if err != nil {
		return err
	}
	messages := numbered.Make(t.bytes)
	for i := uint64(0); i < t.count; i++ {
		if _, err := stream.PublishAsync(t.topic, append([]byte(nil), messages.At(i)...)); err != nil {
			return err
		}
	}
	select {
	case <-stream.PublishAsyncComplete():
		return nil
	case <-time.After(patience):
		return errors.New("no confirm in time")
	}
}

// check compares messages with the expected ones, and takes the time.
type check struct {
	task
	messages numbered.Messages
	next     uint64
	begun    time.Time
}

func (c *check) take(body []byte) error {
	if err := c.messages.Check(c.next, body); err != nil {
		return err
	}
	if c.next == c.count/10 {
		c.begun = time.Now()
	}
	c.next++
	return nil
}

func (c *check) report() { fmt.Printf("received %.9f\n", time.Since(c.begun).Seconds()) }

func consumeCore(c *nats.Conn, t task) error {
	in, err := c.SubscribeSync(t.topic)
	if err != nil {
		return err
	}
	if err := in.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	if err := c.FlushTimeout(patience); err != nil {
		return err
	}
	fmt.Println("ready")
	checked := &check{task: t, messages: numbered.Make(t.bytes)}
	for checked.next < t.count {
		m, err := in.NextMsg(patience)
		if err != nil {
			return err
		}
		if err := checked.take(m.Data); err != nil {
			return err
		}
	}
	checked.report()
	return nil
}

func consumeStream(c *nats.Conn, t task) error {
	stream, err := c.JetStream()
	if err != nil {
		return err
	}
	config := &nats.StreamConfig{Name: t.topic, Subjects: []string{t.topic}, Storage: nats.MemoryStorage}
	if _, err := stream.AddStream(config); err != nil {
		return err
	}
	in, err := stream.PullSubscribe(t.topic, "bench", nats.MaxAckPending(2*underWay))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	checked := &check{task: t, messages: numbered.Make(t.bytes)}
	for checked.next < t.count {
		several, err := in.Fetch(fetched, nats.MaxWait(patience))
		if err != nil {
			return err
		}
		for _, m := range several {
			if err := checked.take(m.Data); err != nil {
				return err
			}
			if err := m.Ack(); err != nil {
				return err
			}
		}
	}
	checked.report()
	if err := c.FlushTimeout(patience); err != nil {
		return err
	}
	// The server counts acknowledgements in the background.
	for giveUp := time.Now().Add(patience); ; {
		state, err := in.ConsumerInfo()
		if err != nil {
			return err
		}
		if state.NumAckPending == 0 {
			return stream.DeleteStream(t.topic)
		}
		if time.Now().After(giveUp) {
			return errors.New("the server lacks acknowledgements")
		}
	}
}

func run(arguments []string) error {
	bytes, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	count, err := strconv.ParseUint(arguments[4], 10, 64)
	if err != nil {
		return err
	}
	c, err := nats.Connect(os.Getenv("NATS_URL"))
	if err != nil {
		return err
	}
	defer c.Close()
	work := map[string]func(*nats.Conn, task) error{
		"produce core": produceCore, "produce jetstream": produceStream,
		"consume core": consumeCore, "consume jetstream": consumeStream,
	}[arguments[0]+" "+arguments[1]]
	if work == nil {
		return fmt.Errorf("there is no role %s with mode %s", arguments[0], arguments[1])
	}
	return work(c, task{arguments[2], bytes, count})
}

func main() {
	if len(os.Args) != 6 {
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
