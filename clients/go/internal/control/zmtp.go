package control

import (
	"bytes"
	"encoding/binary"
	"io"

	"lightq/internal/fault"
)

// Flags of ZMTP's frames.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

const replyBytesMax = 1 << 26

// zmtp is a client's side of a ZeroMQ connection (ZMTP 3, a REQ socket): in clear (NULL), or encrypted (CURVE, RFC 26).
type zmtp struct {
	stream    io.ReadWriter
	curve     *curve // nil: in clear
	isWritten bool   // the connection has taken the whole last request
}

func zmtpFrame(flags byte, body []byte) []byte {
	if len(body) < 256 {
		return append([]byte{flags, byte(len(body))}, body...)
	}
	return append(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body))), body...)
}

func readyProperties() []byte {
	return []byte("\x0bSocket-Type\x00\x00\x00\x03REQ\x08Identity\x00\x00\x00\x00")
}

// openZMTP makes the handshake. Errors: unauthorized_access, a violation, those of the stream.
func openZMTP(stream io.ReadWriter, keys *curveKeys) (*zmtp, error) {
	z := &zmtp{stream: stream}
	mechanism := "NULL"
	if keys != nil {
		mechanism = "CURVE"
		var err error
		if z.curve, err = newCurve(keys); err != nil {
			return nil, err
		}
	}
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10] = 0xFF, 0x7F, 3
	copy(greeting[12:], mechanism)
	if _, err := stream.Write(greeting); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(stream, greeting); err != nil {
		return nil, err
	}
	if greeting[0] != 0xFF || greeting[9] != 0x7F || greeting[10] < 3 {
		return nil, fault.Violation("no ZeroMQ socket of version 3 listens there")
	}
	if theirs := string(bytes.TrimRight(greeting[12:32], "\x00")); theirs != mechanism {
		need := "a server key was given"
		if theirs == "CURVE" {
			need = "give its server key"
		}
		return nil, fault.New("unauthorized_access", "the broker speaks %q, this client %s: %s", theirs, mechanism, need)
	}
	return z, z.handshake()
}

func (z *zmtp) handshake() error {
	first := append([]byte("\x05READY"), readyProperties()...)
	if z.curve != nil {
		first = z.curve.hello()
	}
	if _, err := z.stream.Write(zmtpFrame(flagCommand, first)); err != nil {
		return err
	}
	isWelcomed := z.curve == nil
	for {
		flags, body, err := z.frame()
		if err != nil {
			return err
		}
		switch {
		case flags&flagCommand == 0:
			return fault.Violation("the broker sent a message before the end of the handshake")
		case bytes.HasPrefix(body, []byte("\x05ERROR")):
			return fault.New("unauthorized_access", "the broker refuses this client's key: it has another key, or a list of clients")
		case isWelcomed && bytes.HasPrefix(body, []byte("\x05READY")):
			if z.curve != nil {
				return z.curve.checkReady(body)
			}
			return nil
		case isWelcomed || !bytes.HasPrefix(body, []byte("\x07WELCOME")):
			return fault.Violation("the broker sent a wrong command in the handshake")
		}
		isWelcomed = true // only the owner of the server key can make the WELCOME that initiate opens
		initiate, err := z.curve.initiate(body)
		if err != nil {
			return err
		}
		if _, err := z.stream.Write(zmtpFrame(flagCommand, initiate)); err != nil {
			return err
		}
	}
}

func (z *zmtp) frame() (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(z.stream, head[:2]); err != nil {
		return 0, nil, err
	}
	flags = head[0]
	length := uint64(head[1])
	if flags&flagLong != 0 {
		if _, err = io.ReadFull(z.stream, head[2:]); err != nil {
			return 0, nil, err
		}
		length = binary.BigEndian.Uint64(head[1:])
	}
	if flags > 7 || length > replyBytesMax {
		return 0, nil, fault.Violation("the broker sent a part of %d bytes with the flags %d", length, flags)
	}
	var read bytes.Buffer // grows with the bytes that arrive
	_, err = io.CopyN(&read, z.stream, int64(length))
	return flags, read.Bytes(), err
}

// ask sends a request and returns the last part of the reply.
func (z *zmtp) ask(payload []byte) ([]byte, error) {
	var out []byte
	z.isWritten = false
	for _, part := range []struct {
		flags byte
		body  []byte
	}{{flagMore, nil}, {0, payload}} {
		if z.curve != nil { // libzmq sends and expects CURVE's MESSAGE as a message, not as a command
			out = append(out, zmtpFrame(0, z.curve.message(part.flags, part.body))...)
		} else {
			out = append(out, zmtpFrame(part.flags, part.body)...)
		}
	}
	if _, err := z.stream.Write(out); err != nil {
		return nil, err
	}
	z.isWritten = true
	for {
		flags, body, err := z.frame()
		if err != nil {
			return nil, err
		}
		if z.curve != nil {
			if flags, body, err = z.curve.opened(body); err != nil {
				return nil, err
			}
		} else if flags&flagCommand != 0 {
			continue // a PING of the broker's library, which may stay unanswered
		}
		if flags&flagMore == 0 {
			return body, nil
		}
	}
}
