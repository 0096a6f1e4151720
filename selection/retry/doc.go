// Package retry decides which provider, and which of its endpoints, the next
// attempt of a request goes to, by the kind of error that the last attempt ended
// with. Everything in it is a pure state machine: it is told the time and what
// happened, and answers with a decision. Package failover drives it over
// net/http.
//
//	pool, err := retry.NewPool(retry.DefaultPolicy(), providers)
//	plan := pool.Plan(retry.Request{Conversation: id}, now)
//	defer plan.Close()
//	for {
//		attempt, ok := plan.Next(now)
//		if !ok {
//			return errAllFailed
//		}
//		answer := call(attempt.URL)
//		switch d := plan.Report(answer, now); d.Action {
//		case retry.Return:
//			return answer
//		case retry.Again:
//			sleep(d.Wait)
//		case retry.NextProvider:
//		}
//	}
//
// The parts, from the inside out: a [Classifier] turns an [Answer] into a [Kind];
// a [Table] has one [Row] per kind that says what follows from it; a [Turn] counts
// the attempts at one provider and walks along its endpoints; a [Pool] holds the
// state that outlives a request (breakers, probe results, bindings); a [Plan] is
// one request's way through the pool, and leaves a [Chain] behind.
//
// The rule in one line: a system error goes to the next endpoint and stays on the
// last, a provider error repeats the same endpoint, and a provider that has used
// up its attempts hands over to the next.
package retry
