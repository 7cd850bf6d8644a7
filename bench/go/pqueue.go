//go:build pqueue

package main

// The real github.com/linxGnu/pqueue. It measures segments in entries, and writes each entry immediately.

import (
	"errors"
	"os"

	"github.com/linxGnu/pqueue"
	"github.com/linxGnu/pqueue/entry"
)

type pqueueQueue struct {
	opened pqueue.Queue
	last   entry.Entry
}

func init() { openers["pqueue"] = openPqueue }

func openPqueue(chosen settings) (queue, error) {
	opened, err := pqueue.New(chosen.directory, uint32(chosen.entriesOf(pqueueEntries)))
	if err != nil {
		return nil, err
	}
	return &pqueueQueue{opened: opened}, nil
}

func (q *pqueueQueue) enqueue(message []byte) error { return q.opened.Enqueue(message) }

// dequeue cannot distinguish an empty queue from a damaged one: pqueue returns "nothing" for both.
func (q *pqueueQueue) dequeue() ([]byte, error) {
	if !q.opened.Dequeue(&q.last) {
		return nil, errEmpty
	}
	return q.last, nil
}

// close ignores files that are already closed: pqueue closes a full last segment twice.
func (q *pqueueQueue) close() error {
	if err := q.opened.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
