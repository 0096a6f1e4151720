package socksrelay

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

// FuzzConversation feeds the parser of the conversation any bytes from both sides: it goes forward only, keeps no more
// than one message, and what it gives as a destination can be taken apart.
func FuzzConversation(f *testing.F) {
	for _, talk := range [][2]string{
		{"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50data", "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00data"},
		{"\x05\x01\x02\x01\x01u\x01p\x05\x01\x00\x03\x01r\x00\x50", "\x05\x02\x01\x00\x05\x05\x00\x03\x01x\x00\x00"},
		{"\x05\x01\x00\x05\x01\x00\x03\x04[x:y\x00\x50", "\x05\x00\x05\x00"},
		{"\x05\xff", "\x05\xff"},
		{"\x05\x01\x00\x05\x01\x00\x09", "\x05\x00\x05\x08\x00\x09"},
	} {
		f.Add([]byte(talk[0]), []byte(talk[1]), uint64(0x5555555555555555))
	}
	f.Fuzz(func(t *testing.T, up, down []byte, order uint64) {
		c := conversation{phase: Accept}
		for i := 0; len(up)+len(down) > 0; i++ {
			from, d := &up, blackhole.Up
			if len(up) == 0 || len(down) > 0 && order>>(i%64)&1 == 1 {
				from, d = &down, blackhole.Down
			}
			before := c.phase
			c.feed(d, (*from)[0])
			*from = (*from)[1:]
			require.GreaterOrEqual(t, c.phase, before)
			require.LessOrEqual(t, c.phase, Close)
			require.Less(t, len(c.field), 2+2*256)
			if to := c.destination(); to != "" {
				host, port := splitDestination(to)
				assert.Equal(t, c.host, host)
				assert.Equal(t, strconv.Itoa(c.port), port)
			}
		}
	})
}
