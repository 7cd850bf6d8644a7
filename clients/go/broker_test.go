package lightq

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	stuck         = 20 * time.Second
	adminPassword = "a secret of the tests"
)

// theBroker is a real broker for all tests. It has the topic t.
var theBroker struct {
	uri, data string
	process   *os.Process
}

func TestMain(m *testing.M) {
	code, err := withBroker(os.Getenv("LIGHTQ_BINARY"), m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withBroker(binary string, run func() int) (int, error) {
	if binary == "" {
		return run(), nil
	}
	directory, err := os.MkdirTemp("", "lq-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(directory)
	theBroker.data = filepath.Join(directory, "data")
	command := exec.Command(binary, "broker", "--data-dir", theBroker.data, "--control", "tcp://127.0.0.1:0")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + directory, "LIGHTQ_HTTP=off", "LIGHTQ_ADMIN_PASSWORD=" + adminPassword}
	if err := command.Start(); err != nil {
		return 1, err
	}
	defer func() {
		command.Process.Signal(syscall.SIGTERM)
		command.Wait()
	}()
	theBroker.process = command.Process
	for deadline := time.Now().Add(stuck); theBroker.uri == ""; time.Sleep(5 * time.Millisecond) {
		var found struct {
			ControlURI string `json:"control_uri"`
		}
		data, _ := os.ReadFile(filepath.Join(theBroker.data, "broker.json"))
		if json.Unmarshal(data, &found) == nil {
			theBroker.uri = found.ControlURI
		}
		if time.Now().After(deadline) {
			return 1, fmt.Errorf("the broker did not start")
		}
	}
	q, err := Connect(context.Background(), URI(theBroker.uri), Admin("lightq_admin", adminPassword))
	if err != nil {
		return 1, err
	}
	defer q.Close()
	for _, topic := range []string{"t", "orders"} {
		if _, err := q.CreateTopic(context.Background(), topic, "file", nil); err != nil {
			return 1, err
		}
	}
	return run(), nil
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	t.Cleanup(cancel)
	return ctx
}

// connected returns a client of the real broker.
func connected(t *testing.T) *Client {
	t.Helper()
	if theBroker.uri == "" {
		t.Skip("LIGHTQ_BINARY names no broker")
	}
	q, err := Connect(limited(t), URI(theBroker.uri), Admin("lightq_admin", adminPassword))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

func producerOf(t *testing.T, q *Client, options ...ProducerOption) *Producer {
	t.Helper()
	out, err := q.Producer(limited(t), "t", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close(limitless) })
	return out
}

var limitless = context.Background()

var groups int64

// consumerOf returns a consumer of a group of its own, which begins with the messages that are sent from now on.
func consumerOf(t *testing.T, q *Client, options ...ConsumerOption) *Consumer {
	t.Helper()
	group := fmt.Sprintf("g%d", atomic.AddInt64(&groups, 1))
	in, err := q.Consumer(limited(t), "t", append([]ConsumerOption{Group(group), From(Next)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(limitless) })
	return in
}

func received(t *testing.T, in *Consumer) *Message {
	t.Helper()
	m, err := in.Receive(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func send(t *testing.T, out *Producer, bodies ...string) {
	t.Helper()
	for _, each := range bodies {
		if err := out.SendSync(limited(t), Msg{Body: []byte(each)}); err != nil {
			t.Fatal(err)
		}
	}
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(stuck); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in time: ", what)
		}
	}
}
