package control

import (
	"bytes"
	"encoding/json"
	"strings"

	"lightq/internal/fault"
	"lightq/internal/nacl"
)

const ticketBytesMax = 512

// Commands that take only an administrator's credentials.
var ofAdministrators = map[string]bool{"create_topic": true, "delete_topic": true, "list_topics": true, "create_user": true,
	"delete_user": true, "grant": true, "revoke": true, "list_users": true, "reload": true, "stats_all": true, "set_password": true}

// Commands that may be executed twice. A second join makes another ticket.
var onlyReads = map[string]bool{"ping": true, "version": true, "join": true, "stats": true, "stats_all": true, "list_topics": true,
	"list_users": true, "list_dead": true, "list_delayed": true, "list_schedules": true}

// Joins that would fail again.
var finalJoins = map[string]bool{"invalid_json": true, "invalid_cmd": true, "invalid_request": true, "request_too_large": true,
	"unauthorized_access": true, "topic_not_found": true, "not_supported": true, "invalid_argument": true}

// IsFinalJoin tells whether a join with this error would fail again.
func IsFinalJoin(err error) bool { return finalJoins[fault.CodeOf(err)] }

// request returns a request with the credentials that the command takes.
func (p *Place) request(cmd string, fields map[string]any) ([]byte, error) {
	members := map[string]any{}
	_, hasTopic := fields["topic"]
	switch {
	case ofAdministrators[cmd] || cmd == "stats" && !hasTopic:
		members = p.administration()
		if cmd == "create_topic" && p.Admin != "" && p.User != "" { // the topic's own user
			members["user_id"], members["password"] = p.User, p.Password
		}
	case cmd != "ping" && cmd != "version":
		members = p.credentials()
	}
	for name, value := range fields {
		members[name] = value
	}
	members["cmd"] = cmd
	made, err := json.Marshal(members)
	if err != nil {
		return nil, fault.New("invalid_argument", "%s: %v", cmd, err)
	}
	return made, nil
}

// replyOf returns the members of a reply. Errors: the broker's, a violation.
func replyOf(data []byte) (map[string]any, error) {
	var reply map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err := decoder.Decode(&reply)
	status, isText := reply["status"].(string)
	if err != nil || !isText {
		return nil, fault.Violation("the broker sent a reply that is no JSON object with a status")
	}
	if status != "ok" {
		code, _ := reply["code"].(string)
		description, _ := reply["description"].(string)
		if code == "" {
			code = "internal"
		}
		return nil, fault.New(code, "%s", description)
	}
	return reply, nil
}

// keys returns the keys for the control socket, or nil without encryption. Errors: invalid_argument.
func (p *Place) keys() (*curveKeys, error) {
	if p.ServerKey == "" {
		return nil, nil
	}
	made := &curveKeys{}
	var err error
	if made.server, err = nacl.ParseKey(p.ServerKey); err != nil {
		return nil, fault.New("invalid_argument", "the server key: %v", err)
	}
	if p.ClientKeyFile == "" {
		made.public, made.secret, err = nacl.NewPair()
		return made, err
	}
	data, err := smallFile(p.ClientKeyFile, true)
	if err != nil || data == nil {
		return nil, fault.New("invalid_argument", "%s cannot be read, or is not private", p.ClientKeyFile)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if made.secret, err = nacl.ParseKey(strings.TrimSpace(line)); err != nil {
		return nil, fault.New("invalid_argument", "%s: %v", p.ClientKeyFile, err)
	}
	made.public = nacl.PublicOf(made.secret)
	return made, nil
}

// Transport chooses the Unix socket if the broker is on this machine and does not encrypt. Errors: invalid_argument.
func (p *Place) Transport(wanted string) (string, error) {
	switch {
	case wanted == "tcp" || wanted == "ipc":
		return wanted, nil
	case wanted != "":
		return "", fault.New("invalid_argument", "the transport is %q; it is tcp or ipc", wanted)
	case strings.HasPrefix(p.URI, "ipc://") && p.ServerKey == "":
		return "ipc", nil
	}
	return "tcp", nil
}

// Address is the result of a join for a session.
type Address struct {
	Network, Host     string // arguments of net.Dial
	Ticket            string
	CertificateSHA256 string // hexadecimal; empty: the connection is in clear
}

// AddressOf returns where to connect after a join. Errors: invalid_argument, a violation.
func (p *Place) AddressOf(reply map[string]any) (Address, error) {
	uri, _ := reply["bind_uri"].(string)
	ticket, _ := reply["ticket"].(map[string]any)
	id, hasID := ticket["id"].(string)
	secret, hasSecret := ticket["secret"].(string)
	tls, encrypts := reply["tls"].(map[string]any)
	certificate, _ := tls["certificate_sha256"].(string)
	made := Address{"unix", strings.TrimPrefix(uri, "ipc://"), id + "." + secret, certificate}
	if !hasID || !hasSecret || len(made.Ticket) > ticketBytesMax || checkURI(uri) != nil || encrypts && certificate == "" {
		return made, fault.Violation("the broker's reply to a join has an invalid address or ticket")
	}
	if strings.HasPrefix(uri, "tcp://") {
		made.Network, made.Host = "tcp", strings.TrimPrefix(uri, "tcp://")
		if p.ServerKey != "" && certificate == "" {
			return made, fault.Violation("the broker encrypts, and its reply to a join names no certificate")
		}
	}
	if certificate == "" {
		return made, p.CheckExposure(uri)
	}
	return made, nil
}
