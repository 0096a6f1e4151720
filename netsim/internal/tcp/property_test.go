package tcp

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyAdversary draws one that may hold up what passes, but not for long.
func anyAdversary(t *rapid.T) adversary {
	return adversary{
		seed:       rapid.Uint64().Draw(t, "seed"),
		loss:       rapid.SampledFrom([]float64{0, 0, 0.01, 0.03}).Draw(t, "loss"),
		duplicate:  rapid.SampledFrom([]float64{0, 0, 0.05, 0.5}).Draw(t, "duplicate"),
		delay:      rapid.SampledFrom([]time.Duration{0, ms, 30 * ms, 400 * ms}).Draw(t, "delay"),
		jitter:     rapid.SampledFrom([]time.Duration{0, ms, 20 * ms, 900 * ms}).Draw(t, "jitter"),
		mss:        rapid.SliceOfN(rapid.IntRange(50, 1460), 1, 3).Draw(t, "mss"),
		burst:      rapid.IntRange(1, 8).Draw(t, "burst"),
		sendBuffer: rapid.IntRange(1, 8000).Draw(t, "send buffer"),
		recvBuffer: rapid.IntRange(1, 8000).Draw(t, "receive buffer"),
		noDelay:    rapid.Bool().Draw(t, "no delay"),
		together:   rapid.Bool().Draw(t, "both open at once"),
		resize:     rapid.Bool().Draw(t, "buffers change"),
		eager:      rapid.Bool().Draw(t, "reads at once"),
	}
}

func anyScript(t *rapid.T, name string) script {
	return script{
		total:     rapid.IntRange(0, 5000).Draw(t, name+" writes"),
		chunk:     rapid.IntRange(100, 5000).Draw(t, name+" at a time"),
		pause:     rapid.SampledFrom([]time.Duration{1, ms, 100 * ms, 2 * time.Second}).Draw(t, name+" pauses"),
		linger:    true,
		keepAlive: rapid.Bool().Draw(t, name+" keep-alive"),
		quitsAt:   Never,
	}
}

// TestEveryByteOnce: whatever a network does that lets packets pass in the end,
// each end reads what the other wrote, all of it, once and in order, and then
// the end of the stream; both are told of no error; nothing is left over.
func TestEveryByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(anyAdversary(t), [2]script{anyScript(t, "client"), anyScript(t, "server")})
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		for i, p := range w.ends {
			if p.end != "EOF" || p.writeErr != nil || p.untold != 0 || p.got != p.other.script.total {
				t.Fatalf("end %d: %q after %d of %d bytes, writing %d of %d: %v, %v", i, p.end, p.got, p.other.script.total, p.wrote, p.script.total, p.writeErr, p.untold)
			}
		}
	})
}

// TestOrAnError: where nothing passes for long or for good, one way or both, and
// programs close in the middle or reset, what is read is a beginning of what was
// written; all of it, where the other end had said that it was all and had heard
// that it arrived; and everything comes to an end.
func TestOrAnError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyAdversary(t)
		a.oneWay = rapid.Bool().Draw(t, "one way")
		a.loss += rapid.SampledFrom([]float64{0, 0.2, 0.5}).Draw(t, "more loss")
		for range rapid.IntRange(0, 2).Draw(t, "dark spans") {
			from := rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "dark from")
			long := rapid.SampledFrom([]time.Duration{ms, time.Second, 30 * time.Second, 10 * time.Minute, Never / 2}).Draw(t, "dark for")
			a.dark = append(a.dark, span{time.Duration(from), time.Duration(from) + long})
		}
		var scripts [2]script
		for i, name := range []string{"client", "server"} {
			s := anyScript(t, name)
			s.keepAlive = true // or an end whose peer is gone would wait for ever, rightly
			s.linger = rapid.Bool().Draw(t, name+" half-closes")
			if rapid.Bool().Draw(t, name+" does not wait for the end") {
				s.quitsAt = time.Duration(rapid.Int64Range(1, int64(30*time.Second)).Draw(t, name+" quits at"))
				s.aborts = rapid.Bool().Draw(t, name+" aborts")
			}
			scripts[i] = s
		}
		w := newWorld(a, scripts)
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		for i, p := range w.ends {
			if p.end == "EOF" && p.got < p.other.wrote && p.writeErr == nil && scripts[1-i].quitsAt == Never && scripts[1-i].linger {
				t.Fatalf("end %d saw the end of the stream after %d of %d bytes", i, p.got, p.other.wrote)
			}
		}
	})
}
