package probe

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
		// In place of Certificates, which is left out when the server's list of authorities does not name its issuer.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
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

// noteTLS judges the certificate of a connection: until when it holds, and, where any certificate will do, what is wrong
// with it.
func (c *conversation) noteTLS(step string, h *handshake) {
	if len(h.presented) == 0 {
		return
	}
	expiry := h.presented[0].NotAfter
	c.result.Facts.TLSExpiresAt = &expiry
	if h.failed || c.notedTLS {
		return
	}
	c.notedTLS = true
	chains := h.chains
	if c.target.Options.TLS.Insecure {
		var err error
		if chains, err = c.prober.verify(c.target, c.url.Hostname(), h.presented); err != nil {
			c.warn(step, ClassTLSUnverified, 0, "the certificate was not verified: %s", c.certificateWords(err, h.presented))
		} else {
			c.warn(step, ClassTLSUnverified, 0, "the certificate was not verified, although it would have passed: leave out insecure")
		}
	}
	c.warnExpiry(step, h.presented[0], chains)
}

// warnExpiry warns of a certificate that ends soon: the server's own, or one between it and who vouches for it.
func (c *conversation) warnExpiry(step string, leaf *x509.Certificate, chains [][]*x509.Certificate) {
	window := cmp.Or(c.target.Options.TLS.ExpiryWarning, DefaultExpiryWarning)
	first := leaf
	if best := lastingChain(chains); best != nil && best.NotAfter.Before(leaf.NotAfter) {
		first = best
	}
	left := first.NotAfter.Sub(c.started)
	if window < 0 || left > window || left <= 0 {
		return
	}
	what := "the certificate"
	if first != leaf {
		what = "the certificate of " + authorityName(first) + ", which vouches for that of the server,"
	}
	c.warn(step, ClassTLSExpiring, 0, "%s ends in %s (%s)", what, span(left), day(first.NotAfter))
}

// lastingChain returns the certificate that ends first in the chain that lasts longest; nil when there is no chain.
func lastingChain(chains [][]*x509.Certificate) *x509.Certificate {
	sooner := func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }
	var longest *x509.Certificate
	for _, chain := range chains {
		if first := slices.MinFunc(chain, sooner); longest == nil || sooner(first, longest) > 0 {
			longest = first
		}
	}
	return longest
}

// authorityName names the owner of a certificate as a reader would look for it.
func authorityName(c *x509.Certificate) string { return nameOf(c.Subject) }

func nameOf(n pkix.Name) string {
	name := n.CommonName
	if name == "" && len(n.Organization) > 0 {
		name = n.Organization[0]
	}
	return strconv.Quote(tidy(name, 80))
}

// day writes a time as a date. Nobody plans by the minute for the end of a certificate or a token.
func day(t time.Time) string { return t.UTC().Format("2006-01-02") }

// span says a length of time in the unit that matters: "9 days", "20 hours", "5 minutes".
func span(d time.Duration) string {
	count := func(n int64, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	switch {
	case d >= 48*time.Hour:
		return count(int64(d/(24*time.Hour)), "day")
	case d >= 2*time.Hour:
		return count(int64(d/time.Hour), "hour")
	default:
		return count(int64(d/time.Minute), "minute")
	}
}

// explainTLS turns an error of a handshake, or an alert that came after it, into a problem.
func (c *conversation) explainTLS(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if _, ok := errors.AsType[x509.SystemRootsError](err); ok {
		return &problem{class: ClassProbeError, message: "this machine has no root certificates"}
	}
	if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &problem{class: ClassTLS, message: c.certificateWords(refused.Err, refused.UnverifiedCertificates)}
	}
	text := netWords(err)
	if _, alert, ok := strings.Cut(err.Error(), "remote error: tls: "); ok {
		return c.explainAlert(alert)
	}
	record, isRecord := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case isRecord && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP/"):
		text = "the server does not speak TLS on this port but plain HTTP: use http://"
	case isRecord:
		text = "the server does not speak TLS on this port"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		text = "the server closed the connection during the handshake"
	case strings.Contains(text, "unsupported protocol version"):
		text = "the server speaks no TLS from version 1.2 on"
	case strings.Contains(text, "unadvertised ALPN") || strings.Contains(text, "ALPN protocol"):
		return c.noProtocol()
	default:
		text = "handshake failed: " + strings.TrimPrefix(text, "tls: ")
	}
	return &problem{class: ClassTLS, message: text}
}

// noProtocol explains a server that shares no version of HTTP with us.
func (c *conversation) noProtocol() *problem {
	switch c.target.Options.HTTP {
	case HTTP2:
		return &problem{class: ClassConnect, message: noHTTP2}
	case HTTP1:
		return &problem{class: ClassConnect, message: "the server does not speak HTTP/1.1, which this endpoint is set to"}
	default:
		return &problem{class: ClassTLS, message: "the server speaks neither HTTP/1.1 nor HTTP/2 (no application protocol)"}
	}
}

// explainAlert explains an alert (RFC 8446 §6.2) that the server sent. One about a certificate is about ours.
func (c *conversation) explainAlert(alert string) *problem {
	shown := c.target.Options.TLS.ClientCert != ""
	ours := strings.Contains(alert, "certificate") || alert == "access denied"
	message := "the server refused the handshake: " + alert
	switch {
	case ours && shown:
		return &problem{class: ClassCredentialRejected, message: "the server does not accept the client certificate: " + alert}
	case alert == "certificate required":
		return &problem{class: ClassAuthRequired, message: "the server wants a client certificate"}
	case ours:
		message += "; it may want a client certificate"
	case alert == "handshake failure" && !shown:
		message += "; it shares no cipher with us, or wants a client certificate"
	case alert == "protocol version not supported":
		message = "the server speaks no TLS from version 1.2 on"
	case alert == "unrecognized name":
		message = "the server does not know the name it was asked for (SNI): server_name sets another"
	case alert == "no application protocol":
		return c.noProtocol()
	}
	return &problem{class: ClassTLS, message: message}
}

// certificateWords says why presented cannot be trusted.
func (c *conversation) certificateWords(err error, presented []*x509.Certificate) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return c.invalidWords(invalid, presented)
	}
	if host, ok := errors.AsType[x509.HostnameError](err); ok {
		return hostnameWords(host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok && len(presented) > 0 {
		return c.authorityWords(presented)
	}
	return "the certificate is not valid: " + strings.TrimPrefix(err.Error(), "x509: ")
}

func (c *conversation) invalidWords(invalid x509.CertificateInvalidError, presented []*x509.Certificate) string {
	if invalid.Reason != x509.Expired || invalid.Cert == nil {
		return "the certificate is not valid: " + strings.TrimPrefix(invalid.Error(), "x509: ")
	}
	what := "the certificate"
	if len(presented) > 0 && !invalid.Cert.Equal(presented[0]) {
		what = "the certificate of " + authorityName(invalid.Cert) + ", which vouches for that of the server,"
	}
	return what + " " + c.datesWords(invalid.Cert)
}

// datesWords says how a certificate misses the present.
func (c *conversation) datesWords(cert *x509.Certificate) string {
	const minute = "2006-01-02 15:04 MST"
	if c.started.Before(cert.NotBefore) {
		return "is not valid before " + cert.NotBefore.UTC().Format(minute)
	}
	return fmt.Sprintf("expired %s ago, at %s", span(c.started.Sub(cert.NotAfter)), cert.NotAfter.UTC().Format(minute))
}

// maxNames bounds how many of the names in a certificate are told.
const maxNames = 5

func hostnameWords(err x509.HostnameError) string {
	names := slices.Clone(err.Certificate.DNSNames)
	for _, ip := range err.Certificate.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return fmt.Sprintf("the certificate names no host (its common name %s does not count) and is not for %s",
			nameOf(err.Certificate.Subject), err.Host)
	}
	more := ""
	if n := len(names) - maxNames; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	for i := range names[:min(len(names), maxNames)] {
		names[i] = tidy(names[i], 80)
	}
	return fmt.Sprintf("the certificate is for %s%s, not for %s", strings.Join(names[:min(len(names), maxNames)], ", "), more, err.Host)
}

// authorityWords says who signed certificates that nobody known vouches for, and what to do about it.
func (c *conversation) authorityWords(presented []*x509.Certificate) string {
	leaf := presented[0]
	for _, between := range presented[1:] { // one that has ended is passed over and never named by the verification
		if c.started.After(between.NotAfter) || c.started.Before(between.NotBefore) {
			return "the certificate of " + authorityName(between) + ", which vouches for that of the server, " + c.datesWords(between)
		}
	}
	issuer := nameOf(presented[len(presented)-1].Issuer)
	switch {
	case bytes.Equal(leaf.RawSubject, leaf.RawIssuer):
		return "the certificate is self-signed: to trust it, give it as the CA (--ca)"
	case c.target.Options.TLS.CA != "":
		return "the certificate is not signed by the given CA but by " + issuer
	case len(presented) == 1:
		return "the certificate is signed by an unknown authority, " + issuer +
			": the server left out the certificates in between, or the authority is a private one, to be given as the CA (--ca)"
	default:
		return "the certificate is signed by an unknown authority, " + issuer + ": a private one is to be given as the CA (--ca)"
	}
}
