package privaterouting

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// p1Silent is the setup of the main job: P1's way to the relay is swallowed, the
// other proxies are good, and P1 is the first pick.
func p1Silent() Setup { return Setup{Broken: []string{"p1"}, Draws: []string{"p1"}} }

// p1First is a setup in which all is well and P1 is the first pick.
func p1First() Setup { return Setup{Draws: []string{"p1"}} }

// opened is a world whose contact receives at the relay: how most stories begin.
func opened(p *scenarios.Play, s Subject, setup Setup) *World {
	w := NewWorld(p, s, setup)
	w.Contact.Receive(p.Context())
	return w
}

// reply plays "connecting…": the contact joins the app's link, and the app replies
// in the background. It gives the time from the first attempt until the reply got
// to the contact, and whether it did within the limit. P1 was the first tried.
func (w *World) reply(limit time.Duration) (took time.Duration, connected bool) {
	w.App.Listen(w.play.Context())
	w.Contact.Join(w.play.Context(), 1)
	began, ok := w.Journal.Wait(time.Minute, func(n Note) bool { return n.Actor == "app" && n.What == "joined" })
	require.True(w.play, ok, "the app never heard of the contact")
	return w.received(began.At, limit)
}

// ordinary has the app deliver a message that stays in its worker, and gives what
// reply does.
func (w *World) ordinary(limit time.Duration) (took time.Duration, connected bool) {
	began := w.play.Elapsed()
	w.deliver()
	return w.received(began, limit)
}

// deliver starts an ordinary message beside the story.
func (w *World) deliver() {
	w.play.Go("deliver", func() { w.App.Deliver(w.play.Context(), contactQueue, 1, false) })
}

// received waits for the contact to receive something.
func (w *World) received(began, limit time.Duration) (took time.Duration, connected bool) {
	got, ok := w.Journal.Wait(limit-(w.play.Elapsed()-began), func(n Note) bool { return n.Actor == "contact" && n.What == "received" })
	w.triedFirst("p1")
	return got.At - began, ok
}

// join has the app join the contact's link. Its user taps Retry a second after
// each error, at most so often.
func (w *World) join(patience int) (seen []string, joined bool) {
	seen, joined = w.App.Join(w.play.Context(), contactLink, patience, time.Second)
	w.triedFirst("p1")
	return seen, joined
}

// repicks is how often the broken proxy was picked again after it was left for
// the first time, which must have happened.
func (w *World) repicks() int {
	w.play.Helper()
	require.NotZero(w.play, w.App.Forgotten(), "p1 was never left")
	return w.App.Forgotten() - 1
}

// within checks that something took so long and not longer than a way needs.
func (w *World) within(took, want time.Duration) {
	w.play.Helper()
	require.GreaterOrEqual(w.play, took, want)
	require.LessOrEqual(w.play, took, want+handshakes)
}

// replyAfter is when a reply has got through after so many re-picks of the broken
// proxy: 62, 126, 190 s and on.
func replyAfter(repicks int) time.Duration {
	return 62*time.Second + time.Duration(repicks)*64*time.Second
}

// joinedAt are the Retries at which a join can have worked after so many re-picks:
// which of them, is decided by who wins at n = 1.
func joinedAt(repicks int) []int { return []int{3 + 2*repicks, 4 + 2*repicks} }
