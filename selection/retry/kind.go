package retry

import "fmt"

// Kind is what an attempt ended with.
type Kind uint8

const (
	Success       Kind = iota // a complete answer
	ClientAbort               // the client's own context is done
	SystemError               // no HTTP answer: DNS, refused, reset, time-out of the connection, TLS, EOF before the headers
	ProviderError             // HTTP status ≥ 400, an empty body, an error before the first content of a stream
	OwnTimeout                // the proxy's own first-byte or whole-exchange timer ran out
	NotFound                  // HTTP status 404
	ClientFault               // the error text says that the request itself is wrong
	BrokenStream              // an error after content had been sent to the client
	kinds
)

// Kinds is how many kinds there are.
const Kinds = int(kinds)

var kindNames = [Kinds]string{
	"success", "client abort", "system error", "provider error",
	"own time-out", "not found", "client's fault", "broken stream",
}

func (k Kind) String() string {
	if int(k) < Kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}
