package blackhole_test

import (
	"bytes"
	"io"
	"math/bits"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

// through sends the pieces through a fault and returns what arrives.
func through(t require.TestingT, fault *blackhole.Fault, pieces [][]byte) []byte {
	a, b := net.Pipe()
	c, err := blackhole.Client(a, fault)
	require.NoError(t, err)
	got := collect(b)
	for _, p := range pieces {
		_, err := c.Write(p)
		require.NoError(t, err)
	}
	require.NoError(t, c.Close())
	return []byte(<-got)
}

// cut draws a way to cut data into pieces.
func cut(t *rapid.T, data []byte) (pieces [][]byte) {
	for len(data) > 0 {
		n := rapid.IntRange(1, len(data)).Draw(t, "piece")
		pieces, data = append(pieces, data[:n]), data[n:]
	}
	return pieces
}

// byPosition draws a trigger that looks at positions or bytes, not at pieces.
func byPosition(t *rapid.T, data []byte) blackhole.Trigger {
	switch rapid.IntRange(0, 3).Draw(t, "trigger") {
	case 0:
		return blackhole.AfterBytes(int64(rapid.IntRange(0, len(data)+2).Draw(t, "n")))
	case 1:
		return blackhole.OnMatch(rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 1, 4).Draw(t, "pattern"))
	case 2:
		n := rapid.IntRange(0, len(data)).Draw(t, "from")
		return blackhole.Until(blackhole.AfterBytes(int64(n)), blackhole.AfterBytes(int64(rapid.IntRange(0, 5).Draw(t, "for"))))
	}
	return blackhole.AtOnce()
}

func TestAnyCuttingGivesTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 1, 60).Draw(t, "data")
		effect := rapid.SampledFrom([]blackhole.Effect{blackhole.Swallow(), blackhole.Corrupt(7, 3), blackhole.Slice(2, 0)}).Draw(t, "effect")
		fault := &blackhole.Fault{When: byPosition(t, data), Do: effect, On: blackhole.Up}
		whole := through(t, fault, [][]byte{data})
		assert.Equal(t, string(whole), string(through(t, fault, cut(t, data))))
	})
}

func TestByteNPassesAndTheNextDoesNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "data")
		n := rapid.IntRange(0, len(data)+5).Draw(t, "n")
		fault := &blackhole.Fault{When: blackhole.AfterBytes(int64(n)), Do: blackhole.Swallow(), On: blackhole.Up}
		got := through(t, fault, cut(t, data))
		assert.Equal(t, data[:min(n, len(data))], append([]byte{}, got...))
		assert.EqualValues(t, max(0, len(data)-n), fault.Bytes())
	})
}

func TestCorruptFlipsOneBitInEveryRun(t *testing.T) {
	data := bytes.Repeat([]byte{0}, 64)
	flipped := func(seed uint64) []byte {
		return through(t, &blackhole.Fault{Do: blackhole.Corrupt(seed, 8), On: blackhole.Up}, [][]byte{data})
	}
	got := flipped(1)
	require.Len(t, got, len(data))
	for run := 0; run < len(got); run += 8 {
		ones := 0
		for _, b := range got[run : run+8] {
			ones += bits.OnesCount8(b)
		}
		assert.Equal(t, 1, ones, "run at %d", run)
	}
	assert.Equal(t, got, flipped(1))
	assert.NotEqual(t, got, flipped(2))
}

func TestCorruptDamagesWhatIsRead(t *testing.T) {
	c, s := pipe(t, &blackhole.Fault{Do: blackhole.Corrupt(1, 4), On: blackhole.Down})
	go func() { s.Write(make([]byte, 4)); s.Close() }()
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	ones := 0
	for _, b := range got {
		ones += bits.OnesCount8(b)
	}
	assert.Equal(t, 1, ones)
	assert.Len(t, got, 4)
}
