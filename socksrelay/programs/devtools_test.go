package programs

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"
)

const patience = 30 * time.Second

// tab is one page of a headless Chromium, driven by the DevTools protocol.
type tab struct {
	t    testing.TB
	ctx  context.Context
	conn *websocket.Conn
	id   int
}

var devTools = regexp.MustCompile(`DevTools listening on ws://([^/]+)/`)

// browse starts Chromium and opens an empty page.
func browse(t testing.TB, args ...string) *tab {
	t.Helper()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1100,760",
		"--remote-debugging-port=0", "--user-data-dir=" + t.TempDir()}, args...)
	cmd := exec.Command(program(t, "chromium"), append(args, "about:blank")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its helpers end with it
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	drained := make(chan struct{})
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-drained
		cmd.Wait()
	})
	var address, said string
	lines := bufio.NewScanner(stderr)
	for address == "" && lines.Scan() {
		said += lines.Text() + "\n"
		if m := devTools.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	go func() {
		defer close(drained)
		io.Copy(io.Discard, stderr)
	}()
	require.NotEmpty(t, address, "Chromium said: %s", said)

	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+address+"/json/new?about:blank", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	var made struct{ WebSocketDebuggerURL string }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&made))
	conn, _, err := websocket.Dial(ctx, made.WebSocketDebuggerURL, nil)
	require.NoError(t, err)
	conn.SetReadLimit(64 << 20)
	t.Cleanup(func() { conn.CloseNow() })
	return &tab{t: t, ctx: ctx, conn: conn}
}

// call sends one command and waits for its result.
func (b *tab) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.id++
	require.NoError(b.t, wsjson.Write(b.ctx, b.conn, map[string]any{"id": b.id, "method": method, "params": params}))
	for {
		var message struct {
			ID     int
			Error  *struct{ Message string }
			Result json.RawMessage
		}
		require.NoError(b.t, wsjson.Read(b.ctx, b.conn, &message), method)
		if message.ID != b.id {
			continue // an event
		}
		require.Nil(b.t, message.Error, method)
		if result != nil {
			require.NoError(b.t, json.Unmarshal(message.Result, result))
		}
		return
	}
}

// open goes to a page.
func (b *tab) open(url string) { b.call("Page.navigate", map[string]any{"url": url}, nil) }

// eval returns the value of an expression in the page, as JSON has it.
func (b *tab) eval(expression string) any {
	b.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &out)
	require.Nil(b.t, out.ExceptionDetails, expression)
	return out.Result.Value
}

// shows waits until the page's text contains a word.
func (b *tab) shows(word string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		text, _ := b.eval("document.body ? document.body.innerText : ''").(string)
		return strings.Contains(text, word)
	}, patience, 50*time.Millisecond, "the page shows %q", word)
}

// click presses the mouse on an element.
func (b *tab) click(element string) {
	b.t.Helper()
	at := b.eval("(()=>{const r=(" + element + ").getBoundingClientRect();return [r.x+r.width/2,r.y+r.height/2]})()").([]any)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

// screenshot is the page as a PNG.
func (b *tab) screenshot() []byte {
	b.t.Helper()
	var out struct{ Data []byte }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	return out.Data
}
