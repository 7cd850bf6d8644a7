// Package nacl has the cryptography of CURVE (ZeroMQ RFC 26): X25519 (RFC 7748), and boxes of XSalsa20 and Poly1305. Go's
// standard library of version 1.19 has none of them. The code takes the same time for all secrets.
package nacl

import (
	"crypto/rand"
	"math/bits"
)

// KeyBytes is the length of public, secret and shared keys.
const KeyBytes = 32

// Key is a public, secret or shared key.
type Key [KeyBytes]byte

// element is a number modulo 2^255 - 19: the sum of its limbs times 2^(51 i).
type element [5]uint64

const mask51 = 1<<51 - 1

func load(b *Key) (e element) {
	word := func(at, shift uint) uint64 {
		value := uint64(0)
		for i := uint(0); i < 8 && at+i < KeyBytes; i++ {
			value |= uint64(b[at+i]) << (8 * i)
		}
		return value >> shift & mask51
	}
	return element{word(0, 0), word(6, 3), word(12, 6), word(19, 1), word(24, 12)}
}

func (e element) store() (b Key) {
	e = e.carried().carried()
	// Subtracts the modulus if the number is not below it: q is 1 then.
	q := (e[0] + 19) >> 51
	for i := 1; i < 5; i++ {
		q = (e[i] + q) >> 51
	}
	e[0] += 19 * q
	for i := 0; i < 4; i++ {
		e[i+1] += e[i] >> 51
		e[i] &= mask51
	}
	e[4] &= mask51
	for bit := uint(0); bit < 255; bit++ {
		b[bit/8] |= byte(e[bit/51]>>(bit%51)&1) << (bit % 8)
	}
	return b
}

func (e element) carried() element {
	for i := 0; i < 4; i++ {
		e[i+1] += e[i] >> 51
		e[i] &= mask51
	}
	e[0] += 19 * (e[4] >> 51)
	e[4] &= mask51
	return e
}

func add(a, b element) (sum element) {
	for i := range a {
		sum[i] = a[i] + b[i]
	}
	return sum.carried()
}

// sub adds four times the modulus first, so that no limb falls below 0.
func sub(a, b element) (difference element) {
	const zero = 4 * (1<<51 - 1)
	difference[0] = a[0] + zero - 4*18 - b[0]
	for i := 1; i < 5; i++ {
		difference[i] = a[i] + zero - b[i]
	}
	return difference.carried()
}

func mul(a, b element) element {
	var high, low [5]uint64
	for i := range a {
		for j := range b {
			factor, at := b[j], i+j
			if at > 4 {
				factor, at = 19*factor, at-5
			}
			h, l := bits.Mul64(a[i], factor)
			var carry uint64
			low[at], carry = bits.Add64(low[at], l, 0)
			high[at] += h + carry
		}
	}
	var product element
	carry := uint64(0)
	for i := range product {
		sum, over := bits.Add64(low[i], carry, 0)
		product[i] = sum & mask51
		carry = (high[i]+over)<<13 | sum>>51
	}
	product[0] += 19 * carry
	return product.carried()
}

// inverse raises to the power 2^255 - 21.
func inverse(a element) element {
	power := element{1}
	for bit := 254; bit >= 0; bit-- {
		power = mul(power, power)
		if bit != 2 && bit != 4 {
			power = mul(power, a)
		}
	}
	return power
}

func swap(a, b *element, yes uint64) {
	mask := -yes
	for i := range a {
		change := mask & (a[i] ^ b[i])
		a[i] ^= change
		b[i] ^= change
	}
}

// X25519 multiplies a point by a secret.
func X25519(secret, point Key) Key {
	secret[0] &= 248
	secret[31] = secret[31]&127 | 64
	u := load(&point)
	x2, z2, x3, z3 := element{1}, element{}, u, element{1}
	last := uint64(0)
	for position := 254; position >= 0; position-- {
		bit := uint64(secret[position/8] >> (position % 8) & 1)
		swap(&x2, &x3, bit^last)
		swap(&z2, &z3, bit^last)
		last = bit
		a, b, c, d := add(x2, z2), sub(x2, z2), add(x3, z3), sub(x3, z3)
		aa, bb, da, cb := mul(a, a), mul(b, b), mul(d, a), mul(c, b)
		e, plus, minus := sub(aa, bb), add(da, cb), sub(da, cb)
		x3, z3 = mul(plus, plus), mul(u, mul(minus, minus))
		x2, z2 = mul(aa, bb), mul(e, add(aa, mul(element{121665}, e)))
	}
	swap(&x2, &x3, last)
	swap(&z2, &z3, last)
	return mul(x2, inverse(z2)).store()
}

// PublicOf returns the public key of a secret one.
func PublicOf(secret Key) Key { return X25519(secret, Key{9}) }

// NewPair returns a public key and its secret one.
func NewPair() (public, secret Key, err error) {
	if _, err = rand.Read(secret[:]); err == nil {
		public = PublicOf(secret)
	}
	return public, secret, err
}
