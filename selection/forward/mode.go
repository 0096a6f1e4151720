package forward

import "github.com/seed-5a7f77c4/deadair/selection/pick"

// Mode says when a command goes through a proxy.
type Mode uint8

const (
	// Never: go to the destination directly.
	Never Mode = iota
	// Unknown: when none of the destination's hosts is among the user's configured servers, enabled or not.
	Unknown
	// Unprotected: as Unknown, and only if the user's address is not hidden.
	Unprotected
	// Always.
	Always
)

// Fallback says when a command may go directly after a host error of the proxy.
type Fallback uint8

const (
	// Prohibit: never.
	Prohibit Fallback = iota
	// Protected: when the user's address is hidden.
	Protected
	// Allow: always.
	Allow
)

// Config is what a user has configured. It is read anew for each call.
type Config struct {
	// Servers are all of the user's servers, enabled or not.
	Servers []pick.Server
	// Mode and Fallback decide about proxying. Their zero values are the library's defaults: never, prohibit.
	Mode     Mode
	Fallback Fallback
	// AddressHidden: a SOCKS proxy or an onion-only path hides the user's address.
	AddressHidden bool
	// SlowNetwork: cellular, or none. All limits are half as long again.
	SlowNetwork bool
	// PerEntity keeps choices, connections and sessions apart for each entity.
	PerEntity bool
	// Credentials are presented to a proxy, by its name.
	Credentials map[string]string
}

// Proxied reports whether commands for the destination go through a proxy.
func (c Config) Proxied(destination pick.Server) bool {
	switch c.Mode {
	case Always:
		return true
	case Unknown:
		return !c.knows(destination)
	case Unprotected:
		return !c.AddressHidden && !c.knows(destination)
	}
	return false
}

func (c Config) knows(destination pick.Server) bool {
	for _, s := range c.Servers {
		if s.SharesHost(destination) {
			return true
		}
	}
	return false
}

// MayFallBack reports whether a command may go directly after a host error.
func (c Config) MayFallBack() bool {
	return c.Fallback == Allow || c.Fallback == Protected && c.AddressHidden
}
