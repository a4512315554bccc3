package probe

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Bounds on what a target may say about TLS: a bundle of authorities may hold hundreds, a name is one of DNS.
const (
	maxPEM        = 256 << 10
	maxServerName = 253
	maxExpiryWarn = 10 * 365 * 24 * time.Hour
)

// set reports whether o changes anything about a connection.
func (o TLS) set() bool {
	o.ExpiryWarning = 0
	return o != TLS{}
}

// tlsConfig returns how a connection to host, made for a check of t, is secured. It is the caller's to change. The error
// is a *problem and names a mistake that Target.Validate finds too; it never repeats a key.
func (p *Prober) tlsConfig(t Target, host string) (*tls.Config, error) {
	o := t.Options.TLS
	roots, err := p.roots(o)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		RootCAs:            roots,
		ServerName:         cmp.Or(o.ServerName, host),
		InsecureSkipVerify: o.Insecure, //nolint:gosec // somebody said so, and every check repeats it: see noteTLS
		MinVersion:         tls.VersionTLS12,
	}
	if o.ClientCert != "" || o.ClientKey != "" {
		pair, err := tls.X509KeyPair([]byte(o.ClientCert), []byte(o.ClientKey))
		if err != nil {
			return nil, &problem{class: ClassProbeError, message: "the client certificate and its key cannot be used"}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// roots returns who may vouch for a server; nil means the system's.
func (p *Prober) roots(o TLS) (*x509.CertPool, error) {
	if o.CA == "" {
		return p.RootCAs, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(o.CA)) {
		return nil, &problem{class: ClassProbeError, message: "the CA file holds no certificate"}
	}
	return pool, nil
}

// problems returns everything that is wrong with o, in words that repeat nothing of a key.
func (o TLS) problems() []Problem {
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{"tls." + field, fmt.Sprintf(format, args...)})
	}
	if msg := certificatesProblem(o.CA); o.CA != "" && msg != "" {
		add("ca", "%s", msg)
	}
	if o.ServerName != "" && !serverName(o.ServerName) {
		add("server_name", "is not a host name: write it like mcp.example.com, without scheme or port")
	}
	if o.ExpiryWarning > maxExpiryWarn {
		add("expiry_warning", "is longer than ten years")
	}
	if field, msg := o.clientProblem(); msg != "" {
		add(field, "%s", msg)
	}
	return problems
}

// certificatesProblem says what is wrong with text that must hold certificates; empty when nothing is.
func certificatesProblem(text string) string {
	const how = "paste PEM, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----"
	if len(text) > maxPEM {
		return fmt.Sprintf("is larger than %d bytes", maxPEM)
	}
	found := 0
	for rest := []byte(text); ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil && found == 0:
			return "holds no certificate: " + how
		case block == nil:
			return ""
		case strings.Contains(block.Type, "PRIVATE KEY"):
			return "holds a private key, which does not belong there"
		case block.Type != "CERTIFICATE":
			return "holds something else than certificates: " + how
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Sprintf("holds a certificate that cannot be read: number %d", found+1)
		}
		found++
	}
}

// clientProblem says what is wrong with the client certificate and its key, and which of them it is.
func (o TLS) clientProblem() (field, message string) {
	const field1, field2 = "client_cert", "client_key"
	if o.ClientCert == "" && o.ClientKey == "" {
		return "", ""
	}
	if o.ClientCert == "" {
		return field1, "is required beside a client_key"
	}
	if msg := certificatesProblem(o.ClientCert); msg != "" {
		return field1, msg
	}
	if o.ClientKey == "" {
		return field2, "is required beside a client_cert"
	}
	if len(o.ClientKey) > maxPEM {
		return field2, fmt.Sprintf("is larger than %d bytes", maxPEM)
	}
	block, _ := pem.Decode([]byte(o.ClientKey))
	switch {
	case block == nil:
		return field2, "holds no key: paste PEM, from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----"
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return field2, "is encrypted with a passphrase, which a probe does not have: decrypt it first"
	}
	switch _, err := tls.X509KeyPair([]byte(o.ClientCert), []byte(o.ClientKey)); {
	case err == nil:
		return "", ""
	case strings.Contains(err.Error(), "does not match"):
		return field2, "does not belong to the client_cert"
	default: // the error may quote what it could not read
		return field2, "cannot be read: it must be an RSA, ECDSA or Ed25519 private key as PEM"
	}
}

// serverName reports whether s can be the name in a certificate: of DNS, or an address.
func serverName(s string) bool {
	if net.ParseIP(s) != nil {
		return true
	}
	if len(s) > maxServerName || strings.HasPrefix(s, ".") || strings.Contains(s, "..") {
		return false
	}
	return strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// verify judges the certificates that a server presented as the handshake of a verified connection would have.
func (p *Prober) verify(t Target, host string, presented []*x509.Certificate) ([][]*x509.Certificate, error) {
	if len(presented) == 0 {
		return nil, errors.New("no certificate")
	}
	o := t.Options.TLS
	roots, err := p.roots(o)
	if err != nil {
		return nil, err
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range presented[1:] {
		intermediates.AddCert(certificate)
	}
	return presented[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, DNSName: cmp.Or(o.ServerName, host),
	})
}
