package main

// pqueueSteps imitates github.com/linxGnu/pqueue where its module is not available: the same system calls,
// copies, checksums and locks with Go's standard library. A segment is a new file with a fixed number of
// entries. Two writes of four bytes begin it, and one write of four bytes ends it. An entry is written with
// its length and its CRC-32 through a buffered writer that is flushed, so it takes one write(2). It is read
// through a buffer of 16 KiB and checked. A segment that has been read is removed.
//
// It is slightly faster than pqueue: file names are numbers, where pqueue tries random names, and each side
// takes one lock less.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
)

const (
	pqueueEntries     = 1000     // per segment, if not set: pqueue's default
	entryHeadBytes    = 8        // length and checksum
	entryReaderBytes  = 16 << 10 // the size of a read from a file
	markBytes         = 4        // each of the two marks that begin a segment, and the one that ends it
	filePermissions   = 0o600    // for all files
	segmentFileSuffix = ".segment"
)

type pqueueSegment struct {
	path    string
	target  *os.File
	writer  *bufio.Writer
	written atomic.Int64
	source  *os.File // nil: nothing has been read from it
	reader  *bufio.Reader
	read    int64
}

type pqueueSteps struct {
	directory string
	entries   int64 // per segment
	made      int   // number of segments so far
	writeLock sync.RWMutex
	segments  []*pqueueSegment // from the one being read to the one being written
	readLock  sync.Mutex
	entry     []byte
}

func openPqueueSteps(chosen settings) (queue, error) {
	q := &pqueueSteps{directory: chosen.directory, entries: int64(chosen.entriesOf(pqueueEntries))}
	return q, q.roll()
}

func (q *pqueueSteps) roll() error {
	path := filepath.Join(q.directory, strconv.Itoa(q.made)+segmentFileSuffix)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, filePermissions)
	if err != nil {
		return err
	}
	for range [2]int{} {
		if _, err := file.Write(make([]byte, markBytes)); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	q.made++
	q.segments = append(q.segments, &pqueueSegment{path: path, target: file, writer: bufio.NewWriter(file)})
	return nil
}

func (q *pqueueSteps) enqueue(message []byte) error {
	q.writeLock.Lock()
	defer q.writeLock.Unlock()
	tail := q.segments[len(q.segments)-1]
	if tail.written.Load() == q.entries {
		if err := q.roll(); err != nil {
			return err
		}
		tail = q.segments[len(q.segments)-1]
	}
	var head [entryHeadBytes]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(message))<<32|uint64(crc32.ChecksumIEEE(message)))
	if _, err := tail.writer.Write(head[:]); err != nil {
		return err
	}
	if _, err := tail.writer.Write(message); err != nil {
		return err
	}
	if err := tail.writer.Flush(); err != nil {
		return err
	}
	if tail.written.Add(1) == q.entries {
		return tail.endWriting()
	}
	return nil
}

func (s *pqueueSegment) endWriting() error {
	if _, err := s.writer.Write(make([]byte, markBytes)); err != nil {
		return err
	}
	return errors.Join(s.writer.Flush(), s.target.Close())
}

func (s *pqueueSegment) beginReading() error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	var mark [markBytes]byte
	for range [2]int{} {
		if _, err := io.ReadFull(file, mark[:]); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	s.source, s.reader = file, bufio.NewReaderSize(file, entryReaderBytes)
	return nil
}

// front returns the segment to read from next, open. It removes segments that have been read to their end.
func (q *pqueueSteps) front() (*pqueueSegment, error) {
	for {
		q.writeLock.RLock()
		front, last := q.segments[0], len(q.segments) == 1
		q.writeLock.RUnlock()
		if front.read < front.written.Load() {
			if front.source == nil {
				return front, front.beginReading()
			}
			return front, nil
		}
		if last {
			return nil, errEmpty
		}
		q.writeLock.Lock()
		q.segments = q.segments[1:]
		q.writeLock.Unlock()
		if err := errors.Join(front.source.Close(), os.Remove(front.path)); err != nil {
			return nil, err
		}
	}
}

func (q *pqueueSteps) dequeue() ([]byte, error) {
	q.readLock.Lock()
	defer q.readLock.Unlock()
	from, err := q.front()
	if err != nil {
		return nil, err
	}
	var head [entryHeadBytes]byte
	if _, err := io.ReadFull(from.reader, head[:]); err != nil {
		return nil, err
	}
	both := binary.LittleEndian.Uint64(head[:])
	if length := int(both >> 32); cap(q.entry) < length {
		q.entry = make([]byte, length)
	} else {
		q.entry = q.entry[:length]
	}
	if _, err := io.ReadFull(from.reader, q.entry); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(q.entry) != uint32(both) {
		return nil, errors.New("an entry's checksum is wrong")
	}
	from.read++
	return q.entry, nil
}

func (q *pqueueSteps) close() error {
	var err error
	for _, segment := range q.segments {
		if segment.written.Load() != q.entries {
			err = errors.Join(err, segment.endWriting())
		}
		if segment.source != nil {
			err = errors.Join(err, segment.source.Close())
		}
	}
	return err
}
