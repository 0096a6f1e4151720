// Package breaker is a circuit breaker as a pure state machine: closed until
// too many failures in a row, open for a fixed time, then half-open for a few
// trials.
//
//	b := breaker.New(breaker.Settings{Failures: 3, OpenFor: 5 * time.Minute, Successes: 1})
//	permit, ok := b.Acquire(now)
//	if !ok {
//		return errUnavailable
//	}
//	err := call()
//	b.Done(&permit, breaker.Success, now) // or Failure, or Abandoned
//
// One mechanism serves every level at which a proxy stops asking (endpoint,
// provider, vendor); only the [Settings] differ.
//
// Three rules keep it from getting stuck. A failure that arrives while the
// breaker is open does not move the deadline. A success that arrives while it is
// open changes nothing. And a result is counted only in the state that admitted
// the request, so what was sent before the breaker opened cannot decide a trial.
package breaker
