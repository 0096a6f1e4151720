package clock

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBubbleIsVirtual(t *testing.T) {
	began := time.Now()
	err := Bubble(t, func(t *testing.T) {
		assert.True(t, InBubble())
		start := time.Now()
		time.Sleep(1000 * time.Hour)
		assert.Equal(t, 1000*time.Hour, time.Since(start))
	})
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 10*time.Second)
	assert.False(t, InBubble())
}

func TestRunHandsOnItsT(t *testing.T) {
	var order []string
	Run(t, func(t *testing.T) {
		t.Cleanup(func() { order = append(order, "cleanup"); assert.True(t, InBubble()) })
		order = append(order, t.Name())
	})
	assert.Equal(t, []string{t.Name(), "cleanup"}, order)
}

func TestRunSkips(t *testing.T) {
	var inner *testing.T
	t.Run("skips", func(t *testing.T) {
		inner = t
		Run(t, func(t *testing.T) { t.Skip("on purpose: that a skip inside skips outside is what is tested") })
	})
	assert.True(t, inner.Skipped())
}

func TestStartAt(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	var got time.Time
	require.NoError(t, Bubble(t, func(t *testing.T) { got = time.Now() }, StartAt(at)))
	assert.True(t, at.Equal(got), got)
	require.NoError(t, Bubble(t, func(t *testing.T) { got = time.Now() }))
	assert.True(t, bubbleStart.Equal(got), got)
}

func TestBubbleFailures(t *testing.T) {
	type tc struct {
		name string
		f    func(t *testing.T)
		opts []Option
		kind error
		says []string
	}
	for _, c := range []tc{
		{"FailNow", func(t *testing.T) { t.FailNow() }, nil, ErrFailed, []string{"stopped by", "TestBubbleFailures", "bubble_test.go"}},
		{"Errorf", func(t *testing.T) { t.Errorf("x") }, nil, ErrFailed, nil},
		{"require", func(t *testing.T) { require.True(t, false) }, nil, ErrFailed, nil},
		{"in a cleanup", func(t *testing.T) { t.Cleanup(t.FailNow) }, nil, ErrFailed, nil},
		{"Skip", func(t *testing.T) { t.SkipNow() }, nil, ErrSkipped, nil},
		{"panic", func(t *testing.T) { panic("boom") }, nil, ErrPanic, []string{"boom", "bubble_test.go"}},
		{"Goexit", func(t *testing.T) { runtime.Goexit() }, nil, ErrGoexit, []string{"TestBubbleFailures"}},
		{"deadlock", func(t *testing.T) { <-make(chan int) }, nil, ErrDeadlock, []string{"1 × ", "TestBubbleFailures", "bubble_test.go:", "chan receive"}},
		{"leak", func(t *testing.T) {
			for range 3 {
				go leaker(make(chan int))
			}
		}, nil, ErrLeak, []string{"3 × ", "clock.leaker", "bubble_test.go:", "chan receive", "started by"}},
		{"leaked ticker", func(t *testing.T) {
			go func() {
				for range time.Tick(time.Second) {
				}
			}()
		}, nil, ErrLeak, []string{"chan receive"}},
		{"beyond grace", func(t *testing.T) { go time.Sleep(11 * time.Second) }, nil, ErrLeak, []string{"sleep"}},
		{"budget", func(t *testing.T) { time.Sleep(time.Hour) }, []Option{Budget(time.Minute)}, ErrBudget, []string{"1m0s", "sleep", "TestBubbleFailures"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Bubble(t, c.f, append(c.opts, Seed(0xabc))...)
			require.ErrorIs(t, err, c.kind)
			for _, s := range append(c.says, "seed 0xabc", "DEADAIR_SEED=0xabc go test -run '^TestBubbleFailures$/^") {
				assert.Contains(t, err.Error(), s)
			}
			assert.NotContains(t, err.Error(), "testingSynctestTest")
		})
	}
}

func leaker(c chan int) { <-c }

func TestGraceLetsGoroutinesEnd(t *testing.T) {
	sleeper := func(t *testing.T) { go time.Sleep(9 * time.Second) }
	require.NoError(t, Bubble(t, sleeper))
	require.ErrorIs(t, Bubble(t, sleeper, Grace(time.Second)), ErrLeak)
	require.ErrorIs(t, Bubble(t, sleeper, Grace(0)), ErrLeak)
}

func TestCleanupMayEndGoroutinesOfABodyOverBudget(t *testing.T) {
	err := Bubble(t, func(t *testing.T) {
		stop := make(chan struct{})
		t.Cleanup(func() { close(stop) })
		select {
		case <-stop:
		case <-time.After(time.Hour):
		}
	}, Budget(time.Second))
	require.ErrorIs(t, err, ErrBudget)
	assert.NotErrorIs(t, err, ErrLeak)
}

func TestBubbleBadInput(t *testing.T) {
	nothing := func(t *testing.T) {}
	assert.ErrorContains(t, Bubble(t, nil), "nil")
	assert.ErrorContains(t, Bubble(t, nothing, StartAt(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))), "StartAt(1999-01-01")
	assert.ErrorContains(t, Bubble(t, nothing, Patience(-1)), "Patience(-1ns)")
	assert.ErrorContains(t, Bubble(t, nothing, BusyPatience(-1)), "BusyPatience(-1ns)")
	assert.ErrorContains(t, Bubble(t, nothing, Grace(-1)), "Grace(-1ns)")
	assert.ErrorContains(t, Bubble(t, nothing, Budget(-1)), "Budget(-1ns)")
	require.NoError(t, Bubble(nil, nothing))
	assert.ErrorContains(t, Bubble(nil, func(*testing.T) { panic(1) }), "seed 0x")
	var nested error
	require.NoError(t, Bubble(t, func(t *testing.T) { nested = Bubble(t, nothing) }))
	assert.ErrorContains(t, nested, "inside a bubble")
	t.Setenv(SeedVariable, "many")
	assert.ErrorContains(t, Bubble(t, nothing), `DEADAIR_SEED="many"`)
}

func TestBubblesAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	var failed, passed atomic.Int32
	for i := range 64 {
		wg.Go(func() {
			err := Bubble(t, func(t *testing.T) {
				time.Sleep(time.Hour)
				if i%2 == 1 {
					t.Fatal("odd")
				}
			})
			switch {
			case err == nil:
				passed.Add(1)
			case errors.Is(err, ErrFailed):
				failed.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 32, passed.Load())
	assert.EqualValues(t, 32, failed.Load())
}

// The watchdog, on real causes. Each lets go what it held when the test is over, so that nothing stays behind.

const short = 200 * time.Millisecond

func TestWatchdogNamesAHeldMutex(t *testing.T) {
	var mu sync.Mutex
	mu.Lock()
	defer mu.Unlock()
	err := Bubble(t, func(t *testing.T) { waitForLock(&mu) }, Patience(short))
	requireFrozen(t, err, "a lock", "[sync.Mutex.Lock]", "clock.waitForLock", "bubble_test.go:", "limit of synctest")
}

func waitForLock(mu *sync.Mutex) { mu.Lock(); mu.Unlock() } //nolint:staticcheck // the wait is the point

func TestWatchdogNamesARealSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	err = Bubble(t, func(t *testing.T) { readFrom(c) }, Patience(short))
	requireFrozen(t, err, "a real network connection", "[IO wait]", "clock.readFrom", "bubble_test.go:")
}

func readFrom(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }

func TestWatchdogNamesAForeignChannel(t *testing.T) {
	foreign := make(chan int)
	defer close(foreign)
	err := Bubble(t, func(t *testing.T) {
		go func() { time.Sleep(time.Hour) }()
		time.Sleep(time.Minute)
		leaker(foreign)
	}, Patience(short))
	requireFrozen(t, err, "a channel that was made outside the bubble", "[chan receive]", "clock.leaker", "bubble_test.go:")
}

func requireFrozen(t *testing.T, err error, says ...string) {
	t.Helper()
	require.ErrorIs(t, err, ErrFrozen)
	for _, s := range says {
		assert.Contains(t, err.Error(), s)
	}
}

func TestWatchdogNamesABusyLoop(t *testing.T) {
	var stop atomic.Bool
	defer stop.Store(true)
	err := Bubble(t, func(t *testing.T) {
		go func() { time.Sleep(time.Hour) }()
		spin(&stop)
	}, Patience(short), BusyPatience(2*short))
	require.ErrorIs(t, err, ErrBusy)
	assert.Contains(t, err.Error(), "clock.spin")
	assert.Contains(t, err.Error(), "bubble_test.go:")
}

func spin(stop *atomic.Bool) {
	for !stop.Load() {
	}
}

func TestWatchdogLeavesASlowRunAlone(t *testing.T) {
	var shared sync.Mutex
	err := Bubble(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 12 {
					shared.Lock()
					for until := runtimeNow() + int64(8*time.Millisecond); runtimeNow() < until; {
					}
					shared.Unlock()
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Wait()
	}, Patience(20*time.Millisecond), BusyPatience(200*time.Millisecond))
	require.NoError(t, err)
}

// runtimeNow is a real clock for use inside a bubble, where package time is virtual.
func runtimeNow() int64 {
	var ts syscall.Timeval
	if err := syscall.Gettimeofday(&ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

func TestMainProgram(t *testing.T) {
	if mode := os.Getenv("CLOCK_MAIN"); mode != "" {
		os.Args = os.Args[:1]
		clockMain(mode)
	}
	for _, c := range []struct {
		mode string
		code int
		says []string
	}{
		{"good", 0, nil},
		{"bad", 1, []string{"went wrong"}},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMainProgram$")
		cmd.Env = append(os.Environ(), "CLOCK_MAIN="+c.mode)
		out, err := cmd.CombinedOutput()
		assert.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s %v %s", c.mode, err, out)
		if c.says == nil {
			assert.Empty(t, string(out))
		}
		for _, s := range c.says {
			assert.Contains(t, string(out), s)
		}
	}
}

func clockMain(mode string) {
	Main(func(t *testing.T) {
		Run(t, func(t *testing.T) {
			time.Sleep(time.Hour)
			if mode == "bad" {
				t.Fatal("went wrong")
			}
		})
	})
}

func TestContextOfTheBubble(t *testing.T) {
	require.NoError(t, Bubble(t, func(t *testing.T) {
		ctx, cancel := System.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		<-ctx.Done()
		assert.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	}))
}
