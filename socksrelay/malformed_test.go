package socksrelay_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// converse sends bytes, ends the stream and returns what the relay answered before it closed the connection.
func converse(t testing.TB, l *memory, sent []byte) string {
	t.Helper()
	c, err := l.dial(t.Context(), "", "")
	require.NoError(t, err)
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		c.Write(sent)
		time.Sleep(socksrelay.DefaultHandshakeTimeout / 2)
		c.Close()
	}()
	got, _ := io.ReadAll(c)
	return string(got)
}

func TestMalformedInputGetsTheProtocolsErrorOrAClose(t *testing.T) {
	const hello, chosen = "\x05\x01\x00", "\x05\x00"
	for name, tc := range map[string]struct{ sent, want string }{
		"nothing":              {"", ""},
		"SOCKS4":               {"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", ""},
		"HTTP":                 {"GET / HTTP/1.1\r\n\r\n", ""},
		"no methods":           {"\x05\x00", "\x05\xff"},
		"unknown methods":      {"\x05\x02\x80\x81", "\x05\xff"},
		"half a greeting":      {"\x05\x05\x00", ""},
		"wrong version":        {hello + "\x04\x01\x00\x01\x01\x02\x03\x04\x00\x50", chosen},
		"unknown address type": {hello + "\x05\x01\x00\x05\x01\x02\x03\x04\x00\x50", chosen + "\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00"},
		"BIND":                 {hello + "\x05\x02\x00\x01\x01\x02\x03\x04\x00\x50", chosen + "\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		"UDP ASSOCIATE":        {hello + "\x05\x03\x00\x01\x01\x02\x03\x04\x00\x50", chosen + "\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		"unknown command":      {hello + "\x05\x09\x00\x01\x01\x02\x03\x04\x00\x50", chosen + "\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		"empty name":           {hello + "\x05\x01\x00\x03\x00\x00\x50", chosen + "\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"},
		"half a name":          {hello + "\x05\x01\x00\x03\x09abc", chosen},
		"half an address":      {hello + "\x05\x01\x00\x04\x01", chosen},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := serve(t, socksrelay.Config{})
				assert.Equal(t, tc.want, converse(t, l, []byte(tc.sent)))
			})
		})
	}
}

func TestTenThousandMalformedConnectionsLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, err := socksrelay.New(socksrelay.Config{Dial: echo})
		require.NoError(t, err)
		for i := range 10_000 {
			a, b := net.Pipe()
			go func() {
				a.Write([]byte{5, byte(i), byte(i >> 3), byte(i >> 5), 1, 0, 3, byte(i)})
				a.Close()
			}()
			go io.Copy(io.Discard, a)
			r.ServeConn(b)
		}
		assert.Empty(t, r.Connections())
		require.NoError(t, r.Close())
	})
}

func FuzzAnyBytesEndTheConnection(f *testing.F) {
	for _, seed := range []string{"", "\x05", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50hello", "\x05\x02\x00\x02\x01\x01u\x01p\x05\x01\x00\x03\x01r\x00\x50"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		bubble(t, func(t *testing.T) {
			l := serve(t, socksrelay.Config{})
			got := converse(t, l, sent)
			if len(got) > 0 {
				assert.Equal(t, byte(5), got[0], "what it says is SOCKS5")
			}
		})
	})
}
