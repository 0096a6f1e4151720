package clock

import (
	"os"
	"testing"
)

// Main runs f with a T in an ordinary program, so that a command can use [Run], and whatever else wants a T. It does not
// return: the program ends with 0 and prints nothing if f succeeds; if f fails, what it logged goes to standard output
// and the program ends with 1.
//
// Package testing adds its flags (-test.v and so on) to the command line; call flag.Parse before Main if the program
// has flags of its own. Deferred functions of the caller do not run.
func Main(f func(t *testing.T)) {
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{
		Name: "main",
		F: func(t *testing.T) {
			if t.Run("body", f) {
				os.Exit(0) // before package testing prints PASS
			}
		},
	}}, nil, nil)
}
