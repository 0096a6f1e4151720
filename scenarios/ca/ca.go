// Package ca mints certificates for a world whose date is not today's.
//
// An authority's keys come from a seed, and everything it signs is Ed25519, so the same seed and date give the same bytes,
// and handshakes have the same sizes each time.
//
//	authority, err := ca.New(seed, time.Now()) // the bubble's date
//	cert, err := authority.Leaf("p1")
//	server := &tls.Config{Certificates: []tls.Certificate{cert}}
//	client := &tls.Config{RootCAs: authority.Pool(), Time: time.Now}
package ca

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Lifetime is how long certificates are valid, from an hour before the date they are minted for.
const Lifetime = 365 * 24 * time.Hour

// Authority signs the certificates of one world. It is immutable and may be shared, between bubbles too.
type Authority struct {
	seed uint64
	now  time.Time
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

// New makes an authority whose certificates are valid around now.
func New(seed uint64, now time.Time) (*Authority, error) {
	a := &Authority{seed: seed, now: now.UTC().Truncate(time.Second), key: key(seed, "authority")}
	template := &x509.Certificate{
		SerialNumber:          serial("authority"),
		Subject:               pkix.Name{CommonName: "deadair test authority"},
		NotBefore:             a.now.Add(-time.Hour),
		NotAfter:              a.now.Add(Lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(nil, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("ca: New: %w", err)
	}
	a.cert, err = x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("ca: New: %w", err)
	}
	return a, nil
}

// Leaf makes a certificate for a server with the given names and addresses. The first one is its common name.
func (a *Authority) Leaf(names ...string) (tls.Certificate, error) {
	if len(names) == 0 {
		return tls.Certificate{}, fmt.Errorf("ca: Leaf: no name")
	}
	own := key(a.seed, names[0])
	template := &x509.Certificate{
		SerialNumber: serial(names[0]),
		Subject:      pkix.Name{CommonName: names[0]},
		NotBefore:    a.now.Add(-time.Hour),
		NotAfter:     a.now.Add(Lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(nil, template, a.cert, own.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("ca: Leaf %q: %w", names[0], err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("ca: Leaf %q: %w", names[0], err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own, Leaf: leaf}, nil
}

// Pool is the trust in this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func key(seed uint64, name string) ed25519.PrivateKey {
	sum := sha256.Sum256(fmt.Appendf(binary.BigEndian.AppendUint64(nil, seed), "ca key %s", name))
	return ed25519.NewKeyFromSeed(sum[:])
}

// serial is a positive number of 8 bytes whose size on the wire is always the same.
func serial(name string) *big.Int {
	sum := sha256.Sum256([]byte("ca serial " + name))
	return new(big.Int).SetUint64(binary.BigEndian.Uint64(sum[:8])&^(3<<62) | 1<<62)
}
