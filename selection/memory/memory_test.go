package memory_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

var start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

const (
	lan   route.Key = "192.168.1.10"
	relay route.Key = "wss://relay.example/tunnel/m1"
)

func TestFailingRecently(t *testing.T) {
	for _, tc := range []struct {
		name     string
		failures []time.Duration // since start
		at       time.Duration
		want     bool
	}{
		{"none", nil, 0, false},
		{"one", []time.Duration{0}, 0, false},
		{"two", []time.Duration{0, time.Second}, time.Second, true},
		{"two, far apart, still consecutive", []time.Duration{0, time.Hour}, time.Hour, true},
		{"the window includes its end", []time.Duration{0, 0}, 120 * time.Second, true},
		{"and no more", []time.Duration{0, 0}, 120*time.Second + 1, false},
		{"a stamp in the future has expired", []time.Duration{0, 10 * time.Second}, 9 * time.Second, false},
		{"time only hides the streak", []time.Duration{0, 0, time.Hour}, time.Hour, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := memory.New(memory.DefaultPolicy())
			for _, f := range tc.failures {
				m.Record(start.Add(f), "cell", []route.Key{lan}, nil)
			}
			assert.Equal(t, tc.want, m.Failing(start.Add(tc.at), lan))
		})
	}
}

func TestOneStrikePerRouteAndRace(t *testing.T) {
	m := memory.New(memory.DefaultPolicy())
	m.Record(start, "cell", []route.Key{lan, lan, relay, lan}, nil)
	assert.Equal(t, 1, m.Endpoint(lan).ConsecutiveFailures)
	assert.Equal(t, 1, m.Endpoint(relay).ConsecutiveFailures)
	assert.False(t, m.Failing(start, lan))
}

func TestFailuresAreWrittenBeforeTheSuccess(t *testing.T) {
	m := memory.New(memory.DefaultPolicy())
	m.Record(start, "cell", []route.Key{relay, lan}, nil)
	m.Record(start, "cell", []route.Key{relay, lan}, &memory.Success{Key: relay, ReadyV2: true})
	assert.Equal(t, memory.Endpoint{LastSuccessAt: start, NegotiatedReadyV2: true}, m.Endpoint(relay))
	assert.True(t, m.Failing(start, lan))
	m.Record(start, "cell", nil, &memory.Success{Key: relay})
	assert.True(t, m.Endpoint(relay).NegotiatedReadyV2, "once negotiated, it stays")
}

func TestNetworksAreKeptMostRecentFirst(t *testing.T) {
	m := memory.New(memory.DefaultPolicy())
	won := func(network route.Fingerprint, key route.Key) {
		m.Record(start, network, nil, &memory.Success{Key: key})
	}
	for i := range 9 {
		won(route.Fingerprint(fmt.Sprintf("wifi:10.0.%d", i)), lan)
	}
	assert.Len(t, m.Networks(), 8)
	assert.Empty(t, m.Remembered("wifi:10.0.0"), "the oldest is gone")
	assert.Equal(t, lan, m.Remembered("wifi:10.0.1"))
	won("wifi:10.0.1", relay)
	assert.Len(t, m.Networks(), 8, "recording replaces")
	assert.Equal(t, memory.Network{Fingerprint: "wifi:10.0.1", Key: relay}, m.Networks()[0])
	won("", lan)
	assert.Len(t, m.Networks(), 8, "no fingerprint, no record")
	assert.Equal(t, lan, m.LastGood())
	assert.Empty(t, m.Remembered(""))
}

func TestOldProfileDecodes(t *testing.T) {
	p, err := memory.DecodeProfile([]byte(`{"routes":[{"address":"192.168.1.10"}],"lastGood":"192.168.1.10"}`), memory.DefaultPolicy())
	require.NoError(t, err)
	assert.Equal(t, []route.Candidate{{Address: "192.168.1.10"}}, []route.Candidate{p.Routes[0].Candidate()})
	assert.Equal(t, lan, p.Memory.LastGood())
	assert.Empty(t, p.Memory.Networks())
	assert.False(t, p.Memory.Failing(start, lan))
	out, err := json.Marshal(p)
	require.NoError(t, err)
	assert.JSONEq(t, `{"routes":[{"address":"192.168.1.10"}],"lastGood":"192.168.1.10"}`, string(out))
}

func TestProfileKeepsWhatItDoesNotUnderstand(t *testing.T) {
	const stored = `{
		"routes":[{"address":"wss://relay.example/tunnel/m1","owner":"ann","region":{"eu":[1,2]}}],
		"theme":"dark",
		"networks":[{"network":"cell","route":"wss://relay.example/tunnel/m1"}],
		"endpoints":{"192.168.1.10":{"lastFailedAt":"2026-05-04T09:00:00Z","consecutiveFailures":2}}}`
	p, err := memory.DecodeProfile([]byte(stored), memory.DefaultPolicy())
	require.NoError(t, err)
	assert.Equal(t, relay, p.Memory.Remembered("cell"))
	assert.True(t, p.Memory.Failing(start, lan))
	assert.Equal(t, []route.Key{lan}, p.Memory.Keys())
	out, err := json.Marshal(p)
	require.NoError(t, err)
	assert.JSONEq(t, stored, string(out))
}

// A Profile is stored whole however it is held: by value, by pointer, inside something else, without a memory.
func TestProfileIsStoredWholeHoweverItIsHeld(t *testing.T) {
	p := memory.Profile{Routes: []memory.Route{{Address: "192.168.1.10", Port: 9000}}, Memory: memory.New(memory.DefaultPolicy())}
	p.Memory.Record(start, "", nil, &memory.Success{Key: lan})
	const want = `{"routes":[{"address":"192.168.1.10","port":9000}],"lastGood":"192.168.1.10",` +
		`"endpoints":{"192.168.1.10":{"lastSuccessAt":"2026-05-04T09:00:00Z"}}}`
	for _, held := range []any{p, &p} {
		out, err := json.Marshal(held)
		require.NoError(t, err)
		assert.Equal(t, want, string(out), "in the order in which it is documented")
	}
	out, err := json.Marshal(map[string]memory.Profile{"m1": p})
	require.NoError(t, err)
	assert.Equal(t, `{"m1":`+want+`}`, string(out))
	out, err = json.Marshal(memory.Profile{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"routes":[]}`, string(out))
}

func TestUnreadableProfileNamesTheField(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{`, "memory.DecodeProfile"},
		{`{"routes":[{"address":1}]}`, "route 0"},
		{`{"endpoints":{"x":{"consecutiveFailures":"two"}}}`, "consecutiveFailures"},
	} {
		_, err := memory.DecodeProfile([]byte(tc.in), memory.DefaultPolicy())
		assert.ErrorContains(t, err, tc.want)
	}
}

// Whatever is recorded: at most eight networks, no network twice, and a round trip through JSON changes nothing.
func TestMemoryInvariants(t *testing.T) {
	keys := []route.Key{lan, relay, "desk.local", "100.64.0.7"}
	rapid.Check(t, func(t *rapid.T) {
		p := &memory.Profile{Memory: memory.New(memory.DefaultPolicy())}
		now := start
		for range rapid.IntRange(0, 40).Draw(t, "races") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "wait")) * time.Second)
			network := route.Fingerprint(rapid.SampledFrom([]string{"", "cell", "wired", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8"}).Draw(t, "network"))
			failed := rapid.SliceOf(rapid.SampledFrom(keys)).Draw(t, "failed")
			var won *memory.Success
			if rapid.Bool().Draw(t, "won") {
				won = &memory.Success{Key: rapid.SampledFrom(keys).Draw(t, "key"), ReadyV2: rapid.Bool().Draw(t, "v2")}
			}
			p.Memory.Record(now, network, failed, won)
			if won != nil && p.Memory.Failing(now, won.Key) {
				t.Fatalf("%s has just worked and counts as failing", won.Key)
			}
		}
		seen := map[route.Fingerprint]bool{}
		for _, n := range p.Memory.Networks() {
			if seen[n.Fingerprint] || n.Fingerprint == "" {
				t.Fatalf("networks: %v", p.Memory.Networks())
			}
			seen[n.Fingerprint] = true
		}
		if len(seen) > 8 {
			t.Fatalf("%d networks", len(seen))
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := memory.DecodeProfile(data, memory.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		again, _ := json.Marshal(q)
		if string(again) != string(data) {
			t.Fatalf("round trip:\n%s\n%s", data, again)
		}
		for _, k := range keys {
			if q.Memory.Failing(now, k) != p.Memory.Failing(now, k) {
				t.Fatalf("%s: failing changed in the round trip", k)
			}
		}
	})
}

func TestThresholdCanBeTurnedOff(t *testing.T) {
	p := memory.DefaultPolicy()
	p.Threshold = math.MaxInt
	m := memory.New(p)
	m.Record(start, "", []route.Key{lan}, nil)
	m.Record(start, "", []route.Key{lan}, nil)
	assert.False(t, m.Failing(start, lan))
}

func BenchmarkRecordAndAsk(b *testing.B) {
	m := memory.New(memory.DefaultPolicy())
	failed, won := []route.Key{lan, "100.64.0.7"}, &memory.Success{Key: relay}
	b.ReportAllocs()
	for b.Loop() {
		m.Record(start, "cell", failed, won)
		m.Failing(start, lan)
		m.Remembered("cell")
	}
}

func FuzzDecodeProfile(f *testing.F) {
	f.Add([]byte(`{"routes":[{"address":"10.0.0.1","port":8787}],"x":null}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := memory.DecodeProfile(data, memory.DefaultPolicy())
		if err != nil {
			return
		}
		out, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("decoded, but does not encode: %v", err)
		}
		if _, err := memory.DecodeProfile(out, memory.DefaultPolicy()); err != nil {
			t.Fatalf("written back, but does not decode: %v\n%s", err, out)
		}
	})
}
