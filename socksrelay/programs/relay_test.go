package programs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program finds a program or fails with what installs it.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoErrorf(t, err, "install it: apt-get install -y %s", name)
	return path
}

// relay is the command as a process of its own.
type relay struct {
	t            testing.TB
	socks, api   string // addresses
	process      *exec.Cmd
	stderrClosed chan struct{}
}

var logged = regexp.MustCompile(`msg=(relay listen|api url)=(?:http://)?([^/\s]+)`)

// start builds and runs the command on free ports. At the end of the test it is told to stop and must exit with 0.
func start(t testing.TB, args ...string) *relay {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "socksrelay")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/seed-5a7f77c4/deadair/socksrelay/cmd/socksrelay").CombinedOutput()
	require.NoError(t, err, string(out))
	r := &relay{t: t, stderrClosed: make(chan struct{})}
	r.process = exec.Command(binary, append([]string{"-listen", "127.0.0.1:0", "-api", "127.0.0.1:0"}, args...)...)
	stderr, err := r.process.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, r.process.Start())
	t.Cleanup(func() {
		r.process.Process.Signal(syscall.SIGTERM)
		<-r.stderrClosed
		assert.NoError(t, r.process.Wait(), "the exit code after SIGTERM is 0")
	})
	lines := bufio.NewScanner(stderr)
	for (r.socks == "" || r.api == "") && lines.Scan() {
		if m := logged.FindStringSubmatch(lines.Text()); m != nil && m[1] == "relay listen" {
			r.socks = m[2]
		} else if m != nil {
			r.api = m[2]
		}
	}
	go func() {
		defer close(r.stderrClosed)
		io.Copy(io.Discard, stderr)
	}()
	require.NotEmpty(t, r.api, "the command said where it listens")
	return r
}

// turn switches a fault through the API.
func (r *relay) turn(name string, active bool) {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "active": active})
	require.NoError(r.t, err)
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Post("http://"+r.api+"/api/switch", "application/json", bytes.NewReader(body))
	require.NoError(r.t, err)
	defer answer.Body.Close()
	require.Equal(r.t, http.StatusOK, answer.StatusCode)
}

type status struct {
	Faults []struct {
		Name   string
		Active bool
		Hits   int
	}
	Connections []struct{ Phase string }
}

// status asks the API.
func (r *relay) status() (s status) {
	r.t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get("http://" + r.api + "/api/status")
	require.NoError(r.t, err)
	defer answer.Body.Close()
	require.NoError(r.t, json.NewDecoder(answer.Body).Decode(&s))
	return s
}

// hole is how the built-in black hole stands.
func (r *relay) hole() (active bool, hits int) {
	for _, f := range r.status().Faults {
		if f.Name == "hole" {
			return f.Active, f.Hits
		}
	}
	r.t.Fatal("the fault hole is missing")
	return
}
