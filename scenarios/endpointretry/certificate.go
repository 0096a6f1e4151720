package endpointretry

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"
)

// certificate makes a self-signed certificate of "somebody.else.test", the same
// every time.
func certificate() tls.Certificate {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "somebody.else.test"},
		DNSNames:     []string{"somebody.else.test"},
		NotBefore:    time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		panic(err) // nothing in it depends on anything outside
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
