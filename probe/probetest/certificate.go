package probetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"
)

// tlsMode says what kind of certificate a server presents.
type tlsMode int

const (
	tlsNone tlsMode = iota
	tlsGood
	tlsExpired
)

type certificate struct {
	pair tls.Certificate
	pool *x509.CertPool
}

// newCertificate makes a self-signed certificate for 127.0.0.1 and localhost: valid for thirty days, or expired
// yesterday.
func newCertificate(t testing.TB, mode tlsMode) *certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("probetest: make a key: %v", err)
	}
	const day = 24 * time.Hour
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "probetest"},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-30 * day),
		NotAfter:     time.Now().Add(30 * day),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if mode == tlsExpired {
		template.NotAfter = time.Now().Add(-day)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("probetest: sign a certificate: %v", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("probetest: read back a certificate: %v", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool}
}
