package main

import (
	"fmt"
	"time"

	"github.com/grandecola/bigqueue"
)

// queue is what the driver asks of an embedded queue. The slice that dequeue returns is valid until the next call.
type queue interface {
	enqueue(message []byte) error
	dequeue() ([]byte, error)
	close() error
}

// settings are the ones that the queues have in common.
type settings struct {
	directory      string
	segmentBytes   int
	mappedSegments int
	flushMessages  int64         // 0: not by number
	flushInterval  time.Duration // 0: not by time
}

// openers holds the queues by name.
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
