package main

// Queues whose modules the build does not fetch, by the steps that they cannot do without, with Go's standard library:
// the file operations and copies of one append and one read, less all that surrounds them. What is faster than the
// steps by some factor is faster than the queue itself by more.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

const (
	entryHeadBytes   = 8        // length and checksum
	entryReaderBytes = 16 << 10 // read from a file at once
	lengthBytes      = 8        // before each message in a mapped segment
	filePermissions  = 0o600    // of all files
	fileSuffix       = ".segment"
)

func segmentPath(directory string, number int) string {
	return filepath.Join(directory, strconv.Itoa(number)+fileSuffix)
}

// pqueueSteps is github.com/linxGnu/pqueue: each entry with a length and a CRC-32 through a buffered writer that is
// flushed, so one write(2) an entry; read through a buffer of 16 KiB, checked against the CRC-32.
type pqueueSteps struct {
	chosen       settings
	lock         sync.Mutex
	file         *os.File
	writer       *bufio.Writer
	written      int
	writeNumber  int
	readFile     *os.File
	reader       *bufio.Reader
	readNumber   int
	entry        []byte
	readerLock   sync.Mutex
	segmentsLock sync.RWMutex
}

func openPqueueSteps(chosen settings) (queue, error) {
	q := &pqueueSteps{chosen: chosen}
	return q, q.roll()
}

func (q *pqueueSteps) roll() error {
	file, err := os.OpenFile(segmentPath(q.chosen.directory, q.writeNumber), os.O_CREATE|os.O_WRONLY, filePermissions)
	if err != nil {
		return err
	}
	if q.file != nil {
		err = q.file.Close()
	}
	q.file, q.writer, q.written = file, bufio.NewWriter(file), 0
	q.writeNumber++
	return err
}

func (q *pqueueSteps) enqueue(message []byte) error {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.written+entryHeadBytes+len(message) > q.chosen.segmentBytes {
		if err := q.roll(); err != nil {
			return err
		}
	}
	var head [entryHeadBytes]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(message))<<32|uint64(crc32.ChecksumIEEE(message)))
	if _, err := q.writer.Write(head[:]); err != nil {
		return err
	}
	if _, err := q.writer.Write(message); err != nil {
		return err
	}
	q.written += entryHeadBytes + len(message)
	return q.writer.Flush()
}

func (q *pqueueSteps) openNext() error {
	file, err := os.Open(segmentPath(q.chosen.directory, q.readNumber))
	if err != nil {
		return err
	}
	if q.readFile != nil {
		err = q.readFile.Close()
	}
	q.readFile, q.reader = file, bufio.NewReaderSize(file, entryReaderBytes)
	q.readNumber++
	return err
}

func (q *pqueueSteps) dequeue() ([]byte, error) {
	q.readerLock.Lock()
	defer q.readerLock.Unlock()
	q.segmentsLock.RLock()
	closed := q.reader == nil
	q.segmentsLock.RUnlock()
	if closed {
		if err := q.openNext(); err != nil {
			return nil, err
		}
	}
	var head [entryHeadBytes]byte
	_, err := io.ReadFull(q.reader, head[:])
	if errors.Is(err, io.EOF) {
		if err = q.openNext(); err == nil {
			_, err = io.ReadFull(q.reader, head[:])
		}
	}
	if err != nil {
		return nil, err
	}
	both := binary.LittleEndian.Uint64(head[:])
	if length := int(both >> 32); cap(q.entry) < length {
		q.entry = make([]byte, length)
	} else {
		q.entry = q.entry[:length]
	}
	if _, err := io.ReadFull(q.reader, q.entry); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(q.entry) != uint32(both) {
		return nil, errors.New("an entry's checksum is wrong")
	}
	return q.entry, nil
}

func (q *pqueueSteps) close() error {
	err := q.file.Close()
	if q.readFile != nil {
		err = errors.Join(err, q.readFile.Close())
	}
	return err
}

// satelliteSteps is the mmap queue of Apache SkyWalking Satellite, without its encoding of events: segments that are
// grown and mapped, filled by copying, and, where more are mapped than allowed, synced with msync and unmapped while
// the writer waits. To be read they are mapped again; a message is copied into new memory.
type satelliteSteps struct {
	chosen      settings
	mapped      map[int][]byte
	writeNumber int
	writeAt     int
	readNumber  int
	readAt      int
}

func openSatelliteSteps(chosen settings) (queue, error) {
	return &satelliteSteps{chosen: chosen, mapped: map[int][]byte{}}, nil
}

func (q *satelliteSteps) unmap(number int) error {
	segment := q.mapped[number]
	delete(q.mapped, number)
	_, _, failed := syscall.Syscall(syscall.SYS_MSYNC, uintptr(unsafe.Pointer(&segment[0])), uintptr(len(segment)),
		syscall.MS_SYNC)
	if failed != 0 {
		return fmt.Errorf("msync: %w", failed)
	}
	return syscall.Munmap(segment)
}

func (q *satelliteSteps) segment(number int) ([]byte, error) {
	if segment, there := q.mapped[number]; there {
		return segment, nil
	}
	for other := range q.mapped {
		if len(q.mapped) >= q.chosen.mappedSegments && other != q.writeNumber && other != q.readNumber {
			if err := q.unmap(other); err != nil {
				return nil, err
			}
		}
	}
	file, err := os.OpenFile(segmentPath(q.chosen.directory, number), os.O_CREATE|os.O_RDWR, filePermissions)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := file.Truncate(int64(q.chosen.segmentBytes)); err != nil {
		return nil, err
	}
	segment, err := syscall.Mmap(int(file.Fd()), 0, q.chosen.segmentBytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err == nil {
		q.mapped[number] = segment
	}
	return segment, err
}

func (q *satelliteSteps) enqueue(message []byte) error {
	if q.writeAt+lengthBytes+len(message) > q.chosen.segmentBytes {
		q.writeNumber, q.writeAt = q.writeNumber+1, 0
	}
	segment, err := q.segment(q.writeNumber)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(segment[q.writeAt:], uint64(len(message)))
	q.writeAt += lengthBytes + copy(segment[q.writeAt+lengthBytes:], message)
	return nil
}

func (q *satelliteSteps) dequeue() ([]byte, error) {
	segment, err := q.segment(q.readNumber)
	if err != nil {
		return nil, err
	}
	length := 0
	if q.readAt+lengthBytes <= len(segment) {
		length = int(binary.LittleEndian.Uint64(segment[q.readAt:]))
	}
	if length == 0 { // the rest of a segment that the next message did not fit into
		if q.readNumber >= q.writeNumber {
			return nil, errors.New("the queue is empty")
		}
		if err := q.unmap(q.readNumber); err != nil {
			return nil, err
		}
		q.readNumber, q.readAt = q.readNumber+1, 0
		return q.dequeue()
	}
	message := make([]byte, length)
	copy(message, segment[q.readAt+lengthBytes:])
	q.readAt += lengthBytes + length
	return message, nil
}

func (q *satelliteSteps) close() error {
	var err error
	for number := range q.mapped {
		err = errors.Join(err, q.unmap(number))
	}
	return err
}
