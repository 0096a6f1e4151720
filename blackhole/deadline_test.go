package blackhole

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A deadline may be set by one goroutine while another closes the connection; the set must not wait for a timer that
// the close has stopped.
func TestADeadlineThatWasStoppedCanBeSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deadline
		d.set(time.Now().Add(time.Hour))
		d.wait()
		d.stop()
		set := make(chan struct{})
		go func() {
			defer close(set)
			d.set(time.Now().Add(-time.Second))
		}()
		select {
		case <-set:
		case <-time.After(time.Minute):
			t.Fatal("the deadline is set against a stopped timer for ever")
		}
		require.True(t, d.over())
	})
}
