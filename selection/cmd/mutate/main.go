// Mutate changes the operators of selection/'s sources one by one and runs the tests of the package that each belongs to.
// A mutant that no test notices has lived. The score is the share of those killed; below -least the command exits with 1.
//
//	go run ./selection/cmd/mutate                     # every package, from the module's root
//	go run ./selection/cmd/mutate selection/rank      # one
//
// Gremlins finds the mutants. They are run here, since gremlins passes over the conditions of a case and the values of a
// package's variables, which lie outside of Go's coverage blocks. A mutant whose test runs into its time limit is killed, one
// that does not compile counts neither way. The sources stay as they are: the compiler gets each mutant as an overlay.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// gremlins is the version with which the figures of docs/mutation.md were made.
const gremlins = "github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0"

// A mutant's test may take patience times as long as the test as it is, and at least leastLimit.
const (
	patience   = 20
	leastLimit = 10 * time.Second
)

func main() {
	least := flag.Float64("least", 95, "the least score in percent")
	workers := flag.Int("workers", runtime.NumCPU(), "mutants to run at once")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = find("selection")
	}
	var total score
	began := time.Now()
	for i, p := range packages {
		s, err := mutate(p, max(*workers, 1))
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutate %s: %v\n", p, err)
			os.Exit(1)
		}
		total.add(s)
		fmt.Printf("[%d/%d] %-22s %v\n", i+1, len(packages), p, s)
		for _, l := range s.lived {
			fmt.Printf("        lived: %s/%s\n", p, l)
		}
	}
	fmt.Printf("together: %v, in %v\n", total, time.Since(began).Round(time.Second))
	if total.percent() < *least {
		fmt.Printf("the score is below %g %%\n", *least)
		os.Exit(1)
	}
}

// find lists the folders below root that have tests, commands left out.
func find(root string) []string {
	var folders []string
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "cmd" || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go") && !slices.Contains(folders, filepath.Dir(path)):
			folders = append(folders, filepath.Dir(path))
		}
		return nil
	})
	return folders
}

// score is how the mutants of some packages fared.
type score struct {
	killed, invalid int
	lived           []mutant
}

func (s *score) add(t score) {
	s.killed += t.killed
	s.invalid += t.invalid
	s.lived = append(s.lived, t.lived...)
}

// percent is the share of killed mutants; 100 when there are none.
func (s score) percent() float64 {
	all := s.killed + len(s.lived)
	if all == 0 {
		return 100
	}
	return 100 * float64(s.killed) / float64(all)
}

func (s score) String() string {
	return fmt.Sprintf("%d of %d killed, %.1f %%", s.killed, s.killed+len(s.lived), s.percent())
}

// fate is what became of a mutant.
type fate uint8

const (
	killed fate = iota
	lived
	invalid // it does not compile
)

func (s *score) count(m mutant, f fate) {
	switch f {
	case killed:
		s.killed++
	case lived:
		s.lived = append(s.lived, m)
	case invalid:
		s.invalid++
	}
}

// mutate runs all mutants of a package, so many at once.
func mutate(folder string, workers int) (score, error) {
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return score{}, err
	}
	defer os.RemoveAll(scratch)
	mutants, err := enumerate(folder, filepath.Join(scratch, "report.json"))
	if err != nil {
		return score{}, err
	}
	if out, err := test(folder); err != nil { // the first run compiles
		return score{}, fmt.Errorf("the tests fail without any mutant: %w\n%s", err, out)
	}
	began := time.Now()
	if out, err := test(folder); err != nil {
		return score{}, fmt.Errorf("the tests fail without any mutant: %w\n%s", err, out)
	}
	limit := max(patience*time.Since(began), leastLimit)

	fates, errs := make([]fate, len(mutants)), make([]error, len(mutants))
	var wg sync.WaitGroup
	places := make(chan struct{}, workers)
	for i, m := range mutants {
		places <- struct{}{}
		fmt.Fprintf(os.Stderr, "\r%s: %d of %d mutants", folder, i+1, len(mutants))
		wg.Go(func() {
			defer func() { <-places }()
			fates[i], errs[i] = m.run(folder, filepath.Join(scratch, fmt.Sprint(i)), limit)
		})
	}
	wg.Wait()
	fmt.Fprint(os.Stderr, "\r\033[K") // the line of the progress is done with
	var s score
	for i, m := range mutants {
		s.count(m, fates[i])
	}
	return s, errors.Join(errs...)
}

// enumerate lets gremlins list the mutants of a package.
func enumerate(folder, out string) ([]mutant, error) {
	cmd := exec.Command("go", "run", gremlins, "unleash", "--dry-run", "--output", out, "--invert-logical",
		"--invert-loopctrl", "--invert-assignments", "--remove-self-assignments", "./"+folder)
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gremlins: %w\n%s", err, said)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var report struct {
		Files []struct {
			Name    string   `json:"file_name"`
			Mutants []mutant `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("the report of gremlins: %w", err)
	}
	var all []mutant
	for _, f := range report.Files {
		for _, m := range f.Mutants {
			m.File = filepath.Base(f.Name)
			all = append(all, m)
		}
	}
	slices.SortFunc(all, mutant.compare)
	return all, nil
}

// test runs the tests of a package.
func test(folder string, flags ...string) (output string, err error) {
	args := append(append([]string{"test", "-count=1", "-failfast", "-vet=off"}, flags...), "./"+folder)
	if properties(folder) {
		args = append(args, "-rapid.nofailfile") // what fails a mutant is no case to keep
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	return string(out), err
}

// properties reports whether a package's tests import rapid, and so know its flags.
func properties(folder string) bool {
	imports, err := exec.Command("go", "list", "-f", "{{.TestImports}} {{.XTestImports}}", "./"+folder).Output()
	return err == nil && strings.Contains(string(imports), "pgregory.net/rapid")
}

// run runs the package's tests with the mutant in place of the source; scratch is a name for files of its own.
func (m mutant) run(folder, scratch string, limit time.Duration) (fate, error) {
	path, err := filepath.Abs(filepath.Join(folder, m.File))
	if err != nil {
		return invalid, err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return invalid, err
	}
	changed, err := m.apply(source)
	if err != nil {
		return invalid, err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: scratch + ".go"}})
	if err != nil {
		return invalid, err
	}
	if err := errors.Join(os.WriteFile(scratch+".go", changed, 0o600), os.WriteFile(scratch+".json", overlay, 0o600)); err != nil {
		return invalid, err
	}
	out, err := test(folder, "-timeout", limit.String(), "-overlay", scratch+".json")
	switch {
	case err == nil:
		return lived, nil
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return invalid, nil
	}
	return killed, nil
}
