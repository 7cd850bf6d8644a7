//go:build !unix

package control

import (
	"os"

	"lightq/internal/fault"
)

// smallFile reads the key file that the program names. A broker runs on Linux only, so there are no files of the same
// machine to find.
func smallFile(path string, isPrivate bool) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil && isPrivate {
		return nil, fault.New("invalid_argument", "%s cannot be read", path)
	}
	return data, nil
}

func isRunning(string, facts) bool { return false }
