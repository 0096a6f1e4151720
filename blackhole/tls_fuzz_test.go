package blackhole

import (
	"testing"
	"time"
)

// FuzzTLSRecordsInAnyCutting feeds the parser of TLS records the same bytes at once and one by one.
func FuzzTLSRecordsInAnyCutting(f *testing.F) {
	hello := append([]byte{22, 3, 3, 0, 44, 2, 0, 0, 40, 3, 3}, make([]byte, 32)...)
	hello = append(hello, 0, 0x13, 1, 0, 0, 0)
	f.Add([]byte{}, []byte{})
	f.Add([]byte{22, 3, 1, 0, 1, 1}, hello)
	f.Add([]byte{20, 3, 3, 0, 1, 1, 22, 3, 3, 0, 2, 0, 0}, []byte{20, 3, 3, 0, 1, 1, 22, 3, 3, 0, 2, 0, 0})
	f.Add([]byte("GET / HTTP/1.1\r\n"), []byte{22, 3, 3, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, up, down []byte) {
		feed := func(step int) *tlsMachine {
			m := AfterTLSHandshake().Arm(Both, time.Time{}).(*tlsMachine)
			for _, way := range []struct {
				d Direction
				p []byte
			}{{Up, up}, {Down, down}, {Up, up}} {
				for p := way.p; len(p) > 0; {
					m.Begin(way.d, false)
					n := m.Scan(way.d, p[:min(step, len(p))])
					if n < 1 || n > len(p) {
						t.Fatalf("Scan returned %d of %d", n, len(p))
					}
					m.Feed(way.d, p[:n])
					p = p[n:]
				}
			}
			return m
		}
		whole := feed(len(up) + len(down) + 1)
		single := feed(1)
		if whole.String() != single.String() {
			t.Fatalf("at once: %s; byte by byte: %s", whole, single)
		}
		if whole.version != single.version {
			t.Fatalf("versions %x and %x", whole.version, single.version)
		}
	})
}
