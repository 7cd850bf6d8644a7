package control

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"

	"lightq/internal/fault"
	"lightq/internal/nacl"
)

// curveKeys has the broker's public key, and the client's own pair.
type curveKeys struct{ server, public, secret nacl.Key }

// curve is the client's side of CURVE. Its own pair of keys is for one connection.
type curve struct {
	keys           *curveKeys
	public, secret nacl.Key
	session        nacl.Key
	number, peer   uint64 // of the last short nonce
}

func newCurve(keys *curveKeys) (*curve, error) {
	made := &curve{keys: keys}
	var err error
	made.public, made.secret, err = nacl.NewPair()
	return made, err
}

func nonceOf(prefix string, rest []byte) (nonce nacl.Nonce) {
	copy(nonce[copy(nonce[:], prefix):], rest)
	return nonce
}

func (c *curve) shortNonce() []byte {
	c.number++
	return binary.BigEndian.AppendUint64(nil, c.number)
}

func openBox(key nacl.Key, nonce nacl.Nonce, box []byte) ([]byte, error) {
	plain, err := nacl.Open(key, nonce, box)
	if err != nil {
		return nil, fault.New("unauthorized_access", "the other side does not have the broker's key")
	}
	return plain, nil
}

func (c *curve) hello() []byte {
	nonce := c.shortNonce()
	box := nacl.Seal(nacl.Shared(c.keys.server, c.secret), nonceOf("CurveZMQHELLO---", nonce), make([]byte, 64))
	made := append([]byte("\x05HELLO\x01\x00"), make([]byte, 72)...)
	return append(append(append(made, c.public[:]...), nonce...), box...)
}

func (c *curve) initiate(welcome []byte) ([]byte, error) {
	if len(welcome) != 168 {
		return nil, fault.Violation("the broker sent a WELCOME of a wrong length")
	}
	plain, err := openBox(nacl.Shared(c.keys.server, c.secret), nonceOf("WELCOME-", welcome[8:24]), welcome[24:])
	if err != nil {
		return nil, err
	}
	var server nacl.Key
	copy(server[:], plain)
	c.session = nacl.Shared(server, c.secret)
	long := make([]byte, 16)
	if _, err := rand.Read(long); err != nil {
		return nil, err
	}
	vouched := append(append([]byte{}, c.public[:]...), c.keys.server[:]...)
	vouch := nacl.Seal(nacl.Shared(server, c.keys.secret), nonceOf("VOUCH---", long), vouched)
	short := c.shortNonce()
	said := append(append(append(append([]byte{}, c.keys.public[:]...), long...), vouch...), readyProperties()...)
	box := nacl.Seal(c.session, nonceOf("CurveZMQINITIATE", short), said)
	return append(append(append([]byte("\x08INITIATE"), plain[32:]...), short...), box...), nil
}

func (c *curve) checkReady(ready []byte) error {
	if len(ready) < 30 {
		return fault.Violation("the broker sent a READY of a wrong length")
	}
	c.peer = binary.BigEndian.Uint64(ready[6:])
	_, err := openBox(c.session, nonceOf("CurveZMQREADY---", ready[6:14]), ready[14:])
	return err
}

func (c *curve) message(flags byte, part []byte) []byte {
	nonce := c.shortNonce()
	box := nacl.Seal(c.session, nonceOf("CurveZMQMESSAGEC", nonce), append([]byte{flags}, part...))
	return append(append([]byte("\x07MESSAGE"), nonce...), box...)
}

func (c *curve) opened(body []byte) (flags byte, part []byte, err error) {
	if len(body) < 33 || !bytes.HasPrefix(body, []byte("\x07MESSAGE")) {
		return 0, nil, fault.Violation("the broker sent no message")
	}
	number := binary.BigEndian.Uint64(body[8:])
	if number <= c.peer {
		return 0, nil, fault.Violation("the broker repeated a message")
	}
	c.peer = number
	plain, err := openBox(c.session, nonceOf("CurveZMQMESSAGES", body[8:16]), body[16:])
	if err != nil {
		return 0, nil, err
	}
	return plain[0] & flagMore, plain[1:], nil
}
