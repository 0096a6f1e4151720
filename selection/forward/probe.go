package forward

import (
	"context"

	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// probe is the second proxy that a choice in trouble is raced against. One choice has one, so that at most one more
// proxy learns of the destination.
type probe struct {
	generation uint64
	server     string
}

// probe returns the second proxy for a choice whose streak is running, if the policy wants one and there is another.
func (c *Client) probe(config Config, r Request, key Key, chosen choice.Choice[string]) (string, bool) {
	if !c.policy.Probe {
		return "", false
	}
	entry, ok := c.choices.Lookup(key)
	if !ok || entry.Generation != chosen.Generation || !entry.Streak.Running() {
		return "", false
	}
	c.mu.Lock()
	known := c.probes[key]
	c.mu.Unlock()
	if known.generation == chosen.Generation {
		return known.server, true
	}
	cascade := append(c.policy.Cascade[:len(c.policy.Cascade):len(c.policy.Cascade)], pick.Not(chosen.Proxy))
	second, ok := c.pick(config, r.Destination, cascade...)
	if !ok || second.Name == chosen.Proxy {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probes[key] = probe{generation: chosen.Generation, server: second.Name}
	return second.Name, true
}

// race sends a command through the choice and through a second proxy. The first answer wins; if it is the second's,
// that takes the choice's place. The destination sees the command once or twice, and must bear it.
func (c *Client) race(ctx context.Context, config Config, r Request, key Key, chosen choice.Choice[string], second string) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type finish struct {
		res    Result
		err    error
		second bool
	}
	done := make(chan finish, 2)
	go func() {
		res, err := c.through(ctx, config, r, key, chosen)
		done <- finish{res, err, false}
	}()
	go func() {
		// Generation 0 is never in force: what becomes of the probe touches no entry.
		res, err := c.through(ctx, config, r, key, choice.Choice[string]{Proxy: second})
		done <- finish{res, err, true}
	}()
	first := <-done
	if first.err == nil {
		if first.second {
			c.choices.Replace(key, chosen, second)
		}
		cancel()
		<-done
		return first.res, nil
	}
	other := <-done
	if other.err == nil && other.second {
		c.choices.Replace(key, chosen, second)
	}
	if other.err == nil || first.second {
		return other.res, other.err
	}
	return first.res, first.err
}
