package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"lightq"
)

const outcomesWait = time.Second // after a flush the callbacks may come a little later

// Codes of messages that may be stored or not.
var unknown = map[string]bool{"unknown_producer": true, "timeout": true, "cancelled": true, "closed": true, "unauthorized_access": true,
	"topic_not_found": true, "topic_deleted": true, "fenced": true}

// outcomes collects the fates of a producer's messages until the next reply.
type outcomes struct {
	mu     sync.Mutex
	ranges [][4]any
	count  uint64
}

func (o *outcomes) settled(s lightq.Settled) {
	fate, code := "confirmed", any(nil)
	if s.Err != nil {
		word := codeOf(s.Err)
		if fate, code = "refused", word; unknown[word] {
			fate = "unknown"
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ranges = append(o.ranges, [4]any{s.Begin, s.End, fate, code})
	o.count += s.End - s.Begin
}

func (o *outcomes) take() [][4]any {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.ranges
	o.ranges = nil
	if taken == nil {
		taken = [][4]any{}
	}
	return taken
}

// until waits until so many fates are known.
func (o *outcomes) until(count uint64) {
	for deadline := time.Now().Add(outcomesWait); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		o.mu.Lock()
		isDone := o.count >= count
		o.mu.Unlock()
		if isDone {
			return
		}
	}
}

type producer struct {
	producer *lightq.Producer
	outcomes *outcomes
	sent     uint64
}

func openProducer(ctx context.Context, q *lightq.Client, c *command) (*producer, error) {
	made := &producer{outcomes: &outcomes{}}
	options := []lightq.ProducerOption{lightq.OnSettled(made.outcomes.settled), lightq.ProducerIdentity(c.ProducerID, c.Epoch)}
	switch c.Level {
	case "received":
		options = append(options, lightq.ConfirmLevel(lightq.Received))
	case "flushed":
		options = append(options, lightq.ConfirmLevel(lightq.Flushed))
	}
	if c.Delayed {
		options = append(options, lightq.Delayed())
	}
	if c.RetryRefused != nil && !*c.RetryRefused {
		options = append(options, lightq.GiveUpRefused())
	}
	var err error
	made.producer, err = q.Producer(ctx, c.Topic, options...)
	return made, err
}

func (p *producer) do(c *command) (done line, err error) {
	ctx, cancel := c.context()
	defer cancel()
	done = line{}
	switch c.Do {
	case "produce":
		before := p.sent
		err = p.produce(c)
		done["sent"] = p.sent - before
	case "flush":
		err = p.producer.Flush(ctx)
	case "close":
		err = p.producer.Close(ctx)
	}
	if c.Do != "produce" && !errors.Is(err, lightq.ErrTimeout) {
		p.outcomes.until(p.sent)
	}
	done["outcomes"] = p.outcomes.take()
	return done, err
}

func (p *producer) produce(c *command) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	bodies := bufio.NewReaderSize(file, 1<<20)
	if c.Sizes != nil {
		c.Count = len(c.Sizes)
	}
	for i := 0; i < c.Count; i++ {
		size := c.Size
		if c.Sizes != nil {
			size = c.Sizes[i]
		}
		m := lightq.Msg{Body: make([]byte, size), Delay: time.Duration(c.DelayMS) * time.Millisecond,
			TTL: time.Duration(c.TTLMS) * time.Millisecond}
		if _, err := io.ReadFull(bodies, m.Body); err != nil {
			return err
		}
		if len(c.Keys) > 0 {
			m.Key = []byte(c.Keys[i%len(c.Keys)])
		}
		for _, each := range c.Headers {
			m.Headers = append(m.Headers, lightq.Header{Name: each[0], Value: []byte(each[1])})
		}
		if err := p.producer.Send(context.Background(), m); err != nil {
			return err
		}
		p.sent++
	}
	return nil
}
