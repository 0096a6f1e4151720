package forward

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/choice"
)

func TestOneConnectionAndOneSessionServeAllCommands(t *testing.T) {
	inBubble(t, "a", func(r *rig) { r.config.Credentials = map[string]string{"a": "+secret"} }, func(t *testing.T, r *rig) {
		for range 3 {
			res, err := r.Do(t.Context(), request())
			require.NoError(t, err)
			assert.Equal(t, "answer to hello", string(res.Answer))
			assert.Equal(t, "a", res.Proxy)
			assert.False(t, res.Direct)
		}
		assert.Equal(t, []string{"connect a", "session a+secret", "forward a", "forward a", "forward a"}, r.net.took())
		assert.Equal(t, 1, r.Choices())
	})
}

func TestNoServerIsNoProxy(t *testing.T) {
	inBubble(t, "", nil, func(t *testing.T, r *rig) {
		_, err := r.Do(t.Context(), request())
		require.ErrorIs(t, err, ErrNoProxy)
		require.ErrorContains(t, err, `"u"`)
	})
}

func TestEntitiesAreKeptApart(t *testing.T) {
	inBubble(t, "a", func(r *rig) { r.config.PerEntity = true }, func(t *testing.T, r *rig) {
		for _, entity := range []string{"x", "y", "x"} {
			req := request()
			req.Entity = entity
			_, err := r.Do(t.Context(), req)
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"connect a", "session a", "forward a", "connect a", "session a", "forward a", "forward a"}, r.net.took())
		assert.Equal(t, 2, r.Choices())
		_, ok := r.Choice(Key{User: "u", Destination: "r", Entity: "x"})
		assert.True(t, ok)
	})
}

func TestEntitiesShareUnlessKeptApart(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		for _, entity := range []string{"x", "y"} {
			req := request()
			req.Entity = entity
			_, err := r.Do(t.Context(), req)
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"connect a", "session a", "forward a", "forward a"}, r.net.took())
		assert.Equal(t, 1, r.Choices())
	})
}

func TestLimitsOfEachStep(t *testing.T) {
	interactive := Urgency{Interactive: true, Retry: 2}
	tests := []struct {
		name    string
		step    string
		urgency Urgency
		slow    bool
		want    time.Duration
	}{
		{"connect in the background", "connect", Urgency{}, false, 45 * time.Second},
		{"session in the background", "session", Urgency{}, false, 75 * time.Second},
		{"forward in the background", "forward", Urgency{}, false, 60 * time.Second},
		{"connect for a user's second retry", "connect", interactive, false, 33750 * time.Millisecond},
		{"session for a user's second retry", "session", interactive, false, 56250 * time.Millisecond},
		{"forward for a user's second retry", "forward", interactive, false, 45 * time.Second},
		{"forward on a slow network", "forward", Urgency{}, true, 90 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "a", func(r *rig) {
				r.config.SlowNetwork = test.slow
				stop := func(step string) func(ctx context.Context) error {
					if step == test.step {
						return silent
					}
					return func(context.Context) error { return nil }
				}
				r.net.connect = func(ctx context.Context, _ string) error { return stop("connect")(ctx) }
				r.net.session = func(ctx context.Context, _ string) error { return stop("session")(ctx) }
				r.net.forward = func(ctx context.Context, _ string, _ Session) error { return stop("forward")(ctx) }
			}, func(t *testing.T, r *rig) {
				req := request()
				req.Urgency = test.urgency
				_, err := r.Do(t.Context(), req)
				e := AsError(err)
				require.NotNil(t, e, "%v", err)
				assert.Equal(t, Broker, e.Origin)
				assert.Equal(t, Timeout, e.Code)
				assert.Equal(t, test.want, r.elapsed())
				if test.step == "forward" {
					assert.Equal(t, "a", r.proxy(), "the own time-out of a forward changes nothing")
				} else {
					assert.Empty(t, r.proxy())
				}
			})
		})
	}
}

func TestEachOutcomeChangesTheChoiceAsItsRuleSays(t *testing.T) {
	errNo := errors.New("refused")
	tests := []struct {
		name                      string
		connect, session, forward error
		want                      choice.Change
		text                      string
	}{
		{"connect", errNo, nil, nil, choice.Dropped, "BROKER NETWORK: refused"},
		{"session", nil, reported, nil, choice.Dropped, "PROXY(BROKER TIMEOUT)"},
		{"session, host", nil, noHost, nil, choice.Kept, "PROXY(BROKER HOST)"},
		{"forward", nil, nil, reported, choice.StreakBegun, "PROXY(BROKER TIMEOUT)"},
		{"forward, host", nil, nil, noHost, choice.Kept, "PROXY(BROKER HOST)"},
		{"forward, relay's error", nil, nil, &Error{Origin: Relay, Code: Refused, Detail: "AUTH"}, choice.Kept, "RELAY AUTH"},
		{"forward, wrong password", nil, nil, &Error{Origin: Proxy, Code: BasicAuth}, choice.Kept, "PROXY BASIC_AUTH"},
		{"forward, broken connection", nil, nil, errNo, choice.Kept, "BROKER NETWORK: refused"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "a", func(r *rig) {
				r.net.connect = func(context.Context, string) error { return test.connect }
				r.net.session = func(context.Context, string) error { return test.session }
				r.net.forward = func(context.Context, string, Session) error { return test.forward }
			}, func(t *testing.T, r *rig) {
				res, err := r.Do(t.Context(), request())
				require.EqualError(t, err, test.text)
				assert.Equal(t, test.want, res.Change)
				if test.want != choice.Kept {
					assert.Equal(t, []choice.Change{test.want}, r.changes.get())
				} else {
					assert.Empty(t, r.changes.get())
				}
			})
		})
	}
}

func TestAStoredConnectErrorForgetsTheNewChoice(t *testing.T) {
	inBubble(t, "a", func(r *rig) {
		r.net.connect = func(context.Context, string) error { return errors.New("refused") }
	}, func(t *testing.T, r *rig) {
		for range 2 {
			res, err := r.Do(t.Context(), request())
			require.Error(t, err)
			assert.Equal(t, choice.Dropped, res.Change)
		}
		assert.Equal(t, []string{"connect a"}, r.net.took())
		time.Sleep(PersistErrorInterval)
		_, err := r.Do(t.Context(), request())
		require.Error(t, err)
		assert.Equal(t, []string{"connect a"}, r.net.took())
	})
}

func TestAHostErrorOfASessionIsKnownUntilTheConnectionEnds(t *testing.T) {
	inBubble(t, "a", func(r *rig) {
		r.net.session = func(context.Context, string) error { return noHost }
	}, func(t *testing.T, r *rig) {
		for range 2 {
			_, err := r.Do(t.Context(), request())
			require.ErrorIs(t, err, noHost)
			time.Sleep(time.Hour)
		}
		assert.Equal(t, []string{"connect a", "session a", "ping a", "ping a", "ping a", "ping a", "ping a", "ping a",
			"ping a", "ping a", "ping a", "ping a", "ping a"}, r.net.took()[:13])
		r.net.end("a")
		_, err := r.Do(t.Context(), request())
		require.ErrorIs(t, err, noHost)
		assert.Contains(t, r.net.took(), "session a")
	})
}

func TestUnknownSessionIsReplacedOnce(t *testing.T) {
	inBubble(t, "ab", func(r *rig) {
		r.net.forward = func(_ context.Context, _ string, s Session) error {
			if s == 1 {
				return noSession
			}
			return nil
		}
	}, func(t *testing.T, r *rig) {
		res, err := r.Do(t.Context(), request())
		require.NoError(t, err)
		p := res.Proxy
		assert.Equal(t, []string{"connect " + p, "session " + p, "forward " + p, "session " + p, "forward " + p}, r.net.took())
		assert.Empty(t, r.changes.get())
	})
}

func TestASecondUnknownSessionIsAnError(t *testing.T) {
	inBubble(t, "a", func(r *rig) {
		r.net.forward = func(context.Context, string, Session) error { return noSession }
	}, func(t *testing.T, r *rig) {
		_, err := r.Do(t.Context(), request())
		require.ErrorIs(t, err, noSession)
		assert.Equal(t, []string{"connect a", "session a", "forward a", "session a", "forward a"}, r.net.took())
		assert.Equal(t, "a", r.proxy())
	})
}

func TestTheRetryDoesNotBringAForgottenChoiceBack(t *testing.T) {
	for _, record := range []bool{false, true} {
		inBubble(t, "a", func(r *rig) {
			r.policy.NoSession.Record = record
			r.net.forward = func(ctx context.Context, _ string, s Session) error {
				if s > 1 {
					return nil
				}
				r.choices.Reset() // forgotten while the call is under way
				return noSession
			}
		}, func(t *testing.T, r *rig) {
			_, err := r.Do(t.Context(), request())
			require.NoError(t, err)
			if record {
				assert.Equal(t, "a", r.proxy())
			} else {
				assert.Empty(t, r.proxy())
			}
		})
	}
}

func TestALateAnswerDoesNotRemoveTheNewSession(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		gates := make(chan chan struct{}, 2)
		r.net.forward = func(_ context.Context, _ string, s Session) error {
			if s > 1 {
				return nil
			}
			gate := make(chan struct{})
			gates <- gate
			<-gate
			return noSession
		}
		done := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := r.Do(t.Context(), request())
				done <- err
			}()
		}
		synctest.Wait()
		early, late := <-gates, <-gates // both went by session 1
		close(early)
		require.NoError(t, <-done) // session 1 is gone, session 2 is there
		close(late)
		require.NoError(t, <-done)
		sessions := 0
		for _, what := range r.net.took() {
			if what == "session a" {
				sessions++
			}
		}
		assert.Equal(t, 2, sessions, "the late answer removed the new session")
	})
}

func TestTheEndOfAConnectionForgetsWhatGoesByIt(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		for _, d := range []string{"r", "s", "q"} {
			req := request()
			req.Destination.Name = d
			_, err := r.Do(t.Context(), req)
			require.NoError(t, err)
		}
		require.Equal(t, 3, r.Choices())
		r.net.end("a")
		assert.Equal(t, 0, r.Choices())
		assert.Equal(t, []choice.Change{choice.Dropped, choice.Dropped, choice.Dropped}, r.changes.get())
		assert.Equal(t, []string{"a"}, r.ended.get())
		r.net.end("a")
		assert.Equal(t, []string{"a"}, r.ended.get(), "it ended twice")
		r.net.took()
		_, err := r.Do(t.Context(), request())
		require.NoError(t, err)
		assert.Equal(t, []string{"connect a", "session a", "forward a"}, r.net.took())
	})
}

func TestAConnectionThatEndsWhileItIsMade(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		r.o.Connector = endsAtOnce{r.net}
		_, err := r.Do(t.Context(), request())
		require.EqualError(t, err, "BROKER NETWORK: the connection ended")
		assert.Empty(t, r.proxy())
		assert.Equal(t, []string{"connect a", "close a"}, r.net.took())
		r.o.Connector = r.net
		_, err = r.Do(t.Context(), request())
		require.NoError(t, err, "the dead connection was kept")
	})
}

// endsAtOnce is a network whose connections are over before Connect returns.
type endsAtOnce struct{ *network }

func (n endsAtOnce) Connect(ctx context.Context, to Endpoint, watch Watch) (Link, error) {
	watch.Ended(errors.New("gone"))
	return n.network.Connect(ctx, to, watch)
}

func TestFallbackOnlyAfterHostErrors(t *testing.T) {
	tests := []struct {
		name     string
		err      error
		fallback Fallback
		direct   bool
	}{
		{"host error, allowed", noHost, Allow, true},
		{"host error, prohibited", noHost, Prohibit, false},
		{"a report", reported, Allow, false},
		{"no answer", context.DeadlineExceeded, Allow, false},
		{"no network", errors.New("broken"), Allow, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "a", func(r *rig) {
				r.config.Fallback = test.fallback
				r.net.forward = func(context.Context, string, Session) error { return test.err }
			}, func(t *testing.T, r *rig) {
				res, err := r.Do(t.Context(), request())
				assert.Equal(t, test.direct, res.Direct)
				assert.Equal(t, test.direct, err == nil)
				assert.Equal(t, "a", res.Proxy)
				if test.direct {
					assert.Equal(t, "direct answer to hello", string(res.Answer))
				}
			})
		})
	}
}

func TestTheDirectErrorIsReturned(t *testing.T) {
	for name, setUp := range map[string]func(*rig){
		"command": func(r *rig) {
			r.net.command = func(context.Context, string) error { return &Error{Origin: Relay, Code: Refused, Detail: "AUTH"} }
		},
		"connect": func(r *rig) {
			r.net.connect = func(_ context.Context, s string) error {
				if s == "r" {
					return &Error{Origin: Relay, Code: Refused, Detail: "AUTH"}
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "a", func(r *rig) {
				r.config.Fallback = Allow
				r.net.session = func(context.Context, string) error { return noHost }
				setUp(r)
			}, func(t *testing.T, r *rig) {
				res, err := r.Do(t.Context(), request())
				require.EqualError(t, err, "RELAY AUTH")
				assert.True(t, res.Direct)
			})
		})
	}
}

func TestUnproxiedCommandsDrawAndChooseNothing(t *testing.T) {
	inBubble(t, "ab", func(r *rig) { r.config.Mode = Never }, func(t *testing.T, r *rig) {
		before := rand.New(rand.NewPCG(1, 1)).Uint64()
		res, err := r.Do(t.Context(), request())
		require.NoError(t, err)
		assert.True(t, res.Direct)
		assert.Equal(t, []string{"connect r", "command r"}, r.net.took())
		assert.Equal(t, before, r.rng.Uint64())
		assert.Zero(t, r.Choices())
	})
}

func TestAProxyThatIsAlsoTheOwnServerSharesItsConnection(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		own := request()
		own.Destination = server("a")
		_, err := r.Direct(t.Context(), own)
		require.NoError(t, err)
		_, err = r.Do(t.Context(), request())
		require.NoError(t, err)
		assert.Equal(t, []string{"connect a", "command a", "session a", "forward a"}, r.net.took())
	})
}

func TestACancelledRequestSaysNothingAboutTheProxy(t *testing.T) {
	cause := errors.New("the user left")
	for _, step := range []string{"connect", "session", "forward"} {
		t.Run(step, func(t *testing.T) {
			inBubble(t, "a", func(r *rig) {
				hang := func(ctx context.Context, s string) error {
					if s == step {
						return silent(ctx)
					}
					return nil
				}
				r.net.connect = func(ctx context.Context, _ string) error { return hang(ctx, "connect") }
				r.net.session = func(ctx context.Context, _ string) error { return hang(ctx, "session") }
				r.net.forward = func(ctx context.Context, _ string, _ Session) error { return hang(ctx, "forward") }
			}, func(t *testing.T, r *rig) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				_, err := r.Do(ctx, request())
				require.ErrorIs(t, err, cause)
				assert.Nil(t, AsError(err))
				assert.Equal(t, "a", r.proxy())
				assert.Empty(t, r.changes.get())
			})
		})
	}
}

func TestExcludeFailedLeavesTheForgottenOneOut(t *testing.T) {
	for _, exclude := range []bool{true, false} {
		again := 0
		for range 40 {
			inBubble(t, "ab", func(r *rig) {
				r.policy.ExcludeFailed = exclude
				r.net.connect = func(context.Context, string) error { return errors.New("refused") }
			}, func(t *testing.T, r *rig) {
				r.rng = rand.New(rand.NewPCG(uint64(again)*7919+3, uint64(time.Now().UnixNano())))
				last := ""
				for range 8 {
					res, _ := r.Do(t.Context(), request())
					if res.Proxy == last {
						again++
					}
					last = res.Proxy
				}
			})
		}
		assert.Equal(t, exclude, again == 0, "picked again %d times", again)
	}
	assert.Len(t, DefaultPolicy().Cascade, 3, "the exclusion got into the default cascade")
}

func TestDeliverKeepsToTheLadder(t *testing.T) {
	inBubble(t, "a", func(r *rig) {
		n := 0
		r.net.forward = func(ctx context.Context, _ string, _ Session) error {
			if n++; n <= 7 {
				return reported
			}
			return nil
		}
	}, func(t *testing.T, r *rig) {
		res, err := r.Deliver(t.Context(), request(), false)
		require.NoError(t, err)
		assert.Equal(t, "a", res.Proxy)
		assert.Equal(t, 17500*time.Millisecond, r.elapsed()) // 5 · 2 + 3 + 4.5
	})
}

func TestDeliverEndsWithAPermanentErrorOrItsContext(t *testing.T) {
	inBubble(t, "a", func(r *rig) {
		r.net.forward = func(context.Context, string, Session) error {
			return &Error{Origin: Relay, Code: Refused, Detail: "AUTH"}
		}
	}, func(t *testing.T, r *rig) {
		_, err := r.Deliver(t.Context(), request(), false)
		require.EqualError(t, err, "RELAY AUTH")
		assert.Zero(t, r.elapsed())
	})
	inBubble(t, "a", func(r *rig) {
		r.net.forward = func(context.Context, string, Session) error { return reported }
	}, func(t *testing.T, r *rig) {
		cause := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		_, err := r.Deliver(ctx, request(), false)
		require.ErrorIs(t, err, cause)
		assert.Equal(t, time.Second, r.elapsed())
		synctest.Wait()
	})
}
