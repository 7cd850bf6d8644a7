//go:build unix

package control

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lightq/internal/fault"
)

const (
	fileBytesMax = 64 * 1024
	probeTime    = time.Second
)

// smallFile returns a file's content, or nil if it cannot be read. Errors: invalid_argument if its owner is not trusted, or
// if others may read a private file.
func smallFile(path string, isPrivate bool) ([]byte, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if isPrivate {
		flags |= syscall.O_NOFOLLOW
	}
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, nil
	}
	defer file.Close()
	info, err := file.Stat()
	directory, directoryErr := os.Stat(filepath.Dir(path))
	if err != nil || directoryErr != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if owner != 0 && int(owner) != os.Geteuid() && owner != directory.Sys().(*syscall.Stat_t).Uid {
		return nil, fault.New("invalid_argument", "%s belongs to the user %d, who is not trusted", path, owner)
	}
	if isPrivate && info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New("invalid_argument", "other users may read %s: chmod 600 %s", path, path)
	}
	data, err := io.ReadAll(io.LimitReader(file, fileBytesMax))
	if err != nil {
		return nil, nil
	}
	return data, nil
}

// isLocked tells whether another process holds the lock of a file or directory.
func isLocked(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}

// isRunning tells whether the broker runs. A killed one leaves its broker.json. The file counts only while the directory is
// locked, or the socket answers.
func isRunning(directory string, broker facts) bool {
	if isLocked(directory) || isLocked(filepath.Join(directory, "lock")) {
		return true
	}
	if broker.ControlSocket == "" {
		return false
	}
	probe, err := net.DialTimeout("unix", filepath.Join(directory, broker.ControlSocket), probeTime)
	if err != nil {
		return false
	}
	probe.Close()
	return true
}
