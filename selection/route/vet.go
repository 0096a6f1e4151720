package route

import (
	"fmt"
	"strings"
)

// Refusal is a candidate that must not be dialled, and why.
type Refusal struct {
	Candidate Candidate
	Err       error
}

// Vet says whether a candidate may be dialled by the signed-in account ("" when nobody is).
//
// A direct route carries the machine's secret in plain text, so only addresses that stay private pass: localhost and
// *.localhost, *.local, the tailnet, and the loopback, private and link-local ranges. Public addresses, other names and
// empty hosts get ErrPlainText. A relay passes when its stored owner is the signed-in account; otherwise the error is
// ErrSignIn or ErrWrongAccount.
func Vet(c Candidate, account string) error {
	if c.Class() == Relay {
		switch {
		case account == "":
			return fmt.Errorf("route.Vet %q: %w", c.Address, ErrSignIn)
		case account != c.Owner:
			return fmt.Errorf("route.Vet %q, account %q: %w", c.Address, account, ErrWrongAccount)
		}
		return nil
	}
	if h := host(c.Address); !private(h) {
		return fmt.Errorf("route.Vet %q: %w", c.Address, ErrPlainText)
	}
	return nil
}

// Admit parts the candidates into those that may be dialled, in their order, and those that may not.
func Admit(candidates []Candidate, account string) (admitted []Candidate, refused []Refusal) {
	for _, c := range candidates {
		if err := Vet(c, account); err != nil {
			refused = append(refused, Refusal{Candidate: c, Err: err})
			continue
		}
		admitted = append(admitted, c)
	}
	return admitted, refused
}

// Requirement gives what the user has to do before a refused relay can be used: an error that is ErrSignIn or
// ErrWrongAccount, or nil when no relay was refused.
func Requirement(refused []Refusal) error {
	for _, r := range refused {
		if r.Candidate.Class() == Relay {
			return r.Err
		}
	}
	return nil
}

func private(h string) bool {
	return h == "localhost" || strings.HasSuffix(h, ".localhost") || strings.HasSuffix(h, ".local") ||
		isTailnet(h) || inRanges(h, loopbackRanges) || inRanges(h, localLinkRanges)
}
