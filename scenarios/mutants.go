package scenarios

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// A Mutant is a subject with one rule off or wrong. It proves that the scenarios it names would notice.
type Mutant[S any] struct {
	Name  string
	Doc   string    // what is wrong with it, in a line
	Apply func(S) S // makes the mutant of a sound subject, which stays as it is
	Kills []string  // IDs of the scenarios that must fail with it; every other must pass
}

// A MatrixResult says which scenario failed with which mutant. Row 0 is the sound subject.
type MatrixResult struct {
	Scenarios []string
	Rows      []MatrixRow
}

// A MatrixRow is one mutant, or the sound subject, against every scenario.
type MatrixRow struct {
	Mutant string
	Kills  []string
	// Cells has, per scenario, the first outcome that failed, or the last that passed.
	Cells []Outcome
}

// Sound is the name of the row without a mutation.
const Sound = "sound"

// Matrix runs every scenario with the sound subject and with every mutant of it, each with the seeds 1 to seeds, on all
// processors. A mutant is killed by a scenario that fails with it for at least one seed. The error is about the input;
// what the matrix shows is for [MatrixResult.Check] to say. progress may be nil.
func Matrix[S any](t *testing.T, set []Scenario[S], subject S, mutants []Mutant[S], seeds int, progress io.Writer) (MatrixResult, error) {
	t.Helper()
	if err := validateMatrix(set, subject, mutants, seeds); err != nil {
		return MatrixResult{}, err
	}
	var r MatrixResult
	for _, sc := range set {
		r.Scenarios = append(r.Scenarios, sc.ID)
	}
	subjects := []S{subject}
	r.Rows = []MatrixRow{{Mutant: Sound, Cells: make([]Outcome, len(set))}}
	for _, m := range mutants {
		mutant := m.Apply(subject)
		if missing(mutant) {
			return MatrixResult{}, fmt.Errorf("scenarios: the mutant %q makes no subject (%T is nil)", m.Name, mutant)
		}
		subjects = append(subjects, mutant)
		r.Rows = append(r.Rows, MatrixRow{Mutant: m.Name, Kills: m.Kills, Cells: make([]Outcome, len(set))})
	}
	parallel(len(r.Rows)*len(set), "matrix", progress, func(i int) {
		row, column := i/len(set), i%len(set)
		for seed := range uint64(seeds) {
			o := Run(t, set[column], subjects[row], Seed(seed+1))
			r.Rows[row].Cells[column] = o
			if !o.Passed() {
				return
			}
		}
	})
	return r, nil
}

func validateMatrix[S any](set []Scenario[S], subject S, mutants []Mutant[S], seeds int) error {
	errs := []error{ValidateSet(set)}
	if len(set) == 0 {
		errs = append(errs, errors.New("scenarios: Matrix without a scenario"))
	}
	if missing(subject) {
		errs = append(errs, errors.New("scenarios: Matrix without a subject"))
	}
	if seeds < 1 {
		errs = append(errs, fmt.Errorf("scenarios: Matrix with %d seeds: at least 1", seeds))
	}
	known := map[string]bool{}
	for _, sc := range set {
		known[sc.ID] = true
	}
	names := map[string]bool{Sound: true}
	for _, m := range mutants {
		switch {
		case m.Name == "" || names[m.Name]:
			errs = append(errs, fmt.Errorf("scenarios: the mutant name %q is empty, taken or reserved", m.Name))
		case m.Apply == nil:
			errs = append(errs, fmt.Errorf("scenarios: the mutant %q has no Apply", m.Name))
		case len(m.Kills) == 0:
			errs = append(errs, fmt.Errorf("scenarios: the mutant %q names no scenario that kills it", m.Name))
		}
		names[m.Name] = true
		for _, id := range m.Kills {
			if !known[id] {
				errs = append(errs, fmt.Errorf("scenarios: the mutant %q is to be killed by %s, which is not in the set", m.Name, id))
			}
		}
	}
	return errors.Join(errs...)
}

// Check is an error that says what the matrix shows to be wrong: a scenario that the sound subject fails, a mutant that
// survives a scenario it names, a mutant killed by a stranger.
func (r MatrixResult) Check() error {
	var errs []error
	for _, row := range r.Rows {
		for i, id := range r.Scenarios {
			failed, should := !row.Cells[i].Passed(), slices.Contains(row.Kills, id)
			switch {
			case row.Mutant == Sound && failed:
				errs = append(errs, fmt.Errorf("the sound subject fails %w", row.Cells[i].Err()))
			case should && !failed:
				errs = append(errs, fmt.Errorf("the mutant %q survives %s", row.Mutant, id))
			case !should && failed:
				errs = append(errs, fmt.Errorf("the mutant %q is killed by a stranger: %w", row.Mutant, row.Cells[i].Err()))
			}
		}
	}
	return errors.Join(errs...)
}

// WriteTo writes the matrix as a table: × killed as named, · passed, ! not as it should be.
func (r MatrixResult) WriteTo(w io.Writer) (int64, error) {
	var text strings.Builder
	tab := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	fmt.Fprintf(tab, "\t%s\n", strings.Join(r.Scenarios, "\t"))
	for _, row := range r.Rows {
		fmt.Fprint(tab, row.Mutant)
		for i, id := range r.Scenarios {
			mark := "·"
			failed, should := !row.Cells[i].Passed(), slices.Contains(row.Kills, id)
			if failed {
				mark = "×"
			}
			if failed != should {
				mark += "!"
			}
			fmt.Fprintf(tab, "\t%s", mark)
		}
		fmt.Fprintln(tab)
	}
	tab.Flush()
	n, err := io.WriteString(w, text.String())
	return int64(n), err
}
