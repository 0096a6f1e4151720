package forward

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/backoff"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

func sec(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func TestLimitsByUrgencyRetryAndNetwork(t *testing.T) {
	for _, tc := range []struct {
		name                              string
		u                                 Urgency
		slow                              bool
		connect, command, session, answer float64
	}{
		{"background", Urgency{}, false, 45, 30, 75, 60},
		{"interactive", Urgency{Interactive: true}, false, 15, 10, 25, 20},
		{"first retry", Urgency{true, 1}, false, 22.5, 15, 37.5, 30},
		{"second retry", Urgency{true, 2}, false, 33.75, 22.5, 56.25, 45},
		{"third retry", Urgency{true, 3}, false, 50.625, 33.75, 84.375, 67.5},
		{"tenth retry", Urgency{true, 10}, false, 50.625, 33.75, 84.375, 67.5},
		{"background, slow", Urgency{}, true, 67.5, 45, 112.5, 90},
		{"interactive, slow", Urgency{Interactive: true}, true, 22.5, 15, 37.5, 30},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := DefaultTimes.For(tc.u, tc.slow)
			require.Equal(t, sec(tc.connect), l.Connect)
			require.Equal(t, sec(tc.command), l.Command)
			require.Equal(t, sec(tc.session), l.Session())
			require.Equal(t, sec(tc.answer), l.Forward())
		})
	}
}

// Modes × known or not × hidden or not.
func TestWhetherToProxy(t *testing.T) {
	own := pick.Server{Name: "own", Hosts: []string{"own"}}
	stranger := pick.Server{Name: "r", Hosts: []string{"r"}}
	for _, tc := range []struct {
		mode                                       Mode
		unknownSeen, unknownHidden, known, knownHi bool
	}{
		{Always, true, true, true, true},
		{Unknown, true, true, false, false},
		{Unprotected, true, false, false, false},
		{Never, false, false, false, false},
	} {
		c := Config{Servers: []pick.Server{own}, Mode: tc.mode}
		h := c
		h.AddressHidden = true
		require.Equal(t, tc.unknownSeen, c.Proxied(stranger), "%v", tc.mode)
		require.Equal(t, tc.unknownHidden, h.Proxied(stranger), "%v", tc.mode)
		require.Equal(t, tc.known, c.Proxied(own), "%v", tc.mode)
		require.Equal(t, tc.knownHi, h.Proxied(own), "%v", tc.mode)
	}
	for _, tc := range []struct {
		f            Fallback
		seen, hidden bool
	}{{Allow, true, true}, {Protected, false, true}, {Prohibit, false, false}} {
		require.Equal(t, tc.seen, Config{Fallback: tc.f}.MayFallBack())
		require.Equal(t, tc.hidden, Config{Fallback: tc.f, AddressHidden: true}.MayFallBack())
	}
}

// The table of error classes: what each is called, what it does to the choice,
// whether a worker tries again.
func TestErrorClasses(t *testing.T) {
	for _, tc := range []struct {
		err     *Error
		text    string
		kind    choice.Kind
		counts  bool
		retried bool
		host    bool
	}{
		{nil, "", choice.RelayReached, true, false, false},
		{&Error{Origin: Relay, Code: Refused, Detail: "AUTH"}, "RELAY AUTH", choice.RelayRefused, true, false, false},
		{&Error{Origin: Relay, Code: Refused, Detail: Quota}, "RELAY QUOTA", choice.RelayRefused, true, true, false},
		{&Error{Origin: Relay, Code: Unusable}, "RELAY UNUSABLE", choice.AnswerUnusable, true, false, false},
		{&Error{Origin: Proxy, Code: Protocol}, "PROXY PROTOCOL", choice.FrameRefused, true, false, false},
		{&Error{Origin: Proxy, Code: Timeout}, "PROXY(BROKER TIMEOUT)", choice.ForwardFailed, true, true, false},
		{&Error{Origin: Proxy, Code: Network}, "PROXY(BROKER NETWORK)", choice.ForwardFailed, true, true, false},
		{&Error{Origin: Proxy, Code: Unexpected}, "PROXY(BROKER UNEXPECTED)", choice.ForwardFailed, true, false, false},
		{&Error{Origin: Proxy, Code: Response}, "PROXY(BROKER RESPONSE)", choice.ForwardFailed, true, false, false},
		{&Error{Origin: Proxy, Code: Transport}, "PROXY(BROKER TRANSPORT)", choice.ForwardFailed, true, false, false},
		{&Error{Origin: Proxy, Code: Version}, "PROXY(BROKER TRANSPORT VERSION)", choice.HostError, true, true, true},
		{&Error{Origin: Proxy, Code: Host}, "PROXY(BROKER HOST)", choice.HostError, true, true, true},
		{&Error{Origin: Proxy, Code: NoSession}, "PROXY NO_SESSION", choice.SessionUnknown, true, true, false},
		{&Error{Origin: Proxy, Code: BasicAuth}, "PROXY BASIC_AUTH", 0, false, false, false},
		{&Error{Code: Timeout}, "BROKER TIMEOUT", choice.ForwardTimedOut, true, true, false},
		{&Error{Code: Network}, "BROKER NETWORK", 0, false, true, false},
	} {
		kind, counts := forwardEvent(tc.err)
		require.Equal(t, tc.counts, counts, tc.text)
		if counts {
			require.Equal(t, tc.kind, kind, tc.text)
		}
		if tc.err != nil {
			require.Equal(t, tc.text, tc.err.Error())
			require.Equal(t, tc.retried, tc.err.Retried(), tc.text)
			require.Equal(t, tc.host, tc.err.HostError(), tc.text)
		}
	}
	cause := errors.New("cause")
	require.ErrorIs(t, &Error{Err: cause}, cause)
	require.Equal(t, "BROKER NETWORK: detail: cause", (&Error{Code: Network, Detail: "detail", Err: cause}).Error())
}

func TestEventsOfConnectingAndOfSessions(t *testing.T) {
	for how, want := range map[share.How]choice.Kind{
		share.Made: choice.ConnectFailed, share.Shared: choice.ConnectErrorShared,
		share.Stored: choice.ConnectErrorShared, share.WaitedOut: choice.WaitTimedOut,
	} {
		kind, counts := connectEvent(how)
		require.True(t, counts)
		require.Equal(t, want, kind)
	}
	_, counts := connectEvent(share.Cancelled)
	require.False(t, counts, "who gave up says nothing about the proxy")

	kind, _ := sessionEvent(share.Made, &Error{Code: Timeout})
	require.Equal(t, choice.SessionFailed, kind)
	kind, _ = sessionEvent(share.Made, &Error{Origin: Proxy, Code: Host})
	require.Equal(t, choice.HostError, kind)
	kind, _ = sessionEvent(share.WaitedOut, &Error{Code: Timeout})
	require.Equal(t, choice.WaitTimedOut, kind)
	_, counts = sessionEvent(share.Cancelled, nil)
	require.False(t, counts)
}

func TestRetriesClimbAndMove(t *testing.T) {
	p := DefaultPolicy().Retry
	temporary := &Error{Origin: Proxy, Code: Timeout}
	waits := func(moves bool, changes ...choice.Change) (all []time.Duration) {
		r := p.Start(moves)
		for _, c := range changes {
			w, again := r.Failed(temporary, c)
			require.True(t, again)
			all = append(all, w)
		}
		return all
	}
	kept := choice.Kept
	require.Equal(t, []time.Duration{sec(2), sec(2), sec(2), sec(2), sec(2), sec(3), sec(4.5)}, waits(false, kept, kept, kept, kept, kept, kept, kept))
	require.Equal(t, []time.Duration{sec(2), 0, sec(2), sec(2)}, waits(true, choice.StreakBegun, choice.StreakOut, choice.StreakBegun, choice.StreakOut),
		"the second failure moves the command, which is tried at once")
	out := choice.StreakOut
	require.Equal(t, []time.Duration{sec(2), sec(2), sec(2), sec(2), sec(2), sec(3), sec(4.5)}, waits(false, out, out, out, out, out, out, out),
		"a command that cannot move climbs on")
	require.Equal(t, []time.Duration{sec(2), 0, sec(2), sec(2), sec(2), sec(2), sec(2), sec(3), sec(4.5), sec(2), sec(2)},
		waits(true, kept, kept, kept, kept, kept, kept, kept, kept, kept, out, kept), "a new route starts from the lowest rung")
	p.MoveAfter = 8
	require.Equal(t, []time.Duration{sec(2), sec(2), sec(2), sec(2), sec(2), sec(3), sec(4.5), 0, sec(2)},
		waits(true, out, out, out, out, out, out, out, out, kept), "only the destination's own worker starts afresh")
	r := p.Start(false)
	w, again := r.Failed(&Error{Origin: Relay, Code: Refused, Detail: Quota}, kept)
	require.True(t, again)
	require.Equal(t, backoff.Quota.Initial, w)
	_, again = r.Failed(&Error{Origin: Proxy, Code: BasicAuth}, kept)
	require.False(t, again, "a permanent error ends the work")
	_, again = r.Failed(nil, kept)
	require.False(t, again)
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	o := Options{}
	_, err := New(o)
	require.ErrorContains(t, err, "Connector")
	o.Connector = &network{}
	_, err = New(o)
	require.ErrorContains(t, err, "Config")
	o.Config = func(string) Config { return Config{} }
	_, err = New(o)
	require.ErrorContains(t, err, "Rand")
}

func TestAsBrokerClassesErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, asBroker(ctx, nil))
	require.Equal(t, Timeout, AsError(asBroker(ctx, context.DeadlineExceeded)).Code)
	require.Equal(t, Network, AsError(asBroker(ctx, errors.New("refused"))).Code)
	own := &Error{Code: Transport}
	require.Same(t, own, asBroker(ctx, own))
	cancel()
	require.ErrorIs(t, asBroker(ctx, errors.New("refused")), context.Canceled)
	require.Nil(t, AsError(asBroker(ctx, errors.New("refused"))))
}
