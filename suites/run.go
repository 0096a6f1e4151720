package suites

import (
	"runtime"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/seed-5a7f77c4/deadair/clock"
)

// suiteT is the test that runs the suite; a bubble asks it for its name.
var suiteT = new(testing.T)

// RunSpecs runs the specs of the package as the test t, with gomega's expectations tied to them. It takes the place of
// gomega.RegisterFailHandler and ginkgo.RunSpecs.
func RunSpecs(t *testing.T, description string) {
	t.Helper()
	suiteT = t
	gomega.RegisterFailHandler(Fail)
	ginkgo.RunSpecs(t, description)
}

// Fail is ginkgo.Fail that may be called in any goroutine of a bubble. ginkgo.Fail ends its goroutine by a panic, which
// would end the process where nobody recovers it; inside a bubble Fail ends the goroutine by runtime.Goexit.
func Fail(message string, callerSkip ...int) {
	skip := 1
	if len(callerSkip) > 0 {
		skip += callerSkip[0]
	}
	if !clock.InBubble() {
		ginkgo.Fail(message, skip)
	}
	record(message, skip+1)
	runtime.Goexit()
}

// record notes a failure with Ginkgo and lives on.
func record(message string, skip int) {
	defer func() { _ = recover() }() // ginkgo.Fail panics when it has noted the failure
	ginkgo.Fail(message, skip)
}
