package example

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startDeadline = 60 * time.Second
	stopDeadline  = 20 * time.Second
)

// startBroker starts a broker for one test, which is stopped when the test ends, and returns its address.
// If this process is killed, the broker sees the end of its standard input, and ends as well.
func startBroker(t *testing.T, settings ...string) string {
	t.Helper()
	portFile := filepath.Join(t.TempDir(), "port")
	command := os.Getenv("PYKBROKER")
	if command == "" {
		command = "pykbroker"
	}
	arguments := []string{"start", "--ephemeral", "--dev", "--port", "0", "--port-file", portFile, "--die-with-parent"}
	for _, setting := range settings {
		arguments = append(arguments, "--override", setting)
	}
	process := exec.Command(command, arguments...)
	log := &bytes.Buffer{} // read all the time: a pipe that fills up would hold the broker
	process.Stderr = log
	stdin, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	address, err := waitForAddress(portFile, ended)
	if err != nil {
		_ = process.Process.Kill()
		t.Fatalf("the broker did not start: %v\n%s", err, log)
	}
	t.Cleanup(func() {
		defer stdin.Close()
		_ = process.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the broker did not end cleanly: %v\n%s", err, log)
			}
		case <-time.After(stopDeadline):
			_ = process.Process.Kill()
			t.Error("the broker did not end")
		}
	})
	return address
}

// waitForAddress waits for the port file, which appears as a whole, and returns its first line.
func waitForAddress(portFile string, ended <-chan error) (string, error) {
	deadline := time.After(startDeadline)
	for {
		content, err := os.ReadFile(portFile)
		if err == nil {
			address, _, _ := strings.Cut(string(content), "\n")
			return address, nil
		}
		select {
		case err := <-ended:
			return "", fmt.Errorf("it has ended: %v", err)
		case <-deadline:
			return "", errors.New("it took too long")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
