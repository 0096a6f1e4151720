//go:build !race

package programs

import "testing"

// These programs have several goroutines ready in one instant, whose order the
// race detector's scheduler draws at random. Without it, on the one processor
// of a strict run, the order is always the same.

func TestSSHReplays(t *testing.T)      { replays(t, shell) }
func TestGRPCReplays(t *testing.T)     { replays(t, healthy) }
func TestResolverReplays(t *testing.T) { replays(t, resolved) }
