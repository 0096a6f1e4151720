package evidence_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/evidence"
)

func TestWriteLeavesFourFiles(t *testing.T) {
	refused := scenarios.Scenario[string]{
		ID: "EV-1", Title: "a dial is refused",
		Play: func(p *scenarios.Play, address string) {
			a := p.Net.Host("a")
			p.Net.Host("b")
			_, err := a.Dial("tcp", address)
			require.Error(p, err)
			p.Figure("dials", 1)
		},
	}
	o := scenarios.Run(t, refused, "b:80")
	o.Require(t)
	dir := t.TempDir()
	require.NoError(t, evidence.Write(dir, o))
	for name, want := range map[string]string{
		"trace.txt":    "tcp RST",
		"trace.jsonl":  `"kind":"SYN"`,
		"trace.pcapng": "\x0a\x0d\x0d\x0a", // the section header block
		"trace.html":   "EV-1 a dial is refused",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(b), want, name)
	}
	require.ErrorContains(t, evidence.Write(dir, scenarios.Outcome{ID: "EV-2"}), "EV-2")
	require.ErrorContains(t, evidence.Write(filepath.Join(dir, "missing"), o), "missing")
}

func TestOnFailureIsAnOption(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) { n.Host("a") }, evidence.OnFailure())
}
