package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"
)

func TestWrongFlagsAreNamed(t *testing.T) {
	over, stop := context.WithCancel(t.Context())
	stop() // flags that pass end the command at once
	for want, args := range map[string][]string{
		"not a loopback address: add -expose": {"-listen", "0.0.0.0:1080"},
		"-api 0.0.0.0:1":                      {"-api", "0.0.0.0:1"},
		"want name:password":                  {"-user", "nobody"},
		"effect \\\"melt\\\" is unknown":      {"-fault", `{"name":"x","phase":"data","effect":"melt"}`},
		"unknown field":                       {"-fault", `{"nmae":"x"}`},
		"flag provided but not defined":       {"-nonsense"},
		"want host:port":                      {"-allow", "["},
		"missing port in address":             {"-allow", "example.com"},
		`-allow \":80\"`:                      {"-allow", ":80"},
		`-allow \"localhost:http\"`:           {"-allow", "localhost:http"},
		`-listen \"localhost\"`:               {"-listen", "localhost"},
		`not UTF-8`:                           {"-allow", "\xff:80"},
		`-api \"here\"`:                       {"-api", "here"},
		`-user: the password`:                 {"-user", "name:"},
		`-user: the name`:                     {"-user", strings.Repeat("n", 256) + ":p"},
		`\"unexpected\" is not a flag`:        {"unexpected"},
		`the name is taken`:                   {"-fault", `{"name":"hole","phase":"data","effect":"stall"}`},
		`rate 5 does not belong to effect`:    {"-fault", `{"name":"x","phase":"data","effect":"stall","rate":5}`},
	} {
		var out bytes.Buffer
		assert.Equal(t, exitUsage, run(over, args, &out), "%q", args)
		assert.Contains(t, out.String(), want)
	}
	var out bytes.Buffer
	assert.Equal(t, exitClean, run(t.Context(), []string{"-help"}, &out))
	assert.Contains(t, out.String(), "curl")
}

func TestABusyPortIsAFailure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var out bytes.Buffer
	assert.Equal(t, exitFailure, run(t.Context(), []string{"-listen", l.Addr().String()}, &out))
	assert.Contains(t, out.String(), "address already in use")
}

func testDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	o := options{listen: "127.0.0.1:0", faults: args}
	d, err := o.daemon(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { d.relay.Close() })
	return d
}

func ask(d *daemon, method, target, host, kind, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = host
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	d.handler().ServeHTTP(w, r)
	return w
}

func TestAPI(t *testing.T) {
	const local, kind = "127.0.0.1:1081", "application/json"
	d := testDaemon(t)
	for _, tc := range []struct {
		method, target, host, kind, body string
		code                             int
	}{
		{"GET", "/", local, "", "", http.StatusOK},
		{"GET", "/api/status", "localhost:1081", "", "", http.StatusOK},
		{"GET", "/api/status", "evil.example:1081", "", "", http.StatusForbidden},
		{"POST", "/api/switch", local, "text/plain", `{"name":"hole","active":true}`, http.StatusUnsupportedMediaType},
		{"POST", "/api/switch", "evil.example", kind, `{"name":"hole","active":true}`, http.StatusForbidden},
		{"POST", "/api/switch", local, kind, `{"name":"nothing","active":true}`, http.StatusNotFound},
		{"POST", "/api/switch", local, kind, `{`, http.StatusBadRequest},
		{"POST", "/api/switch", local, kind, `{"name":"hole","active":true}`, http.StatusOK},
		{"POST", "/api/faults", local, kind, `{"name":"x","phase":"greeting","effect":"stall","destination":"y"}`, http.StatusBadRequest},
		{"POST", "/api/faults", local, kind, `{"name":"x","phase":"dial","effect":"answer","code":5}`, http.StatusCreated},
		{"POST", "/api/faults", local, kind, `{"name":"x","phase":"dial","effect":"answer","code":5}`, http.StatusBadRequest},
		{"DELETE", "/api/faults?name=x", local, kind, "", http.StatusOK},
		{"DELETE", "/api/faults?name=x", local, kind, "", http.StatusNotFound},
	} {
		w := ask(d, tc.method, tc.target, tc.host, tc.kind, tc.body)
		assert.Equal(t, tc.code, w.Code, "%+v: %s", tc, w.Body)
	}
	assert.True(t, d.specs["hole"].fault.Switch.IsOn())
}

// TestAPIRefusalsNameWhatIsWrong holds that nobody has to guess, and that nothing is changed by a request that is half
// understood.
func TestAPIRefusalsNameWhatIsWrong(t *testing.T) {
	d := testDaemon(t)
	before := d.status()
	for _, tc := range []struct {
		method, target, body string
		code                 int
		says                 string
	}{
		{"POST", "/api/switch", ``, 400, "the body is empty"},
		{"POST", "/api/switch", `{`, 400, "not JSON"},
		{"POST", "/api/switch", `{"name":"hole"}`, 400, `field "active" is missing`},
		{"POST", "/api/switch", `{"active":true}`, 400, `field "name" is missing`},
		{"POST", "/api/switch", `{"name":"hole","active":"yes"}`, 400, `field "active": a string`},
		{"POST", "/api/switch", `{"name":"hole","active":true,"x":1}`, 400, `unknown field "x"`},
		{"POST", "/api/switch", `{"name":"hole","active":true} {}`, 400, "more than one JSON value"},
		{"POST", "/api/switch", `[]`, 400, "want an object"},
		{"POST", "/api/switch", `{"name":"nothing","active":true}`, 404, `no fault "nothing"`},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"throttle","rate":-1}`, 400, "rate -1"},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"truncate","size":-7}`, 400, "size -7"},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"delay","pause":"-1s"}`, 400, "pause -1s"},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"delay","pause":5}`, 400, "duration 5"},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"delay","pause":"5 s"}`, 400, `duration "5 s"`},
		{"POST", "/api/faults", `{"name":"x","phase":"dial","effect":"answer","code":256}`, 400, `field "code": a number 256`},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"stall","nth":-3}`, 400, "Nth -3"},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"stall","chance":1.5}`, 400, "Chance 1.5"},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"stall","afterbytes":-2}`, 400, "AfterBytes(-2)"},
		{"POST", "/api/faults", `{"name":"x","phase":"nowhere","effect":"stall"}`, 400, `phase "nowhere"`},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"stall","on":"left"}`, 400, `"left"`},
		{"POST", "/api/faults", `{"name":"x","phase":"data","effect":"stall","rate":5}`, 400, `rate 5 does not belong to effect "stall"`},
		{"POST", "/api/faults", `{"name":"x","phase":"dial","effect":"answer","code":5,"on":"up"}`, 400, `on up does not belong to effect "answer"`},
		{"POST", "/api/faults", `{"name":"` + strings.Repeat("x", maxBody) + `"}`, 413, "larger than 65536 bytes"},
		{"DELETE", "/api/faults", ``, 400, `parameter "name" is missing`},
		{"DELETE", "/api/faults?name=x", ``, 404, `no fault "x"`},
		{"PUT", "/api/faults", `{}`, 405, "PUT /api/faults: want POST or DELETE"},
		{"GET", "/api/switch", ``, 405, "GET /api/switch: want POST"},
		{"POST", "/api/status", `{}`, 405, "POST /api/status: want GET"},
		{"POST", "/", `{}`, 405, "POST /: want GET"},
		{"GET", "/api/nothing", ``, 404, `no such path: "/api/nothing"`},
	} {
		w := ask(d, tc.method, tc.target, "127.0.0.1:1081", "application/json", tc.body)
		assert.Equal(t, tc.code, w.Code, "%s %s %.100s: %s", tc.method, tc.target, tc.body, w.Body)
		var said struct{ Error string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &said), "%s %s: %s", tc.method, tc.target, w.Body)
		assert.Contains(t, said.Error, tc.says, "%s %s %.100s", tc.method, tc.target, tc.body)
	}
	assert.Equal(t, before, d.status(), "nothing has changed")
}

// TestForeignPagesCannotSwitchFaults plays a browser that shows a page of somebody else: one on another origin, one on
// another port of this machine, and one whose name was made to resolve to this machine.
func TestForeignPagesCannotSwitchFaults(t *testing.T) {
	const local = "127.0.0.1:1081"
	d := testDaemon(t)
	try := func(host string, headers ...string) int {
		r := httptest.NewRequest("POST", "/api/switch", strings.NewReader(`{"name":"hole","active":true}`))
		r.Host = host
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		d.handler().ServeHTTP(w, r)
		return w.Code
	}
	const kind, json = "Content-Type", "application/json"
	for name, code := range map[string]int{
		"another origin":                  try(local, kind, json, "Origin", "http://evil.example"),
		"another port":                    try(local, kind, json, "Origin", "http://127.0.0.1:3000"),
		"another site, by Sec-Fetch-Site": try(local, kind, json, "Sec-Fetch-Site", "cross-site"),
		"another port, by Sec-Fetch-Site": try(local, kind, json, "Sec-Fetch-Site", "same-site"),
		"a sandboxed frame":               try(local, kind, json, "Origin", "null"),
		"a name that was rebound":         try("evil.example:1081", kind, json, "Origin", "http://evil.example:1081"),
		"a name that looks local":         try("localhost.evil.example:1081", kind, json),
		"no host":                         try("", kind, json),
		"a form":                          try(local, kind, "application/x-www-form-urlencoded"),
		"a form as text":                  try(local, kind, "text/plain"),
		"no type":                         try(local),
	} {
		assert.Contains(t, []int{http.StatusForbidden, http.StatusUnsupportedMediaType}, code, name)
	}
	assert.False(t, d.specs["hole"].fault.Switch.IsOn())
	assert.Equal(t, http.StatusOK, try(local, kind, json, "Origin", "http://"+local, "Sec-Fetch-Site", "same-origin"), "the status page")
	assert.Equal(t, http.StatusOK, try("[::1]:1081", kind, json), "curl")
	assert.True(t, d.specs["hole"].fault.Switch.IsOn())
}

// TestTheCommandServesUntilItIsStopped runs the whole command and talks to it as its users do.
func TestTheCommandServesUntilItIsStopped(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) }))
	defer web.Close()
	ctx, stop := context.WithCancel(t.Context())
	out, lines := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"-listen", "127.0.0.1:0", "-api", "127.0.0.1:0", "-user", "u:p"}, lines)
		lines.Close()
	}()
	log := bufio.NewScanner(out)
	said := func(key string) string {
		require.True(t, log.Scan())
		_, after, ok := strings.Cut(log.Text(), " "+key+"=")
		require.True(t, ok, log.Text())
		return after
	}
	relay, api := said("listen"), said("url")
	drained := make(chan struct{})
	go func() { defer close(drained); io.Copy(io.Discard, out) }()

	get := func(auth *proxy.Auth) (string, error) {
		d, err := proxy.SOCKS5("tcp", relay, auth, proxy.Direct)
		require.NoError(t, err)
		client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: d.(proxy.ContextDialer).DialContext, DisableKeepAlives: true}}
		answer, err := client.Get(web.URL)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	body, err := get(&proxy.Auth{User: "u", Password: "p"})
	require.NoError(t, err)
	assert.Equal(t, "hello", body)
	_, err = get(&proxy.Auth{User: "u", Password: "wrong"})
	require.ErrorContains(t, err, "authentication failed")

	page, err := http.Get(api)
	require.NoError(t, err)
	page.Body.Close()
	assert.Equal(t, http.StatusOK, page.StatusCode)
	stop()
	assert.Equal(t, exitClean, <-exit)
	<-drained
}

// TestASignalEndsTransfersThatAreGoingOn stops the command, over IPv6, while one connection moves bytes, one stands still
// and one waits in the handshake.
func TestASignalEndsTransfersThatAreGoingOn(t *testing.T) {
	flood, err := net.Listen("tcp", "[::1]:0")
	require.NoError(t, err)
	defer flood.Close()
	go func() {
		for {
			c, err := flood.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for block := make([]byte, 64<<10); err == nil; {
					_, err = c.Write(block)
				}
			}()
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	out, lines := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"-listen", "[::1]:0", "-api", "", "-fault",
			`{"name":"second","phase":"data","effect":"stall","nth":2,"active":true}`}, lines)
		lines.Close()
	}()
	log := bufio.NewScanner(out)
	require.True(t, log.Scan())
	_, relay, ok := strings.Cut(log.Text(), " listen=")
	require.True(t, ok, log.Text())
	drained := make(chan struct{})
	go func() { defer close(drained); io.Copy(io.Discard, out) }()

	d, err := proxy.SOCKS5("tcp", relay, nil, proxy.Direct)
	require.NoError(t, err)
	moving, err := d.Dial("tcp", flood.Addr().String())
	require.NoError(t, err)
	_, err = io.ReadFull(moving, make([]byte, 1<<20))
	require.NoError(t, err, "bytes flow")
	still, err := d.Dial("tcp", flood.Addr().String())
	require.NoError(t, err)
	waiting, err := net.Dial("tcp", relay)
	require.NoError(t, err)
	stop()
	assert.Equal(t, exitClean, <-exit)
	<-drained
	for _, c := range []net.Conn{moving, still, waiting} {
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err := io.Copy(io.Discard, c)
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection ends with the relay")
		c.Close()
	}
}

func TestDestinationsThatMayBeDialled(t *testing.T) {
	for _, tc := range []struct {
		allow   texts
		yes, no []string
	}{
		{nil, []string{"127.0.0.1:80", "[::1]:443", "localhost:1"}, []string{"192.0.2.1:80", "[::2]:443", "127.0.0.1.example:80"}},
		{texts{"[2001:db8::1]:443"}, []string{"[2001:db8::1]:443"}, []string{"[2001:db8::2]:443", "2:443"}},
		{texts{"[2001:db8::*]:*", "*.example:80"}, []string{"[2001:db8::7]:1", "a.example:80"}, []string{"a.example:81", "[2001:db9::7]:1"}},
	} {
		allowed := allowList(tc.allow)
		for _, d := range tc.yes {
			assert.True(t, allowed(d), "%q allows %s", tc.allow, d)
		}
		for _, d := range tc.no {
			assert.False(t, allowed(d), "%q allows %s", tc.allow, d)
		}
	}
}
