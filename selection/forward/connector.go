package forward

import (
	"context"

	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// Connector makes connections for a client. Its methods may be called from many goroutines.
type Connector interface {
	// Connect brings up everything up to the protocol's hello. Errors are *Error where the protocol has a name for
	// them; any other is taken for BROKER NETWORK, and a context that ran out for BROKER TIMEOUT.
	//
	// The connection calls watch.Received for every block that comes in, and watch.Ended once when it is over, unless it
	// was closed by the client. It may call them before Connect returns.
	Connect(ctx context.Context, to Endpoint, watch Watch) (Link, error)
}

// Endpoint is what a connection is for.
type Endpoint struct {
	User   string
	Server pick.Server
	// Entity is empty unless connections are kept apart by entity.
	Entity string
}

// Watch is how a connection tells the client what happens to it.
type Watch struct {
	Received func()
	Ended    func(error)
}

// Session names a proxy's session with a relay.
type Session uint64

// Link is an established connection to a server. A command whose connection dies is not failed early: it runs into
// its time-out.
type Link interface {
	// Session asks for a session with a relay.
	Session(ctx context.Context, relay pick.Server, credentials string) (Session, error)
	// Forward sends a command through a session and returns the relay's answer.
	Forward(ctx context.Context, s Session, command []byte) ([]byte, error)
	// Command sends a command to the server itself.
	Command(ctx context.Context, command []byte) ([]byte, error)
	// Ping asks whether the server is alive.
	Ping(ctx context.Context) error
	// Close ends the connection.
	Close() error
}
