package nacl

import (
	"encoding/binary"
	"errors"
	"strings"
)

const z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// ParseKey decodes a key of 40 characters of Z85 (ZeroMQ RFC 32).
func ParseKey(text string) (key Key, err error) {
	if len(text) != 40 {
		return key, errors.New("a key has 40 characters of Z85")
	}
	for at := 0; at < 8; at++ {
		value := uint64(0)
		for _, letter := range []byte(text[5*at : 5*at+5]) {
			digit := strings.IndexByte(z85, letter)
			if digit < 0 {
				return key, errors.New("a key has 40 characters of Z85")
			}
			value = 85*value + uint64(digit)
		}
		if value>>32 != 0 {
			return key, errors.New("a key has 40 characters of Z85")
		}
		binary.BigEndian.PutUint32(key[4*at:], uint32(value))
	}
	return key, nil
}
