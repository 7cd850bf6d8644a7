package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lightq/internal/fault"
	"lightq/internal/nacl"
)

func TestWrongRepliesAreErrors(t *testing.T) {
	for _, reply := range []string{"", "[]", "{}", "7", "\xff", strings.Repeat("[", 100_000), `{"status":1}`, `{"status":"error","code":[]}`} {
		if _, err := replyOf([]byte(reply)); err == nil {
			t.Errorf("%.20q was accepted", reply)
		}
	}
	if _, err := replyOf([]byte(`{"status":"error","code":"topic_not_found","description":"no topic t"}`)); !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
}

func ticket(id, secret any) map[string]any { return map[string]any{"id": id, "secret": secret} }

func TestRepliesToAJoin(t *testing.T) {
	p := &Place{URI: DefaultURI}
	good := map[string]any{"bind_uri": "tcp://127.0.0.1:5", "ticket": ticket("a", "b")}
	if address, err := p.AddressOf(good); err != nil || address != (Address{"tcp", "127.0.0.1:5", "a.b", ""}) {
		t.Error(address, err)
	}
	for _, wrong := range []map[string]any{{}, {"bind_uri": 5, "ticket": ticket("a", "b")}, {"bind_uri": "tcp://127.0.0.1:5", "ticket": "a"},
		{"bind_uri": "tcp://127.0.0.1:x", "ticket": ticket("a", "b")}, {"bind_uri": "", "ticket": ticket("a", "b")},
		{"bind_uri": "tcp://127.0.0.1:5", "ticket": ticket(strings.Repeat("a", 600), "b")},
		{"bind_uri": "tcp://127.0.0.1:5", "ticket": ticket("a", nil)},
		{"bind_uri": "tcp://127.0.0.1:5", "ticket": ticket("a", "b"), "tls": map[string]any{}}} {
		if _, err := p.AddressOf(wrong); !errors.Is(err, fault.ErrProtocol) {
			t.Error(wrong, err)
		}
	}
	if _, err := (&Place{ServerKey: "k"}).AddressOf(good); !errors.Is(err, fault.ErrProtocol) {
		t.Error("an encrypting broker that names no certificate was accepted", err)
	}
	if _, err := p.AddressOf(map[string]any{"bind_uri": "tcp://192.0.2.1:5", "ticket": ticket("a", "b")}); !errors.Is(err, fault.ErrInvalidArgument) {
		t.Error("a ticket would be sent to another machine in clear", err)
	}
}

func TestURIs(t *testing.T) {
	for _, wrong := range []string{"tcp://u:p@127.0.0.1:5000", "tcp://:5000", "tcp://host", "tcp://host:port", "http://x:1", "x", "tcp://h:123456"} {
		if err := (&Place{URI: wrong}).Discover(); !errors.Is(err, fault.ErrInvalidArgument) {
			t.Error(wrong, err)
		}
	}
	for _, right := range []string{"", "tcp://[::1]:5000", "tcp://host.example:1", "ipc:///run/lightq/control.sock"} {
		if err := (&Place{URI: right}).Discover(); err != nil {
			t.Error(err)
		}
	}
}

// clean hides the environment and the files of this machine.
func clean(t *testing.T, directory string) {
	for _, name := range []string{"BROKER", "USER", "PASSWORD", "ADMIN_USER", "ADMIN_PASSWORD", "SERVER_KEY", "CLIENT_KEY_FILE", "INSECURE"} {
		t.Setenv("LIGHTQ_"+name, "")
	}
	t.Setenv("LIGHTQ_DATA_DIR", directory)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestTheEnvironmentFillsWhatOptionsLeaveOut(t *testing.T) {
	clean(t, t.TempDir())
	t.Setenv("LIGHTQ_BROKER", "tcp://127.0.0.1:7")
	t.Setenv("LIGHTQ_USER", "shop")
	t.Setenv("LIGHTQ_PASSWORD", "secret")
	t.Setenv("LIGHTQ_INSECURE", "true")
	found := Place{Discovers: true}
	if err := found.Discover(); err != nil || found.URI != "tcp://127.0.0.1:7" || found.User != "shop" || found.Password != "secret" || !found.Insecure {
		t.Error(found, err)
	}
	given := Place{Discovers: true, URI: "tcp://127.0.0.1:8", User: "ann", Password: "hers"}
	if err := given.Discover(); err != nil || given.URI != "tcp://127.0.0.1:8" || given.User != "ann" || given.Password != "hers" {
		t.Error(given, err)
	}
	without := Place{}
	if err := without.Discover(); err != nil || without.URI != DefaultURI || without.User != "" {
		t.Error(without, err)
	}
}

func TestFilesOfTheSameMachine(t *testing.T) {
	directory := t.TempDir()
	clean(t, directory)
	write(t, filepath.Join(directory, "broker.json"), `{"control_uri":"tcp://127.0.0.1:7","control_socket":"control.sock","server_key":"KEY"}`, 0o644)
	admin := filepath.Join(directory, "admin.json")
	write(t, admin, `{"admin_user_id":"boss","admin_password":"secret"}`, 0o600)
	stopped := Place{Discovers: true}
	if err := stopped.Discover(); err != nil || stopped.URI != DefaultURI || stopped.Admin != "" {
		t.Error("the file of a broker that does not run counted", stopped, err)
	}
	lock, err := os.Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	running := Place{Discovers: true}
	socket := "ipc://" + filepath.Join(directory, "control.sock")
	if err := running.Discover(); err != nil || running.URI != socket || running.AdminPassword != "secret" || running.ServerKey != "KEY" {
		t.Error(running, err)
	}
	elsewhere := Place{Discovers: true, URI: "tcp://192.0.2.1:7"}
	if err := elsewhere.Discover(); err != nil || elsewhere.AdminPassword != "" || elsewhere.ServerKey != "" {
		t.Error("another machine would get the password", elsewhere, err)
	}
	if err := os.Chmod(admin, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (&Place{Discovers: true}).Discover(); !errors.Is(err, fault.ErrInvalidArgument) {
		t.Error("a password that others may read was accepted", err)
	}
}

func TestSecretsAreNotSentToOtherMachinesInClear(t *testing.T) {
	for _, uri := range []string{"tcp://192.0.2.1:5000", "tcp://no-such-host.invalid:5000"} {
		if err := (&Place{}).CheckExposure(uri); !errors.Is(err, fault.ErrInvalidArgument) {
			t.Error(uri, err)
		}
	}
	for _, place := range []Place{{ServerKey: "k"}, {Insecure: true}} {
		if err := place.CheckExposure("tcp://192.0.2.1:5000"); err != nil {
			t.Error(err)
		}
	}
}

// peer is a stream with scripted bytes of the other side.
type peer struct {
	io.Reader
	io.Writer
}

func greeting(mechanism string) []byte {
	made := make([]byte, 64)
	made[0], made[9], made[10] = 0xFF, 0x7F, 3
	copy(made[12:], mechanism)
	return made
}

func opened(bytesOfPeer []byte, keys *curveKeys) error {
	z, err := openZMTP(peer{bytes.NewReader(bytesOfPeer), io.Discard}, keys)
	if err == nil {
		_, err = z.ask([]byte("{}"))
	}
	return err
}

func TestControlSocketsOfAnotherKindAreRefused(t *testing.T) {
	keys := &curveKeys{}
	ready := "\x04\x06\x05READY"
	for _, each := range []struct {
		bytes string
		keys  *curveKeys
		kind  error
	}{
		{string(greeting("NULL")), keys, fault.ErrUnauthorized},
		{string(greeting("CURVE")), nil, fault.ErrUnauthorized},
		{strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 4), nil, fault.ErrProtocol},
		{string(greeting("NULL")) + "\x04\x07\x05ERROR\x00", nil, fault.ErrUnauthorized},
		{string(greeting("NULL")) + "\x00\x01x", nil, fault.ErrProtocol},
		{string(greeting("NULL")) + ready + "\x02\x00\x00\x01\x00\x00\x00\x00\x00", nil, fault.ErrProtocol},
		{string(greeting("NULL")) + ready + "\x08\x00", nil, fault.ErrProtocol},
		{string(greeting("CURVE")) + "\x04\xa8\x07WELCOME" + strings.Repeat("\x00", 160), keys, fault.ErrUnauthorized},
		{string(greeting("CURVE")) + "\x04\x08\x07WELCOME", keys, fault.ErrProtocol},
		{string(greeting("CURVE")) + "\x04\x26\x05READY" + strings.Repeat("\x00", 32), keys, fault.ErrProtocol},
		{string(greeting("NULL")) + ready + "\x01\x00\x00\x02{", nil, io.ErrUnexpectedEOF},
	} {
		if err := opened([]byte(each.bytes), each.keys); !errors.Is(err, each.kind) && !(each.kind == io.ErrUnexpectedEOF && errors.Is(err, io.EOF)) {
			t.Errorf("%.90q: %v", each.bytes, err)
		}
	}
}

// An impostor answers HELLO with READY under the key of zeros, which a client has before the WELCOME.
func TestReadyWithoutWelcomeIsRefused(t *testing.T) {
	nonce := []byte("\x00\x00\x00\x00\x00\x00\x00\x01")
	ready := append([]byte("\x05READY"), nonce...)
	ready = append(ready, nacl.Seal(nacl.Key{}, nonceOf("CurveZMQREADY---", nonce), readyProperties())...)
	public, secret, err := nacl.NewPair()
	if err != nil {
		t.Fatal(err)
	}
	keys := &curveKeys{public: public, secret: secret, server: nacl.Key{9}}
	_, err = openZMTP(peer{bytes.NewReader(append(greeting("CURVE"), zmtpFrame(flagCommand, ready)...)), io.Discard}, keys)
	if !errors.Is(err, fault.ErrProtocol) {
		t.Error("a side without the broker's key would get the password:", err)
	}
}

// welcoming answers HELLO with the same WELCOME twice.
type welcoming struct {
	server nacl.Key // the secret one
	out    bytes.Buffer
}

func (w *welcoming) Read(to []byte) (int, error) { return w.out.Read(to) }

func (w *welcoming) Write(data []byte) (int, error) {
	switch {
	case data[0] == 0xFF:
		w.out.Write(greeting("CURVE"))
	case bytes.HasPrefix(data[2:], []byte("\x05HELLO")):
		var client nacl.Key
		copy(client[:], data[2+80:])
		long := make([]byte, 16)
		box := nacl.Seal(nacl.Shared(client, w.server), nonceOf("WELCOME-", long), make([]byte, 128))
		welcome := zmtpFrame(flagCommand, append(append([]byte("\x07WELCOME"), long...), box...))
		w.out.Write(append(welcome, welcome...))
	}
	return len(data), nil
}

func TestASecondWelcomeIsRefused(t *testing.T) {
	public, secret, err := nacl.NewPair()
	if err != nil {
		t.Fatal(err)
	}
	_, err = openZMTP(&welcoming{server: secret}, &curveKeys{public: public, secret: secret, server: public})
	if !errors.Is(err, fault.ErrProtocol) {
		t.Error(err)
	}
}

// FuzzControl reads bytes of a hostile peer: in clear, and behind the handshake's beginning of CURVE.
func FuzzControl(f *testing.F) {
	for _, each := range []string{"", "\x04\x06\x05READY\x01\x00\x00\x02{}", "\x04\x07\x05ERROR\x00", "\x04\xa8\x07WELCOME" + strings.Repeat("\x00", 160),
		"\x02\x00\x00\x00\x00\x00\x00\x00\x03abc", "\x04\x06\x05READY\x00\x11{\"status\":\"ok\"}"} {
		f.Add([]byte(each), false)
		f.Add([]byte(each), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, encrypts bool) {
		if !encrypts {
			if z, err := openZMTP(peer{bytes.NewReader(append(greeting("NULL"), data...)), io.Discard}, nil); err == nil {
				if reply, err := z.ask([]byte("{}")); err == nil {
					if members, err := replyOf(reply); err == nil {
						(&Place{}).AddressOf(members)
					}
				}
			}
			return
		}
		opened(append(greeting("CURVE"), data...), &curveKeys{public: nacl.Key{1}, secret: nacl.Key{2}, server: nacl.Key{3}})
		c := &curve{keys: &curveKeys{}}
		if _, _, err := c.opened(data); err == nil {
			t.Error("a message without the right key was accepted")
		}
	})
}

// breaking answers requests, and ends the connection instead of the second answer.
func breaking(listener net.Listener, sent *int32) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		z, err := openZMTP(conn, nil)
		for err == nil {
			var flags byte
			if flags, _, err = z.frame(); err != nil || flags&flagMore != 0 {
				continue
			}
			if atomic.AddInt32(sent, 1) == 2 {
				break
			}
			_, err = conn.Write([]byte("\x01\x00\x00\x0f{\"status\":\"ok\"}"))
		}
		conn.Close()
	}
}

func TestOnlyHarmlessRequestsAreSentAgain(t *testing.T) {
	for cmd, times := range map[string]int32{"set_topic": 2, "list_topics": 3} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var sent int32
		go breaking(listener, &sent)
		conn, err := NewConn(&Place{URI: "tcp://" + listener.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if _, err := conn.Ask(ctx, "ping", nil); err != nil {
			t.Error(err)
		}
		_, err = conn.Ask(ctx, cmd, nil)
		if isLost := errors.Is(err, fault.ErrConnectionLost); isLost != (times == 2) || atomic.LoadInt32(&sent) != times {
			t.Error(cmd, err, atomic.LoadInt32(&sent))
		}
		cancel()
		conn.Close()
		listener.Close()
	}
}

func TestARequestEndsWithItsContextAndWithTheClient(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	conn, err := NewConn(&Place{URI: "tcp://" + silent.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := conn.Ask(ctx, "ping", nil); !errors.Is(err, fault.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	failed := make(chan error)
	go func() {
		_, err := conn.Ask(context.Background(), "ping", nil)
		failed <- err
	}()
	accepted, err := silent.Accept() // of the first request
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	second, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	conn.Close()
	if err := <-failed; !errors.Is(err, fault.ErrClosed) {
		t.Error(err)
	}
	if _, err := conn.Ask(context.Background(), "ping", nil); !errors.Is(err, fault.ErrClosed) {
		t.Error(err)
	}
}
