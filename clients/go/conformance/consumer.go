package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"time"

	"lightq"
)

const (
	reportedMax = 500 // messages in a line
	gatherTime  = time.Millisecond
)

type consumer struct {
	consumer *lightq.Consumer
	held     map[uint64]*lightq.Message
}

// position is first, next, last or an offset.
func position(value any) lightq.Position {
	switch value := value.(type) {
	case float64:
		return lightq.At(uint64(value))
	case string:
		return map[string]lightq.Position{"first": lightq.First, "next": lightq.Next, "last": lightq.Last}[value]
	}
	return lightq.First
}

func openConsumer(ctx context.Context, q *lightq.Client, c *command) (*consumer, error) {
	options := []lightq.ConsumerOption{lightq.Group(c.Group), lightq.From(position(c.From)), lightq.Prefetch(c.Prefetch),
		lightq.AckTimeout(time.Duration(c.AckTimeoutMS) * time.Millisecond)}
	if c.Own {
		options = append(options, lightq.Own())
	}
	made, err := q.Consumer(ctx, c.Topic, options...)
	return &consumer{made, map[uint64]*lightq.Message{}}, err
}

func openInto(c *command) (*os.File, error) {
	return os.OpenFile(c.Into, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

func described(messages []*lightq.Message) []line {
	all := []line{}
	for _, m := range messages {
		said := line{"offset": m.Offset, "bytes": len(m.Body), "delivery": m.Delivery}
		if len(m.Key) > 0 {
			said["key"] = string(m.Key)
		}
		var headers [][2]string
		for _, each := range m.Headers {
			headers = append(headers, [2]string{each.Name, string(each.Value)})
		}
		if headers != nil {
			said["headers"] = headers
		}
		if m.Expired {
			said["expired"] = true
		}
		all = append(all, said)
	}
	return all
}

func (k *consumer) do(c *command) (line, error) {
	ctx, cancel := c.context()
	defer cancel()
	switch c.Do {
	case "receive":
		return k.receive(c)
	case "settle":
		for _, offset := range c.Offsets {
			if m := k.held[offset]; m != nil {
				delete(k.held, offset)
				if err := settle(m, c.How, c); err != nil {
					return nil, err
				}
			}
		}
		return nil, k.consumer.Flush(ctx)
	case "revoked":
		return k.revoked(ctx), nil
	case "seek":
		offset, err := k.consumer.Seek(ctx, position(c.To))
		return line{"offset": offset}, err
	}
	return nil, k.consumer.Close(ctx)
}

func (k *consumer) receive(c *command) (line, error) {
	file, err := openInto(c)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	into := bufio.NewWriterSize(file, 1<<20)
	received := 0
	for received < c.Count {
		waiting, err := k.some(c, min(c.Count-received, reportedMax))
		received += len(waiting)
		for _, each := range waiting {
			into.Write(each.Body)
		}
		if into.Flush() != nil {
			os.Exit(1)
		}
		if reportErr := k.report(waiting, c); err == nil {
			err = reportErr
		}
		if err != nil || len(waiting) == 0 {
			return line{"received": received}, err
		}
	}
	return line{"received": received}, nil
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// some receives messages: it waits for the first one only.
func (k *consumer) some(c *command, most int) (waiting []*lightq.Message, err error) {
	wait := c.time()
	for len(waiting) < most {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		m, err := k.consumer.Receive(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return waiting, nil
		}
		if err != nil {
			return waiting, err
		}
		waiting, wait = append(waiting, m), gatherTime
	}
	return waiting, nil
}

// report reports messages, and settles them only after that.
func (k *consumer) report(messages []*lightq.Message, c *command) error {
	if len(messages) > 0 {
		writeLine(line{"messages": described(messages)})
	}
	for _, each := range messages {
		if c.Settle == "" {
			k.held[each.Offset] = each
		} else if err := settle(each, c.Settle, c); err != nil {
			return err
		}
	}
	return nil
}

// settle settles a message. The driver knows that a revoked one comes again.
func settle(m *lightq.Message, how string, c *command) error {
	err := error(nil)
	switch how {
	case "ack":
		err = m.Ack()
	case "release":
		err = m.Release()
	case "retry":
		err = m.Retry(time.Duration(c.DelayMS) * time.Millisecond)
	case "dead":
		err = m.Dead(c.Reason)
	}
	if errors.Is(err, lightq.ErrRevoked) {
		return nil
	}
	return err
}

// revoked waits for the end of the work on a message.
func (k *consumer) revoked(ctx context.Context) line {
	for _, each := range k.held {
		select {
		case <-each.Context().Done():
		case <-ctx.Done():
		}
		break
	}
	offsets := []uint64{}
	for offset, each := range k.held {
		if each.Revoked() {
			offsets = append(offsets, offset)
		}
	}
	return line{"revoked": offsets}
}
