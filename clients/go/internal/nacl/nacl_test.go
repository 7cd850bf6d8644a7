package nacl

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"math/rand"
	"testing"
)

func key(t *testing.T, text string) (made Key) {
	t.Helper()
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != KeyBytes {
		t.Fatal(text)
	}
	copy(made[:], decoded)
	return made
}

func TestX25519OfRFC7748(t *testing.T) {
	for _, each := range [][3]string{
		{"a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
			"e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
			"c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"},
		{"4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
			"e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
			"95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"}} {
		if product := X25519(key(t, each[0]), key(t, each[1])); product != key(t, each[2]) {
			t.Errorf("%x", product)
		}
	}
	one := Key{9}
	point := one
	for i := 0; i < 1000; i++ {
		one, point = X25519(one, point), one
	}
	if one != key(t, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51") {
		t.Errorf("after 1,000 rounds: %x", one)
	}
}

func TestPoly1305AgreesWithBigNumbers(t *testing.T) {
	source := rand.New(rand.NewSource(1))
	modulus := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 130), big.NewInt(5))
	number := func(b []byte) *big.Int {
		reversed := make([]byte, len(b))
		for i := range b {
			reversed[len(b)-1-i] = b[i]
		}
		return new(big.Int).SetBytes(reversed)
	}
	clamp, _ := new(big.Int).SetString("0ffffffc0ffffffc0ffffffc0fffffff", 16)
	for round := 0; round < 500; round++ {
		secret, data := make([]byte, 32), make([]byte, source.Intn(100))
		source.Read(secret)
		source.Read(data)
		if round%5 == 0 {
			copy(data, bytes.Repeat([]byte{255}, 100))
		}
		r, sum := new(big.Int).And(number(secret[:16]), clamp), new(big.Int)
		for at := 0; at < len(data); at += 16 {
			end := at + 16
			if end > len(data) {
				end = len(data)
			}
			sum.Add(sum, number(append(append([]byte{}, data[at:end]...), 1)))
			sum.Mod(sum.Mul(sum, r), modulus)
		}
		sum.Add(sum, number(secret[16:]))
		wanted := new(big.Int).Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128))
		tag := poly1305(secret, data)
		if number(tag[:]).Cmp(wanted) != 0 {
			t.Fatalf("%x of %x: %x", secret, data, tag)
		}
	}
}

// The example of the NaCl library's box: "Cryptography in NaCl", section 10.
func TestBoxOfNaCl(t *testing.T) {
	first := key(t, "1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389")
	var nonce Nonce
	decoded, _ := hex.DecodeString("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37")
	copy(nonce[:], decoded)
	plain, _ := hex.DecodeString("be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561" +
		"f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f93776384" +
		"8645e0705")
	box, _ := hex.DecodeString("f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4d" +
		"a7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b3" +
		"7973f622a43d14a6599b1f654cb45a74e355a5")
	if made := Seal(first, nonce, plain); !bytes.Equal(made, box) {
		t.Errorf("%x", made)
	}
	if opened, err := Open(first, nonce, box); err != nil || !bytes.Equal(opened, plain) {
		t.Error(err)
	}
}

func TestBoxesOpenOnlyWithTheirKeys(t *testing.T) {
	public, secret, err := NewPair()
	otherPublic, otherSecret, otherErr := NewPair()
	if err != nil || otherErr != nil {
		t.Fatal(err, otherErr)
	}
	box := Seal(Shared(otherPublic, secret), Nonce{1}, []byte("a message"))
	if opened, err := Open(Shared(public, otherSecret), Nonce{1}, box); err != nil || string(opened) != "a message" {
		t.Error(err)
	}
	for at := range box {
		box[at] ^= 1
		if _, err := Open(Shared(public, otherSecret), Nonce{1}, box); err != ErrBadBox {
			t.Errorf("byte %d: %v", at, err)
		}
		box[at] ^= 1
	}
	if _, err := Open(Shared(public, otherSecret), Nonce{1}, box[:15]); err != ErrBadBox {
		t.Error(err)
	}
}

func TestKeysInZ85(t *testing.T) {
	parsed, err := ParseKey("rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7")
	if err != nil || parsed != key(t, "54fcba24e93249969316fb617c872bb0c1d1ff14800427c594cbfacf1bc2d652") {
		t.Errorf("%x, %v", parsed, err)
	}
	for _, wrong := range []string{"", "#####################################", "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf~",
		"########################################"} {
		if _, err := ParseKey(wrong); err == nil {
			t.Error(wrong)
		}
	}
}
