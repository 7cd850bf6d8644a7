package lightq

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func is(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%v is not: %v", err, kind)
	}
}

func TestClosedTwiceAndUsedAfterIt(t *testing.T) {
	q := connected(t)
	in, out, ctx := consumerOf(t, q), producerOf(t, q), limited(t)
	send(t, out, "x")
	m := received(t, in)
	reader, err := q.Reader(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 2; i++ {
		for _, each := range []error{out.Close(ctx), in.Close(ctx), reader.Close(ctx)} {
			if each != nil {
				t.Error(each)
			}
		}
		q.Close()
	}
	is(t, out.Send(ctx, Msg{}), ErrClosed)
	is(t, out.Flush(ctx), ErrClosed)
	is(t, m.Ack(), ErrClosed)
	_, err = in.Receive(ctx)
	is(t, err, ErrClosed)
	_, err = in.Seek(ctx, First)
	is(t, err, ErrClosed)
	_, _, err = reader.Read(ctx, 0, 1)
	is(t, err, ErrClosed)
	_, err = q.Ping(ctx)
	is(t, err, ErrClosed)
	if in.Next(ctx) || !errors.Is(in.Err(), ErrClosed) || m.Context().Err() == nil {
		t.Error(in.Err())
	}
}

func TestGoroutinesShareEverything(t *testing.T) {
	q := connected(t)
	in, out := consumerOf(t, q), producerOf(t, q)
	const senders, each = 4, 200
	var mu sync.Mutex
	seen, all := map[uint64]bool{}, make(chan struct{})
	ctx, cancel := context.WithCancel(limited(t))
	var workers sync.WaitGroup
	for i := 0; i < senders; i++ {
		workers.Add(2)
		go func() {
			defer workers.Done()
			for n := 0; n < each; n++ {
				if err := out.Send(ctx, Msg{Body: []byte("m"), Key: []byte(strings.Repeat("k", n%2))}); err != nil {
					t.Error(err)
				}
			}
		}()
		go func() {
			defer workers.Done()
			err := in.Handle(ctx, func(_ context.Context, m *Message) error {
				mu.Lock()
				defer mu.Unlock()
				if seen[m.Offset] = true; len(seen) == senders*each {
					close(all)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	select {
	case <-all:
	case <-ctx.Done():
		t.Errorf("%d messages came", len(seen))
	}
	cancel()
	workers.Wait()
}

func TestCancelledInTheMiddleOfEverything(t *testing.T) {
	q := connected(t)
	for _, after := range []time.Duration{0, 500 * time.Microsecond, 3 * time.Millisecond, 15 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		out, err := q.Producer(ctx, "t")
		for err == nil {
			if err = out.SendSync(ctx, Msg{Body: []byte("x")}); err != nil {
				out.Close(ctx)
			}
		}
		is(t, err, ErrTimeout)
		in, err := q.Consumer(ctx, "t")
		if err == nil {
			t.Error("a consumer with an ended context")
			in.Close(ctx)
		}
		is(t, err, context.DeadlineExceeded)
		cancel()
		if _, err := q.Ping(limited(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestNoBrokerAndAWrongPassword(t *testing.T) {
	unused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	uri := URI("tcp://" + unused.Addr().String())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, silent := Connect(ctx, uri) // it listens, and says nothing
	is(t, silent, ErrTimeout)
	unused.Close()
	_, err = Connect(limited(t), uri)
	is(t, err, ErrConnectionLost)
	connected(t)
	wrong, err := Connect(limited(t), URI(theBroker.uri), User("nobody", "wrong"))
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	_, err = wrong.Producer(limited(t), "t")
	is(t, err, ErrUnauthorized)
}

func TestWrongArguments(t *testing.T) {
	q := connected(t)
	ctx := limited(t)
	_, err := q.Producer(ctx, "no name")
	is(t, err, ErrInvalidArgument)
	_, err = q.Producer(ctx, "missing")
	is(t, err, ErrNotFound)
	for _, option := range []ConsumerOption{Group("no group"), Prefetch(-1), From(Position{}), AckTimeout(-1), PrefetchBytes(0)} {
		_, err = q.Consumer(ctx, "t", option)
		is(t, err, ErrInvalidArgument)
	}
	out := producerOf(t, q)
	many := make([]Header, 65)
	for i := range many {
		many[i].Name = "n"
	}
	for _, m := range []Msg{{Key: make([]byte, 1025)}, {Headers: many}, {Headers: []Header{{}}}, {Headers: []Header{{Name: "lightq-dead-count"}}},
		{TTL: -1}, {Delay: time.Second}, {Delay: time.Second, DeliverAt: time.Now()}, {Delay: 4000 * 24 * time.Hour}, {ID: strings.Repeat("i", 129)},
		{Headers: []Header{{"a", make([]byte, 20_000)}, {"b", make([]byte, 20_000)}}}} {
		is(t, out.Send(ctx, m), ErrInvalidArgument)
	}
	is(t, out.Send(ctx, Msg{Body: make([]byte, 17<<20)}), ErrRefused)
	is(t, Confirm{}.Wait(ctx), ErrInvalidArgument)
	send(t, out, "still in use")
}

func TestPanicsOfTheProgram(t *testing.T) {
	q := connected(t)
	out := producerOf(t, q, OnSettled(func(Settled) { panic("in the callback") }))
	in := consumerOf(t, q)
	send(t, out, "x")
	until(t, "the error of the callback", func() bool {
		err := out.Flush(limitless)
		return err != nil && strings.Contains(err.Error(), "in the callback")
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was hidden")
			}
		}()
		in.Handle(limited(t), func(context.Context, *Message) error { panic("in the handler") })
	}()
	again := received(t, in)
	if again.Delivery != 2 || again.Ack() != nil {
		t.Errorf("%+v", again)
	}
}

func TestSettledTwice(t *testing.T) {
	q := connected(t)
	in, out := consumerOf(t, q), producerOf(t, q)
	send(t, out, "x")
	m := received(t, in)
	for _, err := range []error{m.Ack(), m.Retry(0), m.Dead("too late"), m.Ack()} {
		if err != nil {
			t.Error(err)
		}
	}
	if m.Context().Err() == nil {
		t.Error("the work on a settled message goes on")
	}
}

func TestARevokedMessageEndsItsContext(t *testing.T) {
	q := connected(t)
	in, out := consumerOf(t, q, AckTimeout(100*time.Millisecond)), producerOf(t, q)
	send(t, out, "x")
	m := received(t, in)
	select {
	case <-m.Context().Done():
	case <-limited(t).Done():
		t.Fatal("the context did not end")
	}
	is(t, m.Ack(), ErrRevoked)
	if !m.Revoked() {
		t.Error("not revoked")
	}
}

func TestASilentBrokerIsNoticed(t *testing.T) {
	q := connected(t)
	q.heartbeat = 100 * time.Millisecond
	out := producerOf(t, q)
	if err := theBroker.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer theBroker.process.Signal(syscall.SIGCONT)
	until(t, "the end of the connection", func() bool {
		out.driver.mu.Lock()
		defer out.driver.mu.Unlock()
		return out.driver.lastErr != nil && strings.Contains(out.driver.lastErr.Error(), "sent nothing")
	})
	theBroker.process.Signal(syscall.SIGCONT)
	send(t, out, "later")
}

func TestGarbageCollectedWhileOpen(t *testing.T) {
	q := connected(t)
	before := runtime.NumGoroutine()
	for i := 0; i < 3; i++ {
		if _, err := q.Producer(limited(t), "t"); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Consumer(limited(t), "t"); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the end of the connections", func() bool {
		runtime.GC()
		return runtime.NumGoroutine() <= before
	})
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	q := connected(t)
	for i := 0; i < 3; i++ {
		in, out := consumerOf(t, q), producerOf(t, q, OnSettled(func(Settled) {}))
		send(t, out, "x")
		received(t, in).Ack()
		for _, err := range []error{in.Close(limited(t)), out.Close(limited(t))} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	q.Close()
	until(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before })
}
