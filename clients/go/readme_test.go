package lightq

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A newcomer's empty directory: the module is used from the repository, without a network.
func TestTheProgramOfTheReadmeRunsAsPrinted(t *testing.T) {
	connected(t)
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	program, _, isWhole := strings.Cut(rest, "```")
	directory := t.TempDir()
	here, err := filepath.Abs(".")
	if err != nil || !isWhole {
		t.Fatal("no program", err)
	}
	if err := os.WriteFile(filepath.Join(directory, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"mod init shop", "mod edit -require=lightq@v0.1.0 -replace=lightq=" + here, "build -o shop ."} {
		command := exec.Command("go", strings.Fields(line)...)
		command.Dir, command.Env = directory, append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", line, err, output)
		}
	}
	shop := exec.CommandContext(limited(t), filepath.Join(directory, "shop"))
	shop.Env = []string{"LIGHTQ_BROKER=" + theBroker.uri, "LIGHTQ_ADMIN_PASSWORD=" + adminPassword, "LIGHTQ_DATA_DIR=" + directory}
	shop.Stderr = os.Stderr
	printed, err := shop.StdoutPipe()
	if err == nil {
		err = shop.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(printed)
	for i := 0; i < 1000; i++ {
		if wanted := fmt.Sprintf("billed order %d", i); !lines.Scan() || lines.Text() != wanted {
			t.Fatalf("%q, not %q", lines.Text(), wanted)
		}
	}
	shop.Process.Kill() // its loop has no end
	shop.Wait()
}

func TestTheVersionIsTheBrokers(t *testing.T) {
	header, err := os.ReadFile("../../include/lightq/version.hpp")
	if err != nil || !strings.Contains(string(header), `version_text = "`+Version+`"`) {
		t.Error(Version, err)
	}
}
