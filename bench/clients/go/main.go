// Command main is the Go client for suite `clients`, as clients/client_program.hpp specifies.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"lightq"
	"lightq_bench_clients/numbered"
)

const patience = 30 * time.Second

type task struct {
	topic string
	bytes int
	count uint64
}

func produce(ctx context.Context, q *lightq.Client, t task) error {
	out, err := q.Producer(ctx, t.topic)
	if err != nil {
		return err
	}
	messages := numbered.Make(t.bytes)
	for i := uint64(0); i < t.count; i++ {
		if err := out.Send(ctx, lightq.Msg{Body: messages.At(i)}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return out.Close(ctx)
}

func consume(ctx context.Context, q *lightq.Client, t task) error {
	in, err := q.Consumer(ctx, t.topic, lightq.Group("bench"))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	messages := numbered.Make(t.bytes)
	var begun time.Time
	for i := uint64(0); i < t.count; i++ {
		if !in.Next(ctx) {
			return fmt.Errorf("message %d: %w", i, in.Err())
		}
		m := in.Message()
		if err := messages.Check(i, m.Body); err != nil {
			return err
		}
		if err := m.Ack(); err != nil {
			return err
		}
		if i == t.count/10 {
			begun = time.Now()
		}
	}
	fmt.Printf("received %.9f\n", time.Since(begun).Seconds())
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return in.Close(ctx)
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
	ctx := context.Background()
	q, err := lightq.Connect(ctx, lightq.FromEnv())
	if err != nil {
		return err
	}
	defer q.Close()
	work := consume
	if arguments[0] == "produce" {
		work = produce
	}
	return work(ctx, q, task{arguments[2], bytes, count})
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
