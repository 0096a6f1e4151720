package route

import (
	"context"
	"errors"
)

// Reasons for which a connection is not made although its route may be sound. None of them is blamed on the route.
var (
	// ErrPlainText refuses a direct address that would carry the secret in plain text over a public network.
	ErrPlainText = Blameless("the secret would travel in plain text")
	// ErrSignIn asks the user to sign in before the relay can be used.
	ErrSignIn = Blameless("sign in to use the relay")
	// ErrWrongAccount says that the relay belongs to another account than the one signed in.
	ErrWrongAccount = Blameless("the relay belongs to another account")
	// ErrAccount is the machine's or the account service's answer that the account may not do this.
	ErrAccount = Blameless("the account was refused")
	// ErrVersion is the machine's answer that the two ends speak different versions.
	ErrVersion = Blameless("the versions do not fit")
	// ErrKeyProof says that this device could not prove that it holds its key.
	ErrKeyProof = Blameless("the device cannot prove its key")
	// ErrBusy refuses a second dial to a machine whose first dial is still under way.
	ErrBusy = Blameless("a dial to this machine is under way")
	// ErrSuperseded ends an attempt that a newer one has replaced.
	ErrSuperseded = Blameless("superseded by a newer attempt")
)

// Blameless is an error that says nothing about the route on which it was met.
type Blameless string

func (e Blameless) Error() string { return string(e) }

// Blames reports whether an attempt that ended with err counts as a failure of its route. Cancellation and anything
// that wraps a Blameless does not; every other error does, a time-out included.
func Blames(err error) bool {
	var blameless Blameless
	return err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &blameless)
}
