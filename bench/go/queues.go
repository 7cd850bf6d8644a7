package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/grandecola/bigqueue"
)

// queue is the driver's interface to an embedded queue. The slice that dequeue returns is valid until the
// next call.
type queue interface {
	enqueue(message []byte) error
	dequeue() ([]byte, error)
	close() error
}

var errEmpty = errors.New("the queue is empty")

// settings are common to all queues.
type settings struct {
	directory       string
	segmentBytes    int
	segmentMessages int // for queues that measure segments in messages; 0: their default
	mappedSegments  int
	flushMessages   int64         // 0: no flush by number
	flushInterval   time.Duration // 0: no flush by time
}

func (chosen settings) entriesOf(byDefault int) int {
	if chosen.segmentMessages > 0 {
		return chosen.segmentMessages
	}
	return byDefault
}

// openers contains the queues by name. Files with a build tag add "pqueue" (tag pqueue) and "satellite" (tag
// satellite). go.mod does not name their modules, because they are not available everywhere.
var openers = map[string]func(settings) (queue, error){
	"bigqueue":        openBigqueue,
	"pqueue-steps":    openPqueueSteps,
	"satellite-steps": openSatelliteSteps,
}

func open(name string, chosen settings) (queue, error) {
	opener, known := openers[name]
	if !known {
		return nil, fmt.Errorf("there is no queue %q", name)
	}
	return opener(chosen)
}

type bigqueueQueue struct{ *bigqueue.MmapQueue }

func openBigqueue(chosen settings) (queue, error) {
	opened, err := bigqueue.NewMmapQueue(chosen.directory, bigqueue.SetArenaSize(chosen.segmentBytes),
		bigqueue.SetMaxInMemArenas(chosen.mappedSegments), bigqueue.SetPeriodicFlushOps(chosen.flushMessages),
		bigqueue.SetPeriodicFlushDuration(chosen.flushInterval))
	if err != nil {
		return nil, err
	}
	return bigqueueQueue{opened}, nil
}

func (q bigqueueQueue) enqueue(message []byte) error { return q.Enqueue(message) }
func (q bigqueueQueue) dequeue() ([]byte, error)     { return q.Dequeue() }
func (q bigqueueQueue) close() error                 { return q.Close() }
