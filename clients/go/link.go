package lightq

import (
	"errors"
	"net"
	"os"
	"time"

	"lightq/internal/fault"
	"lightq/internal/wire"
)

const (
	progressBytes = 1024 // so many bytes of a frame count as a sign of life
	suspectTime   = 100 * time.Millisecond
)

// link has the frames that wait to be written to a connection. Its driver's lock guards it.
type link struct {
	out         net.Buffers
	queued      uint64 // frames that were ever sent
	written     uint64 // of these, the connection has taken so many
	lastRequest uint32
	heartbeat   time.Duration // how often the broker wants a frame; 0: never
	sentAt      time.Time
}

// request returns a new request number.
func (l *link) request() uint32 {
	l.lastRequest++
	if l.lastRequest == 0 {
		l.lastRequest = 1
	}
	return l.lastRequest
}

func (l *link) send(frame []byte) {
	l.out = append(l.out, frame)
	l.queued++
}

// beat sends a heartbeat if it is time.
func (l *link) beat(now time.Time) {
	if l.heartbeat > 0 && len(l.out) == 0 && now.Sub(l.sentAt) >= l.heartbeat/2 {
		l.send(wire.Encode(wire.Heartbeat, 0, 0, 0, nil))
	}
}

// nextBeat returns when the next heartbeat is due, or no time.
func (l *link) nextBeat() time.Time {
	if l.heartbeat == 0 {
		return time.Time{}
	}
	return l.sentAt.Add(l.heartbeat / 2)
}

// pulse reads from a connection, and fails if the broker is silent for too long. For one goroutine.
type pulse struct {
	conn       net.Conn
	silence    time.Duration
	unfinished int
	seen       time.Time // the last sign of life, to an eighth of the silence
}

// alive notes a sign of life.
func (p *pulse) alive() {
	p.unfinished = 0
	if now := time.Now(); now.Sub(p.seen) > p.silence/8 {
		p.seen = now
		p.conn.SetReadDeadline(now.Add(p.silence)) // an error shows in the next read
	}
}

// Read reads arrived bytes. Errors: those of the connection, io_error after the silence. A process that was stopped has a
// moment to read the bytes that have arrived in the meantime.
func (p *pulse) Read(to []byte) (int, error) {
	n, err := p.conn.Read(to)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.conn.SetReadDeadline(time.Now().Add(suspectTime))
		if n, err = p.conn.Read(to); errors.Is(err, os.ErrDeadlineExceeded) {
			return n, fault.Lost(nil, "the broker has sent nothing for %v", time.Since(p.seen).Round(suspectTime))
		}
	}
	if p.unfinished += n; p.unfinished >= progressBytes {
		p.alive()
	}
	return n, err
}
