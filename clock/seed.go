package clock

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
)

// SeedVariable is the environment variable that sets the seed of a run.
const SeedVariable = "DEADAIR_SEED"

// DefaultSeed is the seed of a run for which none is given: what DEADAIR_SEED says, decimal or hexadecimal with 0x,
// otherwise 1, so that a test means the same every day. It returns an error that names the value if that is not a number.
func DefaultSeed() (uint64, error) {
	text := strings.TrimSpace(os.Getenv(SeedVariable))
	if text == "" {
		return 1, nil
	}
	seed, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("clock: %s=%q is not a seed, a number from 0 to 2⁶⁴-1 in decimal or with 0x in hexadecimal: %w", SeedVariable, text, err)
	}
	return seed, nil
}

// Replay is the command that runs a test again with the same seed. The name is a test's, as t.Name gives it.
func Replay(test string, seed uint64) string {
	pattern := make([]string, 0, 2)
	for part := range strings.SplitSeq(test, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	return fmt.Sprintf("%s=%#x go test -run '%s' %s", SeedVariable, seed, strings.ReplaceAll(strings.Join(pattern, "/"), "'", `'\''`), testedPackage())
}

// testedPackage is the import path of the package whose test binary this is, or the directory go test ran it in.
func testedPackage() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return path
		}
	}
	return "."
}
