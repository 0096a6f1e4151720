package programs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
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

// message is what the browser sends: the result of a command, or an event.
type message struct {
	ID     int
	Method string
	Error  *struct{ Message string }
	Result json.RawMessage
}

// receive waits for the message that is meant and passes over others.
func (b *tab) receive(meant func(message) bool) (m message) {
	b.t.Helper()
	for {
		m = message{}
		require.NoError(b.t, wsjson.Read(b.ctx, b.conn, &m))
		if meant(m) {
			return m
		}
	}
}

// send sends one command and returns its number.
func (b *tab) send(method string, params map[string]any) int {
	b.t.Helper()
	b.id++
	require.NoError(b.t, wsjson.Write(b.ctx, b.conn, map[string]any{"id": b.id, "method": method, "params": params}))
	return b.id
}

// call sends one command and waits for its result.
func (b *tab) call(method string, params map[string]any, result any) {
	b.t.Helper()
	id := b.send(method, params)
	m := b.receive(func(m message) bool { return m.ID == id })
	require.Nil(b.t, m.Error, method)
	if result != nil {
		require.NoError(b.t, json.Unmarshal(m.Result, result))
	}
}

// open goes to a page and waits until it has loaded.
func (b *tab) open(url string) {
	b.t.Helper()
	b.call("Page.enable", nil, nil)
	b.send("Page.navigate", map[string]any{"url": url})
	b.receive(func(m message) bool { return m.Method == "Page.loadEventFired" })
}

// eval returns the value of an expression in the page, as JSON has it; of a promise, what it comes to.
func (b *tab) eval(expression string) any {
	b.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	require.Nil(b.t, out.ExceptionDetails, expression)
	return out.Result.Value
}

// until waits, in the page, until a condition holds: it looks at every change of the document.
func (b *tab) until(condition string) {
	b.t.Helper()
	held := b.eval(fmt.Sprintf(`new Promise(done => {
		const look = () => { if (%s) { watch.disconnect(); clearTimeout(late); done(true) } }
		const watch = new MutationObserver(look)
		const late = setTimeout(() => { watch.disconnect(); done(false) }, %d)
		watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true})
		look()
	})`, condition, patience.Milliseconds()))
	require.Equal(b.t, true, held, "%s, after %v; the page shows: %v", condition, patience, b.eval("document.body.innerText"))
}

// shows waits until the page's text contains a word.
func (b *tab) shows(word string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body.innerText.includes(%q)", word))
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
