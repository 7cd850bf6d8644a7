// Command lightq_bench_go runs embedded queues written in Go. lightq_bench_log runs it beside LightQ, round
// by round.
//
// It appends `count` messages of `size` bytes to a queue in an empty directory, then reads and checks all of
// them. Before each of the two it does a tenth of that, which does not count. It prints one JSON object per
// line for each operation: {"queue","operation","size","count","ns_per_operation","mb_per_second"}. It exits
// with 1 and a message on standard error if an operation fails or a message was altered.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"
)

type result struct {
	Queue       string  `json:"queue"`
	Operation   string  `json:"operation"`
	Size        int     `json:"size"`
	Count       int     `json:"count"`
	Nanoseconds float64 `json:"ns_per_operation"`
	Megabytes   float64 `json:"mb_per_second"`
}

// messages makes the messages of a run, and checks message i: its number in the first eight bytes
// (little-endian), then bytes that depend only on their position.
type messages struct{ expected []byte }

func newMessages(size int) messages {
	made := messages{make([]byte, size)}
	for i := range made.expected {
		made.expected[i] = byte(i*131 + i>>8)
	}
	return made
}

func (m messages) at(number int) []byte {
	binary.LittleEndian.PutUint64(m.expected, uint64(number))
	return m.expected
}

// are compares without writing: a load that is wider than the store before it must wait for that store.
func (m messages) are(number int, message []byte) bool {
	return len(message) == len(m.expected) && binary.LittleEndian.Uint64(message) == uint64(number) &&
		bytes.Equal(message[8:], m.expected[8:])
}

func appendMessages(to queue, made messages, first, count int) error {
	for i := first; i < first+count; i++ {
		if err := to.enqueue(made.at(i)); err != nil {
			return fmt.Errorf("message %d was not appended: %w", i, err)
		}
	}
	return nil
}

func readMessages(from queue, made messages, first, count int) error {
	for i := first; i < first+count; i++ {
		message, err := from.dequeue()
		if err != nil {
			return fmt.Errorf("message %d was not read: %w", i, err)
		}
		if !made.are(i, message) {
			return fmt.Errorf("message %d came back altered", i)
		}
	}
	return nil
}

type plan struct {
	queue string
	size  int
	count int
}

func (p plan) measure(operation string, work func(first, count int) error) error {
	warm := max(1, p.count/10)
	if err := work(0, warm); err != nil {
		return err
	}
	begin := time.Now()
	if err := work(warm, p.count); err != nil {
		return err
	}
	took := float64(time.Since(begin).Nanoseconds())
	line := result{p.queue, operation, p.size, p.count, took / float64(p.count),
		float64(p.size) * float64(p.count) * 1e3 / took}
	return json.NewEncoder(os.Stdout).Encode(line)
}

func run(p plan, chosen settings) (err error) {
	if p.size < 8 || p.count < 1 {
		return errors.New("at least 8 bytes and one message are needed")
	}
	opened, err := open(p.queue, chosen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.close()) }()
	made := newMessages(p.size)
	if err := p.measure("append", func(first, count int) error {
		return appendMessages(opened, made, first, count)
	}); err != nil {
		return err
	}
	return p.measure("read", func(first, count int) error { return readMessages(opened, made, first, count) })
}

func printQueues() {
	names := make([]string, 0, len(openers))
	for name := range openers {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println(strings.Join(names, "\n"))
}

func main() {
	var p plan
	var chosen settings
	list := flag.Bool("queues", false, "print the queues that this driver has, one a line, and do nothing else")
	flag.StringVar(&p.queue, "queue", "bigqueue", "which queue")
	flag.StringVar(&chosen.directory, "directory", "", "an empty directory")
	flag.IntVar(&p.size, "size", 128, "bytes of a message")
	flag.IntVar(&p.count, "count", 1000, "messages")
	flag.IntVar(&chosen.segmentBytes, "segment-bytes", 64<<20, "of a segment, arena or file")
	flag.IntVar(&chosen.segmentMessages, "segment-messages", 0, "where that is how a queue measures; 0: its default")
	flag.IntVar(&chosen.mappedSegments, "mapped-segments", 3, "segments in memory at most")
	flag.Int64Var(&chosen.flushMessages, "flush-messages", 0, "flush after so many messages; 0: not by number")
	flag.DurationVar(&chosen.flushInterval, "flush-interval", 0, "flush after so long; 0: not by time")
	flag.Parse()
	if *list {
		printQueues()
		return
	}
	if err := run(p, chosen); err != nil {
		fmt.Fprintln(os.Stderr, "lightq_bench_go:", err)
		os.Exit(1)
	}
}
