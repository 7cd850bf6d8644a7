package main

// satelliteSteps imitates the mmap queue of Apache SkyWalking Satellite where its module is not available. It
// makes the same system calls, copies, locks and hand-overs, with the mapped files of the module that
// Satellite uses. A message is encoded into new memory and copied into segments, after its length and across
// their ends. Positions are in a mapped page. If more segments are mapped than allowed, the writer waits for
// the swapper, a goroutine that syncs and unmaps all but the two in use. Segments are mapped again for
// reading, and the swapper unmaps those that have been read. A message is copied into new memory, then
// decoded into new memory.
//
// It is slightly faster than Satellite: encoding and decoding are only the copies into new memory that they
// require. No position is returned as text, and fewer paths are made absolute.

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/grandecola/mmap"
)

const (
	satelliteSegments   = 2000 // per queue; Satellite's default
	mappedSegmentsMin   = 4    // Satellite allows no fewer
	lengthBytes         = 8    // before each message
	positionsBytes      = 80   // the size of the file with the positions
	writePosition       = 0    // in that file: a segment's number, then a position in it
	readPosition        = 16
	satellitePermission = 0o744 // for its files
)

// place is the position at which the next message is written or read.
type place struct{ segment, at int64 }

type satelliteSegment struct {
	lock sync.Mutex
	file *mmap.File // nil: not mapped
}

type satelliteSteps struct {
	directory     string
	segmentBytes  int64
	mappedMax     int32
	positions     *mmap.File
	positionsLock sync.RWMutex
	segments      []satelliteSegment
	mapped        atomic.Int32
	wantRoom      chan struct{}
	haveRoom      chan error
	read          chan int64 // segments that have been read
	stop          context.CancelFunc
	stopped       chan error
}

func openSatelliteSteps(chosen settings) (queue, error) {
	until, stop := context.WithCancel(context.Background())
	q := &satelliteSteps{directory: chosen.directory, segmentBytes: int64(chosen.segmentBytes),
		mappedMax: int32(max(mappedSegmentsMin, chosen.mappedSegments)),
		segments:  make([]satelliteSegment, satelliteSegments), wantRoom: make(chan struct{}),
		haveRoom: make(chan error), read: make(chan int64, 1), stop: stop, stopped: make(chan error, 1)}
	var err error
	if q.positions, err = mapFile(filepath.Join(q.directory, "positions"), positionsBytes); err != nil {
		stop()
		return nil, err
	}
	go q.swap(until)
	return q, nil
}

func mapFile(path string, bytes int64) (*mmap.File, error) {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, satellitePermission)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	status, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if status.Size() != bytes {
		if err := file.Truncate(bytes); err != nil {
			return nil, err
		}
	}
	return mmap.NewSharedFileMmap(file, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE)
}

func (q *satelliteSteps) position(which int64) place {
	q.positionsLock.RLock()
	defer q.positionsLock.RUnlock()
	return place{int64(q.positions.ReadUint64At(which)), int64(q.positions.ReadUint64At(which + 8))}
}

func (q *satelliteSteps) setPosition(which int64, to place) {
	q.positionsLock.Lock()
	defer q.positionsLock.Unlock()
	q.positions.WriteUint64At(uint64(to.segment), which)
	q.positions.WriteUint64At(uint64(to.at), which+8)
}

// swap is the goroutine that unmaps. When it stops it sends the errors that no caller has received.
func (q *satelliteSteps) swap(until context.Context) {
	var err error
	for {
		select {
		case number := <-q.read:
			err = errors.Join(err, q.unmap(number))
		case <-q.wantRoom:
			q.haveRoom <- q.makeRoom()
		case <-until.Done():
			q.stopped <- err
			return
		}
	}
}

func (q *satelliteSteps) makeRoom() error {
	writing, reading := q.position(writePosition).segment, q.position(readPosition).segment
	for number := writing - 1; number >= max(0, writing-int64(q.mappedMax)); number-- {
		if number != reading {
			if err := q.unmap(number); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *satelliteSteps) unmap(number int64) error {
	segment := &q.segments[number]
	segment.lock.Lock()
	defer segment.lock.Unlock()
	if segment.file == nil {
		return nil
	}
	file := segment.file
	segment.file = nil
	q.mapped.Add(-1)
	return errors.Join(file.Flush(syscall.MS_SYNC), file.Unmap()) // Flush does nothing if nothing was written
}

// hold returns a segment mapped and locked; the caller unlocks it.
func (q *satelliteSteps) hold(number int64) (*satelliteSegment, error) {
	if q.mapped.Load() >= q.mappedMax {
		q.wantRoom <- struct{}{}
		if err := <-q.haveRoom; err != nil {
			return nil, err
		}
	}
	segment := &q.segments[number]
	segment.lock.Lock()
	if segment.file != nil {
		return segment, nil
	}
	path := filepath.Join(q.directory, strconv.FormatInt(number, 10)+segmentFileSuffix)
	file, err := mapFile(path, q.segmentBytes)
	if err != nil {
		segment.lock.Unlock()
		return nil, err
	}
	q.mapped.Add(1)
	segment.file = file
	return segment, nil
}

// with runs work on the segment of a position and returns the position after it.
func (q *satelliteSteps) with(from place, work func(*mmap.File, int64) (int, error)) (place, error) {
	segment, err := q.hold(from.segment)
	if err != nil {
		return from, err
	}
	done, err := work(segment.file, from.at)
	segment.lock.Unlock()
	from.at += int64(done)
	if from.at == q.segmentBytes {
		from = place{from.segment + 1, 0}
	}
	return from, err
}

func (q *satelliteSteps) withLength(from place, work func(*mmap.File, int64)) (place, error) {
	if from.at+lengthBytes > q.segmentBytes {
		from = place{from.segment + 1, 0}
	}
	return q.with(from, func(file *mmap.File, at int64) (int, error) {
		work(file, at)
		return lengthBytes, nil
	})
}

// withBytes runs work on one range of bytes in each segment that they span.
func (q *satelliteSteps) withBytes(from place, bytes []byte,
	work func(*mmap.File, []byte, int64) (int, error)) (place, error) {
	for done := 0; done < len(bytes); {
		var err error
		if from, err = q.with(from, func(file *mmap.File, at int64) (int, error) {
			count, err := work(file, bytes[done:], at)
			done += count
			return count, err
		}); err != nil {
			return from, err
		}
	}
	return from, nil
}

func copied(bytes []byte) []byte {
	made := make([]byte, len(bytes))
	copy(made, bytes)
	return made
}

func (q *satelliteSteps) enqueue(message []byte) error {
	encoded := copied(message)
	to := q.position(writePosition)
	if to.segment-q.position(readPosition).segment >= satelliteSegments-1 || to.segment >= satelliteSegments-1 {
		return errors.New("the queue is full")
	}
	to, err := q.withLength(to, func(file *mmap.File, at int64) { file.WriteUint64At(uint64(len(encoded)), at) })
	if err != nil {
		return err
	}
	if to, err = q.withBytes(to, encoded, (*mmap.File).WriteAt); err != nil {
		return err
	}
	q.setPosition(writePosition, to)
	return nil
}

func (q *satelliteSteps) dequeue() ([]byte, error) {
	begin := q.position(readPosition)
	if begin == q.position(writePosition) {
		return nil, errEmpty
	}
	length := uint64(0)
	from, err := q.withLength(begin, func(file *mmap.File, at int64) { length = file.ReadUint64At(at) })
	if err != nil {
		return nil, err
	}
	encoded := make([]byte, length)
	if from, err = q.withBytes(from, encoded, (*mmap.File).ReadAt); err != nil {
		return nil, err
	}
	q.setPosition(readPosition, from)
	if from.segment != begin.segment {
		q.read <- begin.segment
	}
	return copied(encoded), nil
}

func (q *satelliteSteps) close() error {
	q.stop()
	err := <-q.stopped
	for number := range q.segments {
		err = errors.Join(err, q.unmap(int64(number)))
	}
	return errors.Join(err, q.positions.Flush(syscall.MS_SYNC), q.positions.Unmap())
}
