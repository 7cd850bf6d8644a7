//go:build satellite

package main

// The real mmap queue of Apache SkyWalking Satellite. It stores events: a message is stored as the bytes of a
// trace segment, the simplest kind of event. The location of its files depends only on the working directory,
// so that is changed while the queue is open.

import (
	"errors"
	"math"
	"os"
	"time"

	"github.com/apache/skywalking-satellite/plugins/queue/mmap"
	v1 "skywalking.apache.org/repo/goapi/satellite/data/v1"
)

const (
	neverMilliseconds = 24 * 3600 * 1000
	eventHeadBytes    = 1024 // at most, besides the message
)

type satelliteQueue struct {
	opened     mmap.Queue
	comingFrom string
}

func init() { openers["satellite"] = openSatellite }

func openSatellite(chosen settings) (queue, error) {
	comingFrom, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(chosen.directory); err != nil {
		return nil, err
	}
	q := &satelliteQueue{comingFrom: comingFrom}
	q.opened.PipeName = "lightq"
	q.opened.SegmentSize = chosen.segmentBytes
	q.opened.MaxInMemSegments = int32(chosen.mappedSegments)
	q.opened.QueueCapacitySegments = satelliteSegments
	q.opened.MaxEventSize = chosen.segmentBytes - eventHeadBytes
	q.opened.FlushPeriod = neverMilliseconds
	if chosen.flushInterval > 0 {
		q.opened.FlushPeriod = int(chosen.flushInterval / time.Millisecond)
	}
	q.opened.FlushCeilingNum = math.MaxInt
	if chosen.flushMessages > 0 {
		q.opened.FlushCeilingNum = int(chosen.flushMessages)
	}
	if err := q.opened.Initialize(); err != nil {
		return nil, errors.Join(err, os.Chdir(comingFrom))
	}
	return q, nil
}

func (q *satelliteQueue) enqueue(message []byte) error {
	return q.opened.Enqueue(&v1.SniffData{Type: v1.SniffType_TracingType, Data: &v1.SniffData_Segment{Segment: message}})
}

func (q *satelliteQueue) dequeue() ([]byte, error) {
	event, err := q.opened.Dequeue()
	if err != nil {
		return nil, err
	}
	return event.Event.GetSegment(), nil
}

func (q *satelliteQueue) close() error { return errors.Join(q.opened.Close(), os.Chdir(q.comingFrom)) }
