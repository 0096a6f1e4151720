package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// A Play is one performance of a scenario, from inside its bubble. It has the
// methods that testify's assert and require, and gomega, want of a test. What
// fails is kept in the outcome; FailNow ends the story, or the goroutine that
// called it.
type Play struct {
	Net  *netsim.Network
	Seed uint64

	t     *testing.T // the bubble's own
	start time.Time

	mu       sync.Mutex
	failures []string
	figures  map[string]any
}

// Elapsed is the virtual time since the story began.
func (p *Play) Elapsed() time.Duration { return time.Since(p.start) }

// At waits until so much virtual time has passed since the story began. A time
// that has passed is a mistake in the script and fails the story.
func (p *Play) At(d time.Duration) {
	p.t.Helper()
	left := d - p.Elapsed()
	if left < 0 {
		p.Fatalf("the script says %v and it is %v", d, p.Elapsed())
	}
	time.Sleep(left)
}

// Go starts f in a goroutine, one per instant in the order of their names. A
// failed requirement in it ends it alone.
func (p *Play) Go(name string, f func()) { p.Net.Go(name, f) }

// Figure keeps a number or a text for the outcome, such as the time until the
// client was connected. A value that JSON does not have fails the story.
func (p *Play) Figure(name string, value any) {
	if _, err := json.Marshal(value); err != nil {
		p.Errorf("figure %q: %v", name, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.figures[name] = value
}

// Errorf fails the story and goes on.
func (p *Play) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, fmt.Sprintf("%v: ", p.Elapsed())+fmt.Sprintf(format, args...))
}

// Error fails the story and goes on.
func (p *Play) Error(args ...any) { p.Errorf("%s", fmt.Sprint(args...)) }

// Fatalf fails the story and ends it.
func (p *Play) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	p.FailNow()
}

// Fatal fails the story and ends it.
func (p *Play) Fatal(args ...any) { p.Fatalf("%s", fmt.Sprint(args...)) }

// Fail fails the story and goes on.
func (p *Play) Fail() { p.Errorf("failed") }

// FailNow ends the story, which has failed.
func (p *Play) FailNow() { p.t.FailNow() }

// Failed reports whether something has failed.
func (p *Play) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.failures) > 0
}

// Logf puts a line into the trace.
func (p *Play) Logf(format string, args ...any) { p.Net.Notef(format, args...) }

// Log puts a line into the trace.
func (p *Play) Log(args ...any) { p.Net.Notef("%s", fmt.Sprint(args...)) }

// Helper is there for the interfaces of assertion libraries.
func (p *Play) Helper() {}

// Name is the test's name.
func (p *Play) Name() string { return p.t.Name() }

// Cleanup calls f at the end, inside the bubble, while the network still works.
func (p *Play) Cleanup(f func()) { p.t.Cleanup(f) }

// Context ends when the story does.
func (p *Play) Context() context.Context { return p.t.Context() }
