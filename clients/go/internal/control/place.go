// Package control finds the broker, and sends requests to its control socket: docs/protocol.md.
package control

import (
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"lightq/internal/fault"
)

// Addresses and names that are used if nothing else is known.
const (
	DefaultURI   = "tcp://127.0.0.1:5000"
	defaultAdmin = "lightq_admin"
)

// Place is a broker's address, and the credentials for it.
type Place struct {
	URI                  string
	User, Password       string
	Admin, AdminPassword string
	ServerKey            string
	ClientKeyFile        string
	Insecure             bool
	DataDir              string
	Discovers            bool // look into the environment, and into the files of this machine
}

// credentials returns the members for commands on a topic.
func (p *Place) credentials() map[string]any {
	if p.User != "" {
		return map[string]any{"user_id": p.User, "password": p.Password}
	}
	return p.administration()
}

// administration returns the members for commands of administrators.
func (p *Place) administration() map[string]any {
	switch {
	case p.Admin != "":
		return map[string]any{"admin_user_id": p.Admin, "admin_password": p.AdminPassword}
	case p.User != "":
		return map[string]any{"admin_user_id": p.User, "admin_password": p.Password}
	}
	return map[string]any{}
}

// Discover fills in empty fields, as the command line does. Errors: invalid_argument.
func (p *Place) Discover() error {
	if p.Discovers {
		if err := p.discover(); err != nil {
			return err
		}
	}
	if p.URI == "" {
		p.URI = DefaultURI
	}
	return checkURI(p.URI)
}

func checkURI(uri string) error {
	host, port := splitTCP(uri)
	switch {
	case strings.Contains(uri, "@"):
		return fault.New("invalid_argument", "the URI contains a user or a password: give them as options")
	case !strings.HasPrefix(uri, "ipc://") && (host == "" || !isPort(port)):
		return fault.New("invalid_argument", "%q is neither tcp://HOST:PORT nor ipc://PATH", uri)
	}
	return nil
}

func (p *Place) discover() error {
	fill(&p.ServerKey, os.Getenv("LIGHTQ_SERVER_KEY"))
	fill(&p.ClientKeyFile, os.Getenv("LIGHTQ_CLIENT_KEY_FILE"))
	p.Insecure = p.Insecure || isTrue(os.Getenv("LIGHTQ_INSECURE"))
	if p.User == "" && os.Getenv("LIGHTQ_USER") != "" {
		p.User, p.Password = os.Getenv("LIGHTQ_USER"), os.Getenv("LIGHTQ_PASSWORD")
	}
	name, password := os.Getenv("LIGHTQ_ADMIN_USER"), os.Getenv("LIGHTQ_ADMIN_PASSWORD")
	if p.Admin == "" && name+password != "" {
		p.Admin, p.AdminPassword = name, password
		fill(&p.Admin, defaultAdmin)
	}
	if err := p.findURI(); err != nil {
		return err
	}
	named := p.URI
	if p.AdminPassword == "" && (p.Admin != "" || p.User == "") {
		if err := p.findAdmin(); err != nil {
			return err
		}
	}
	if p.ServerKey == "" {
		return p.findKey(named)
	}
	return nil
}

func fill(to *string, value string) {
	if *to == "" {
		*to = value
	}
}

func isTrue(value string) bool {
	return value == "true" || value != "" && strings.Trim(value, "0123456789") == "" && strings.Trim(value, "0") != ""
}

// directories returns where a broker of this machine may keep its data, in the order to search.
func (p *Place) directories() []string {
	named := p.DataDir
	fill(&named, os.Getenv("LIGHTQ_DATA_DIR"))
	if named != "" {
		return []string{named}
	}
	found, own := []string{"/var/lib/lightq"}, ""
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		own = filepath.Join(state, "lightq")
	} else if home := os.Getenv("HOME"); home != "" {
		own = filepath.Join(home, ".local/state/lightq")
	}
	switch {
	case own == "":
		return found
	case os.Geteuid() == 0:
		return append(found, own)
	}
	return append([]string{own}, found...)
}

// facts has the members of broker.json, admin.json and server_key.json that the client reads.
type facts struct {
	ControlURI    string `json:"control_uri"`
	ControlSocket string `json:"control_socket"`
	ServerKey     string `json:"server_key"`
	AdminUserID   string `json:"admin_user_id"`
	AdminPassword string `json:"admin_password"`
}

// factsOf returns the members of a file; none if it does not exist or is no JSON object.
func factsOf(path string, isPrivate bool) (found facts, err error) {
	data, err := smallFile(path, isPrivate)
	if err != nil || data == nil || json.Unmarshal(data, &found) != nil {
		return facts{}, err
	}
	return found, nil
}

func (p *Place) findURI() error {
	fill(&p.URI, os.Getenv("LIGHTQ_BROKER"))
	for _, name := range []string{"broker.json", "server_key.json"} {
		for _, directory := range p.directories() {
			if p.URI != "" {
				return nil
			}
			found, err := factsOf(filepath.Join(directory, name), false)
			if err != nil {
				return err
			}
			if found.ControlURI != "" && (name != "broker.json" || isRunning(directory, found)) {
				p.URI = found.ControlURI
			}
		}
	}
	fill(&p.URI, DefaultURI)
	return nil
}

// findAdmin takes the password of admin.json. All requests then go through the control socket in that directory.
func (p *Place) findAdmin() error {
	for _, directory := range p.directories() {
		running, err := factsOf(filepath.Join(directory, "broker.json"), false)
		if err != nil {
			return err
		}
		if running.ControlSocket == "" || !isLocal(p.URI, running.ControlURI) || !isRunning(directory, running) {
			continue
		}
		admin, err := factsOf(filepath.Join(directory, "admin.json"), true)
		if err != nil {
			return err
		}
		if admin.AdminPassword != "" && (p.Admin == "" || p.Admin == admin.AdminUserID) {
			p.Admin, p.AdminPassword = admin.AdminUserID, admin.AdminPassword
			p.URI = "ipc://" + filepath.Join(directory, running.ControlSocket)
			return nil
		}
	}
	return nil
}

func (p *Place) findKey(uri string) error {
	for _, directory := range p.directories() {
		running, err := factsOf(filepath.Join(directory, "broker.json"), false)
		if err != nil {
			return err
		}
		stopped, err := factsOf(filepath.Join(directory, "server_key.json"), false)
		if err != nil {
			return err
		}
		runs := mayBeLocal(uri, running.ControlURI)
		if runs {
			p.ServerKey = running.ServerKey
		}
		if p.ServerKey == "" && mayBeLocal(uri, stopped.ControlURI) {
			p.ServerKey = stopped.ServerKey
		}
		if runs || p.ServerKey != "" {
			return nil
		}
	}
	return nil
}

// splitTCP returns host and port of tcp://HOST:PORT, or empty texts.
func splitTCP(uri string) (host, port string) {
	if !strings.HasPrefix(uri, "tcp://") {
		return "", ""
	}
	at := strings.LastIndexByte(uri, ':')
	return strings.Trim(uri[len("tcp://"):max(at, len("tcp://"))], "[]"), uri[at+1:]
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func isPort(port string) bool {
	return port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func isAny(host string) bool { return host == "0.0.0.0" || host == "*" || host == "::" }

// isLocal tells whether the URI is certainly the address `bound` of this machine's broker. It may receive a password.
func isLocal(uri, bound string) bool {
	host, port := splitTCP(uri)
	boundHost, boundPort := splitTCP(bound)
	return bound != "" && uri == bound || port != "" && port == boundPort && isLoopback(host) && (isAny(boundHost) || isLoopback(boundHost))
}

// mayBeLocal tells whether the URI may be the address `bound`. In doubt, its key is required there.
func mayBeLocal(uri, bound string) bool {
	host, port := splitTCP(uri)
	boundHost, boundPort := splitTCP(bound)
	if bound == "" || isLocal(uri, bound) {
		return bound != ""
	}
	if host == "" || port != boundPort {
		return false
	}
	if isAny(boundHost) {
		boundHost, _ = os.Hostname()
	}
	found, own := addresses(host), addresses(boundHost)
	for _, each := range found {
		for _, other := range own {
			if each == other || isLoopback(each) && isLoopback(other) {
				return true
			}
		}
		if _, named := splitTCP(bound); named != "" && isLoopback(each) && isAnyURI(bound) {
			return true
		}
	}
	return false
}

func isAnyURI(uri string) bool {
	host, _ := splitTCP(uri)
	return isAny(host)
}

func addresses(host string) []string {
	found, err := net.LookupHost(host)
	if err != nil {
		return nil
	}
	return found
}

// CheckExposure returns invalid_argument if a secret would be sent to another machine in clear.
func (p *Place) CheckExposure(uri string) error {
	host, _ := splitTCP(uri)
	if host == "" || p.ServerKey != "" || p.Insecure || isLoopback(host) {
		return nil
	}
	found := addresses(host)
	isExposed := len(found) == 0
	for _, each := range found {
		isExposed = isExposed || !isLoopback(each)
	}
	if isExposed {
		return fault.New("invalid_argument", "%s is another machine, and nothing is encrypted: give ServerKey, or Insecure", uri)
	}
	return nil
}
