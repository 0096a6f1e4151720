package suites_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/seed-5a7f77c4/deadair"

// mayImport is the house's plan: which top folders the code of a top folder may
// import. Arrows run one way, so that a user pulls in only what is imported.
var mayImport = map[string][]string{
	"clock":      {},
	"netsim":     {"clock"},
	"blackhole":  {"clock"},
	"socksrelay": {"clock", "blackhole"},
	"selection":  {"clock"},
	"scenarios":  {"clock", "netsim", "blackhole", "socksrelay", "selection"},
	"suites":     {"clock", "netsim", "blackhole", "socksrelay", "selection", "scenarios"},
}

// leanFolders need nothing outside the standard library and golang.org/x, but
// for the packages named, whose job is a library's.
var leanFolders = map[string][]string{
	"clock":     nil,
	"netsim":    {"netsim/pcap"},
	"blackhole": nil,
	"selection": nil,
}

type listed struct {
	ImportPath string
	Imports    []string
}

// packages are those of the module, without their tests.
func packages(t *testing.T) []listed {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...")
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}

func folder(path string) (top, rest string, ours bool) {
	rest, ours = strings.CutPrefix(path, module+"/")
	top, _, _ = strings.Cut(rest, "/")
	return top, rest, ours
}

func TestImportArrows(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		top, rest, _ := folder(p.ImportPath)
		allowed, known := mayImport[top]
		require.True(t, known, "%s is in no folder of the plan", p.ImportPath)
		seen[top] = true
		for _, i := range p.Imports {
			if to, _, ours := folder(i); ours {
				require.True(t, to == top || slices.Contains(allowed, to), "%s imports %s: the arrows do not run that way", p.ImportPath, i)
				continue
			}
			except, lean := leanFolders[top]
			outside := strings.Contains(strings.SplitN(i, "/", 2)[0], ".") && !strings.HasPrefix(i, "golang.org/x/")
			if lean && outside && !slices.Contains(except, rest) {
				t.Errorf("%s imports %s: this folder makes do with the standard library and golang.org/x", p.ImportPath, i)
			}
		}
	}
	for top := range mayImport {
		require.True(t, seen[top], "there is no package in %s", top)
	}
}
