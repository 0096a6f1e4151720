package ca_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios/ca"
)

var date = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func authority(t *testing.T, seed uint64, now time.Time) *ca.Authority {
	t.Helper()
	a, err := ca.New(seed, now)
	require.NoError(t, err)
	return a
}

func leaf(t *testing.T, a *ca.Authority, names ...string) tls.Certificate {
	t.Helper()
	c, err := a.Leaf(names...)
	require.NoError(t, err)
	return c
}

// A certificate holds for its names, under its authority, in its time, and for
// nothing else.
func TestWhatALeafIsGoodFor(t *testing.T) {
	a := authority(t, 1, date)
	c := leaf(t, a, "p1", "p1.example", "10.0.0.1", "fd00::1")
	for _, tc := range []struct {
		name  string
		trust *ca.Authority
		host  string
		at    time.Time
		good  bool
	}{
		{"its common name", a, "p1", date, true},
		{"another of its names", a, "p1.example", date, true},
		{"its IPv4 address", a, "10.0.0.1", date, true},
		{"its IPv6 address", a, "fd00::1", date, true},
		{"a name it does not have", a, "p2", date, false},
		{"an address it does not have", a, "10.0.0.2", date, false},
		{"an authority of another seed", authority(t, 2, date), "p1", date, false},
		{"an hour before its date", a, "p1", date.Add(-time.Hour), true},
		{"more than an hour before", a, "p1", date.Add(-time.Hour - time.Second), false},
		{"the last second", a, "p1", date.Add(ca.Lifetime), true},
		{"after its lifetime", a, "p1", date.Add(ca.Lifetime + time.Second), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := c.Leaf.Verify(x509.VerifyOptions{
				DNSName: tc.host, Roots: tc.trust.Pool(), CurrentTime: tc.at,
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			})
			if tc.good {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
	_, err := c.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), CurrentTime: date, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.Error(t, err, "a server's certificate is no client's")
	require.False(t, c.Leaf.IsCA, "and signs nothing")
}

// The same seed and date give the same bytes; another seed, date or name gives
// others of the same length, so that handshakes have the same sizes.
func TestSameSeedSameBytes(t *testing.T) {
	first := leaf(t, authority(t, 1, date), "p1")
	require.Equal(t, first.Certificate, leaf(t, authority(t, 1, date), "p1").Certificate)
	require.Equal(t, first.PrivateKey, leaf(t, authority(t, 1, date.Add(time.Hour)), "p1").PrivateKey)
	local := date.Add(time.Nanosecond).In(time.FixedZone("elsewhere", 3600))
	require.Equal(t, first.Certificate, leaf(t, authority(t, 1, local), "p1").Certificate, "the zone and what is below a second do not matter")
	for what, other := range map[string]tls.Certificate{
		"seed": leaf(t, authority(t, 2, date), "p1"),
		"date": leaf(t, authority(t, 1, date.Add(time.Hour)), "p1"),
		"name": leaf(t, authority(t, 1, date), "p2"),
	} {
		require.NotEqual(t, first.Certificate, other.Certificate, what)
		require.Len(t, other.Certificate[0], len(first.Certificate[0]), what)
		require.Equal(t, 1, other.Leaf.SerialNumber.Sign())
	}
	require.NotEqual(t, first.Leaf.SerialNumber, leaf(t, authority(t, 1, date), "p2").Leaf.SerialNumber)
}

// A real handshake at the certificates' date succeeds with the authority's trust
// and fails without.
func TestHandshake(t *testing.T) {
	a := authority(t, 1, date)
	now := func() time.Time { return date.Add(time.Hour) }
	server := &tls.Config{Certificates: []tls.Certificate{leaf(t, a, "p1")}, Time: now}
	for _, tc := range []struct {
		name  string
		trust *ca.Authority
		at    func() time.Time
		good  bool
	}{
		{"its own", a, now, true},
		{"a stranger's", authority(t, 2, date), now, false},
		{"years later", a, func() time.Time { return date.AddDate(26, 0, 0) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			here, there := net.Pipe()
			served := make(chan error, 1)
			go func() { served <- tls.Server(there, server).Handshake(); there.Close() }()
			err := tls.Client(here, &tls.Config{RootCAs: tc.trust.Pool(), ServerName: "p1", Time: tc.at}).Handshake()
			here.Close()
			if !tc.good {
				var verification *tls.CertificateVerificationError
				require.ErrorAs(t, err, &verification)
				require.Error(t, <-served)
				return
			}
			require.NoError(t, err)
			require.NoError(t, <-served)
		})
	}
}

func TestALeafNeedsAName(t *testing.T) {
	_, err := authority(t, 1, date).Leaf()
	require.ErrorContains(t, err, "ca: Leaf: no name")
}

func ExampleAuthority_Leaf() {
	authority, err := ca.New(1, time.Now())
	if err != nil {
		panic(err)
	}
	cert, err := authority.Leaf("p1", "10.0.0.1")
	if err != nil {
		panic(err)
	}
	_ = &tls.Config{Certificates: []tls.Certificate{cert}}                               // the server's
	_ = &tls.Config{RootCAs: authority.Pool(), ServerName: cert.Leaf.Subject.CommonName} // its clients'
	// Output:
}
