package forward

import "context"

// Deliver repeats a command until the destination has it: it is the background worker. Moves says that the command can
// move to its destination's own worker. It returns an error that ends the work, or the end of ctx.
func (c *Client) Deliver(ctx context.Context, r Request, moves bool) (Result, error) {
	retries := c.policy.Retry.Start(moves)
	for {
		res, err := c.Do(ctx, r)
		if err == nil {
			return res, nil
		}
		wait, again := retries.Failed(AsError(err), res.Change)
		if !again {
			return res, err
		}
		timer := c.o.Clock.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return res, context.Cause(ctx)
		}
	}
}
