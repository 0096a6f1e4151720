package pick_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// Six servers, two of them with the destination's operator and one without the
// role. The buffer is kept, as the forwarding client does.
func BenchmarkPick(b *testing.B) {
	var servers []pick.Server
	for i := range 6 {
		servers = append(servers, server(fmt.Sprintf("p%d %c p%d %c", i, "xyyxyy"[i], i, "pppppe"[i])))
	}
	destination, rng := server("r x r p"), rand.New(rand.NewPCG(1, 1))
	var buffer []pick.Server
	b.ReportAllocs()
	for b.Loop() {
		buffer = pick.AppendCandidates(buffer[:0], servers, destination, pick.Default...)
		if _, ok := pick.One(rng, buffer); !ok {
			b.Fatal("nobody")
		}
	}
}
