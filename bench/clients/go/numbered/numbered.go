// Package numbered makes numbered messages, as support/numbered_messages.hpp does.
package numbered

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Messages has the bytes of one message, which At changes.
type Messages struct{ expected []byte }

// Make returns messages of this size, of at least eight bytes.
func Make(size int) Messages {
	made := Messages{make([]byte, size)}
	for i := range made.expected {
		made.expected[i] = byte(i*131 + i>>8)
	}
	return made
}

// At returns a message. It is valid until the next call.
func (m Messages) At(number uint64) []byte {
	binary.LittleEndian.PutUint64(m.expected, number)
	return m.expected
}

// Check compares a message with the expected one.
func (m Messages) Check(number uint64, message []byte) error {
	if len(message) == len(m.expected) && binary.LittleEndian.Uint64(message) == number &&
		bytes.Equal(message[8:], m.expected[8:]) {
		return nil
	}
	return fmt.Errorf("message %d came back altered", number)
}
