package route

import (
	"fmt"
	"strings"
	"unicode"
)

// Refusal is a candidate that must not be dialled, and why.
type Refusal struct {
	Candidate Candidate
	Err       error
}

// Vet says whether a candidate may be dialled by the signed-in account ("" when nobody is).
//
// A direct route carries the machine's secret in plain text, so only addresses that stay private pass: localhost and
// *.localhost, *.local, the tailnet, and the loopback, private and link-local ranges. Public addresses, other names, empty
// hosts and what is no host at all get ErrPlainText. A relay passes when its stored owner is the signed-in account;
// otherwise the error is ErrSignIn or ErrWrongAccount. Errors name the call and the address.
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

// Admit parts the candidates into those that may be dialled by the signed-in account, in their order, and those that may
// not, by Vet.
func Admit(candidates []Candidate, account string) (admitted []Candidate, refused []Refusal) {
	return Sift(candidates, func(c Candidate) error { return Vet(c, account) })
}

// Sift parts the candidates by a rule of the caller's own: vet gives nil for one that may be dialled, otherwise the reason.
func Sift(candidates []Candidate, vet func(Candidate) error) (admitted []Candidate, refused []Refusal) {
	for _, c := range candidates {
		if err := vet(c); err != nil {
			refused = append(refused, Refusal{Candidate: c, Err: err})
			continue
		}
		admitted = append(admitted, c)
	}
	return admitted, refused
}

// Requirement gives what the user has to do before a refused relay can be used: the first refused relay's error, which Vet
// makes ErrSignIn or ErrWrongAccount; nil when no relay was refused.
func Requirement(refused []Refusal) error {
	for _, r := range refused {
		if r.Candidate.Class() == Relay {
			return r.Err
		}
	}
	return nil
}

// private reports whether a host stays private. What ends a host in a URL has no place in it: "public.example/.local" has
// the ending of a private name, and "ws://" before it leads to public.example.
func private(h string) bool {
	if strings.ContainsFunc(h, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`/?#@\`, r)
	}) {
		return false
	}
	return h == "localhost" || strings.HasSuffix(h, ".localhost") || strings.HasSuffix(h, ".local") ||
		isTailnet(h) || inRanges(h, loopbackRanges) || inRanges(h, localLinkRanges)
}
