package probetest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
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
	tlsGiven // by TLSWith
)

const aDay = 24 * time.Hour

// Certificate says what a certificate is to say.
type Certificate struct {
	CommonName string
	Names      []string  // DNS names and addresses; nil means 127.0.0.1 and localhost, empty means none
	NotBefore  time.Time // zero: thirty days ago
	NotAfter   time.Time // zero: in thirty days
	Client     bool      // for clients in place of servers
}

// Pair is a certificate with its key.
type Pair struct {
	TLS     tls.Certificate // Leaf is set; those in between follow the certificate itself
	CertPEM string          // with those in between
	KeyPEM  string
}

// Pool returns a pool that trusts the certificate itself.
func (p *Pair) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(p.TLS.Leaf)
	return pool
}

// SelfSigned makes a certificate that vouches for itself.
func SelfSigned(t testing.TB, c Certificate) *Pair {
	t.Helper()
	return newPair(t, c.template(), nil, nil)
}

// Authority is a certificate authority of a test's own.
type Authority struct {
	pair  *Pair
	above [][]byte // what stands between it and the root, itself first; empty for a root
}

// NewAuthority makes a root authority.
func NewAuthority(t testing.TB, c Certificate) *Authority {
	t.Helper()
	return &Authority{pair: newPair(t, c.authority(), nil, nil)}
}

// Intermediate makes an authority that a vouches for.
func (a *Authority) Intermediate(t testing.TB, c Certificate) *Authority {
	t.Helper()
	pair := newPair(t, c.authority(), a.pair, nil)
	return &Authority{pair, append([][]byte{pair.TLS.Leaf.Raw}, a.above...)}
}

// Issue makes a certificate that a vouches for. It comes with the certificates between it and the root.
func (a *Authority) Issue(t testing.TB, c Certificate) *Pair {
	t.Helper()
	return newPair(t, c.template(), a.pair, a.above)
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() string { return a.pair.CertPEM }

// Pool returns a pool that trusts the authority.
func (a *Authority) Pool() *x509.CertPool { return a.pair.Pool() }

func (c Certificate) template() *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: cmp.Or(c.CommonName, "probetest")},
		NotBefore:    c.NotBefore,
		NotAfter:     c.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if c.Client {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	if c.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-30 * aDay)
	}
	if c.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(30 * aDay)
	}
	names := c.Names
	if names == nil {
		names = []string{"localhost", "127.0.0.1"}
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return template
}

func (c Certificate) authority() *x509.Certificate {
	template := c.template()
	template.DNSNames, template.IPAddresses, template.ExtKeyUsage = nil, nil, nil
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	return template
}

// newPair makes a key and a certificate for it, signed by issuer or, when that is nil, by itself.
func newPair(t testing.TB, template *x509.Certificate, issuer *Pair, above [][]byte) *Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("probetest: make a key: %v", err)
	}
	parent, signer := template, any(key)
	if issuer != nil {
		parent, signer = issuer.TLS.Leaf, issuer.TLS.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatalf("probetest: sign a certificate: %v", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("probetest: read back a certificate: %v", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("probetest: write a key: %v", err)
	}
	chain := append([][]byte{der}, above...)
	p := &Pair{TLS: tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}}
	for _, c := range chain {
		p.CertPEM += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c}))
	}
	p.KeyPEM = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	return p
}

// certificate is what a server presents, and who trusts it.
type certificate struct {
	pair tls.Certificate
	pool *x509.CertPool
}

// newCertificate makes a self-signed certificate: valid for thirty days, or expired yesterday.
func newCertificate(t testing.TB, mode tlsMode) *certificate {
	t.Helper()
	var c Certificate
	if mode == tlsExpired {
		c.NotAfter = time.Now().Add(-aDay)
	}
	p := SelfSigned(t, c)
	return &certificate{p.TLS, p.Pool()}
}
