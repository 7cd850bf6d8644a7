package nacl

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"math/bits"
)

// Nonce is a number that is used once with a key.
type Nonce [24]byte

// ErrBadBox: a box was not made with these keys, or was changed.
var ErrBadBox = errors.New("a box was not made with these keys")

const tagBytes = 16

var (
	le    = binary.LittleEndian
	sigma = [4]uint32{0x61707865, 0x3320646E, 0x79622D32, 0x6B206574}
	// The quarter rounds of a double round: each changes the four words in turn.
	quarters = [8][4]int{{0, 4, 8, 12}, {5, 9, 13, 1}, {10, 14, 2, 6}, {15, 3, 7, 11},
		{0, 1, 2, 3}, {5, 6, 7, 4}, {10, 11, 8, 9}, {15, 12, 13, 14}}
)

func salsaState(key *Key, block []byte) (x [16]uint32) {
	x[0], x[5], x[10], x[15] = sigma[0], sigma[1], sigma[2], sigma[3]
	for i := 0; i < 4; i++ {
		x[1+i], x[11+i], x[6+i] = le.Uint32(key[4*i:]), le.Uint32(key[16+4*i:]), le.Uint32(block[4*i:])
	}
	return x
}

func salsaRounds(x [16]uint32) [16]uint32 {
	for round := 0; round < 10; round++ {
		for _, q := range quarters {
			x[q[1]] ^= bits.RotateLeft32(x[q[0]]+x[q[3]], 7)
			x[q[2]] ^= bits.RotateLeft32(x[q[1]]+x[q[0]], 9)
			x[q[3]] ^= bits.RotateLeft32(x[q[2]]+x[q[1]], 13)
			x[q[0]] ^= bits.RotateLeft32(x[q[3]]+x[q[2]], 18)
		}
	}
	return x
}

func hsalsa(key *Key, block []byte) (derived Key) {
	x := salsaRounds(salsaState(key, block))
	for i, at := range [8]int{0, 5, 10, 15, 6, 7, 8, 9} {
		le.PutUint32(derived[4*i:], x[at])
	}
	return derived
}

// stream returns so many bytes of XSalsa20's key stream.
func stream(key *Key, nonce *Nonce, length int) []byte {
	inner := hsalsa(key, nonce[:16])
	var block [16]byte
	copy(block[:], nonce[16:])
	made := make([]byte, 0, length+64)
	for counter := uint64(0); len(made) < length; counter++ {
		le.PutUint64(block[8:], counter)
		state := salsaState(&inner, block[:])
		rounds := salsaRounds(state)
		for i := range rounds {
			made = le.AppendUint32(made, rounds[i]+state[i])
		}
	}
	return made[:length]
}

// poly1305 returns the tag of the data. Its numbers have limbs of 26 bits.
func poly1305(key, data []byte) (tag [tagBytes]byte) {
	limbs := func(b []byte, top uint64) [5]uint64 {
		low, high := le.Uint64(b), le.Uint64(b[8:])
		const mask = 1<<26 - 1
		return [5]uint64{low & mask, low >> 26 & mask, (low>>52 | high<<12) & mask, high >> 14 & mask, high>>40 | top<<24}
	}
	var clamped [16]byte
	for i := range clamped {
		clamped[i] = key[i] & [4]byte{255, 255, 255, 15}[i%4]
		if i%4 == 0 && i > 0 {
			clamped[i] &= 252
		}
	}
	r, sum := limbs(clamped[:], 0), [5]uint64{}
	for at := 0; at < len(data); at += 16 {
		var block [17]byte
		n := copy(block[:16], data[at:])
		top := uint64(1)
		if n < 16 {
			block[n], top = 1, 0
		}
		for i, each := range limbs(block[:16], top) {
			sum[i] += each
		}
		sum = polyMul(sum, r)
	}
	return polyTag(sum, key[16:32])
}

func polyMul(a, b [5]uint64) (product [5]uint64) {
	for i := range a {
		for j := range b {
			if i+j < 5 {
				product[i+j] += a[i] * b[j]
			} else {
				product[i+j-5] += 5 * a[i] * b[j]
			}
		}
	}
	return polyCarried(product)
}

func polyCarried(a [5]uint64) [5]uint64 {
	carry := uint64(0)
	for i := range a {
		a[i] += carry
		carry = a[i] >> 26
		a[i] &= 1<<26 - 1
	}
	a[0] += 5 * carry
	a[1] += a[0] >> 26
	a[0] &= 1<<26 - 1
	return a
}

func polyTag(sum [5]uint64, pad []byte) (tag [tagBytes]byte) {
	sum = polyCarried(polyCarried(sum))
	// Takes the number minus the modulus 2^130 - 5 if that is not negative.
	reduced := sum
	reduced[0] += 5
	for i := 0; i < 4; i++ {
		reduced[i+1] += reduced[i] >> 26
		reduced[i] &= 1<<26 - 1
	}
	mask := -(reduced[4] >> 26 & 1)
	reduced[4] &= 1<<26 - 1
	for i := range sum {
		sum[i] ^= mask & (sum[i] ^ reduced[i])
	}
	low, carry := bits.Add64(sum[0]|sum[1]<<26|sum[2]<<52, le.Uint64(pad), 0)
	high, _ := bits.Add64(sum[2]>>12|sum[3]<<14|sum[4]<<40, le.Uint64(pad[8:]), carry)
	le.PutUint64(tag[:], low)
	le.PutUint64(tag[8:], high)
	return tag
}

// Shared returns the key of boxes between the owners of these halves.
func Shared(public, secret Key) Key {
	point := X25519(secret, public)
	return hsalsa(&point, make([]byte, 16))
}

// Seal encrypts and authenticates.
func Seal(key Key, nonce Nonce, plain []byte) []byte {
	keys := stream(&key, &nonce, 32+len(plain))
	box := make([]byte, tagBytes+len(plain))
	for i, each := range plain {
		box[tagBytes+i] = each ^ keys[32+i]
	}
	tag := poly1305(keys[:32], box[tagBytes:])
	copy(box, tag[:])
	return box
}

// Open decrypts a box. Errors: ErrBadBox.
func Open(key Key, nonce Nonce, box []byte) ([]byte, error) {
	if len(box) < tagBytes {
		return nil, ErrBadBox
	}
	keys := stream(&key, &nonce, 32+len(box)-tagBytes)
	tag := poly1305(keys[:32], box[tagBytes:])
	if subtle.ConstantTimeCompare(tag[:], box[:tagBytes]) != 1 {
		return nil, ErrBadBox
	}
	plain := make([]byte, len(box)-tagBytes)
	for i := range plain {
		plain[i] = box[tagBytes+i] ^ keys[32+i]
	}
	return plain, nil
}
