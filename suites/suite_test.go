package suites

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/stretchr/testify/assert"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// The pitfalls fail on purpose: TestPitfalls runs them in a process of their own and reads the report.
func TestSuite(t *testing.T) { RunSpecs(t, "glue") }

func pitfalls() bool { return os.Getenv("SUITES_PITFALLS") != "" }

var _ = It("is virtual", func(t *testing.T, n *netsim.Network) {
	start := time.Now()
	time.Sleep(time.Hour)
	gomega.Expect(time.Since(start)).To(gomega.Equal(time.Hour))
})

var story = []scenarios.Scenario[bool]{{ID: "S-1", Title: "a subject that holds", Labels: []string{"glue"},
	Play: func(p *scenarios.Play, sound bool) {
		if !sound {
			p.Fatalf("unsound")
		}
	}}}

var _ = ginkgo.Describe("scenarios", func() {
	Specs(story, func() bool { return true })
	OldSpecs(story, func() bool { return false })
})

var foreign chan int

func init() {
	if !pitfalls() {
		return
	}
	It("P1 fails in the body", func(t *testing.T, n *netsim.Network) { gomega.Expect(1).To(gomega.Equal(2)) })
	It("P2 fails in a goroutine", func(t *testing.T, n *netsim.Network) {
		n.Go("g", func() { gomega.Expect("in").To(gomega.Equal("out")) })
		time.Sleep(time.Second)
	})
	It("P3 leaks", func(t *testing.T, n *netsim.Network) { go forgotten(make(chan int)) })
	It("P4 panics", func(t *testing.T, n *netsim.Network) { panic("boom") })
	ginkgo.Describe("with a channel from BeforeEach", func() {
		ginkgo.BeforeEach(func() { foreign = make(chan int); ginkgo.DeferCleanup(func() { close(foreign) }) })
		It("P5 stands still", func(t *testing.T, n *netsim.Network) { <-foreign },
			netsim.Clock(clock.Patience(200*time.Millisecond)))
	})
	It("P6 goes on", func(t *testing.T, n *netsim.Network) {})
	OldSpecs(story, func() bool { return true })
}

func forgotten(c chan int) { <-c }

func TestPitfalls(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuite$", "-ginkgo.no-color", "-ginkgo.v")
	cmd.Env = append(os.Environ(), "SUITES_PITFALLS=1")
	raw, _ := cmd.CombinedOutput()
	out := string(raw)
	assert.Equal(t, 1, cmd.ProcessState.ExitCode())
	for _, want := range []string{
		"[FAIL] [It] P1 fails in the body", "suite_test.go:", "[FAIL] [It] P2 fails in a goroutine", "<string>: out",
		"[FAIL] [It] P3 leaks", "suites.forgotten", "boom", "the end of the trace", "DEADAIR_SEED=0x1 go test -run '^TestSuite$'",
		"P5 stands still", "a channel that was made outside the bubble", "does not show what was fixed", "4 Passed | 6 Failed",
	} {
		assert.Contains(t, out, want)
	}
	if t.Failed() {
		t.Log(out)
	}
}
