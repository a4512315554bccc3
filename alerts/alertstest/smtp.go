package alertstest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// SMTP is a mail server on loopback that takes mails for everybody, keeps them, and misbehaves on request. It is safe for
// concurrent use.
type SMTP struct {
	t        testing.TB
	config   SMTPConfig
	listener net.Listener
	cert     tls.Certificate
	end      chan struct{} // closed when the test ends, for those who hang

	mu       sync.Mutex
	mails    []Mail
	greeted  int
	faults   map[Stage]SMTPFault
	refusals map[string]SMTPFault // by recipient
	more     chan struct{}        // closed and made again with every mail
}

// SMTPConfig says what an SMTP server asks of its clients. The zero value asks nothing.
type SMTPConfig struct {
	StartTLS bool   // it offers STARTTLS
	Implicit bool   // it speaks TLS from the first byte
	Username string // it lets nobody send who has not signed in with these
	Password string
}

// Mail is one that was accepted.
type Mail struct {
	From      string   // of the envelope
	To        []string // of the envelope
	Header    mail.Header
	Subject   string // decoded
	Text      string
	HTML      string
	Raw       string
	Encrypted bool   // it came over TLS
	User      string // who had signed in
}

// Stage is a point of the conversation at which a fault can be set.
type Stage string

// The stages, in their order.
const (
	StageHello    Stage = "hello"    // EHLO
	StageMail     Stage = "mail"     // MAIL FROM
	StageRcpt     Stage = "rcpt"     // RCPT TO, of every recipient
	StageData     Stage = "data"     // the mail was read and is not kept
	StageAccepted Stage = "accepted" // the mail is kept, and the client does not hear of it
)

// SMTPFault is what goes wrong: one of its members. The zero value ends a fault.
type SMTPFault struct {
	Code    int    // the answer
	Message string // with Code
	Close   bool   // the connection ends without an answer
	Hang    bool   // no answer comes
}

// NewSMTP starts a server that asks nothing of its clients and ends with the test.
func NewSMTP(t testing.TB) *SMTP { return NewSMTPWith(t, SMTPConfig{}) }

// NewSMTPWith starts a server that ends with the test.
func NewSMTPWith(t testing.TB, config SMTPConfig) *SMTP {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	s := &SMTP{
		t: t, config: config, listener: listener, cert: selfMade(t), end: make(chan struct{}),
		faults: map[Stage]SMTPFault{}, refusals: map[string]SMTPFault{}, more: make(chan struct{}),
	}
	server := smtp.NewServer(smtp.BackendFunc(s.session))
	server.Domain, server.AllowInsecureAuth, server.MaxMessageBytes = "localhost", true, 1<<20
	server.ErrorLog = log.New(io.Discard, "", 0) // connections that break off are what tests ask for
	secure := &tls.Config{Certificates: []tls.Certificate{s.cert}, MinVersion: tls.VersionTLS12}
	if config.StartTLS {
		server.TLSConfig = secure
	}
	if config.Implicit {
		listener = tls.NewListener(listener, secure)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		close(s.end)
		listener.Close() // which the server may not know of yet
		server.Close()
		if err := <-served; err != nil && !errors.Is(err, smtp.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("the mail server ended: %v", err)
		}
	})
	return s
}

// Host is where the server listens.
func (s *SMTP) Host() string { return "127.0.0.1" }

// Port is that of Host.
func (s *SMTP) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// URL is the server as --smtp takes it, with the credentials that it asks for.
func (s *SMTP) URL() string {
	scheme, user := "smtp", ""
	if s.config.Implicit {
		scheme = "smtps"
	}
	if s.config.Username != "" {
		user = s.config.Username + ":" + s.config.Password + "@"
	}
	return fmt.Sprintf("%s://%s%s", scheme, user, s.listener.Addr())
}

// TLSConfig is that of a client that trusts this server.
func (s *SMTP) TLSConfig() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(s.cert.Leaf)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// SetFault makes something go wrong in every conversation that reaches a stage, until the next SetFault of it.
func (s *SMTP) SetFault(at Stage, f SMTPFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[at] = f
}

// Refuse answers code to one recipient.
func (s *SMTP) Refuse(address string, code int, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals[address] = SMTPFault{Code: code, Message: message}
}

// Messages returns all mails that were accepted so far, in order.
func (s *SMTP) Messages() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Greeted counts the greetings of clients, whatever came of them. A client that encrypts greets twice.
func (s *SMTP) Greeted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeted
}

// WaitFor returns all mails as soon as there are n of them, and fails the test when there are not within timeout.
func (s *SMTP) WaitFor(n int, timeout time.Duration) []Mail {
	s.t.Helper()
	deadline := time.After(timeout)
	for {
		s.mu.Lock()
		more := s.more
		s.mu.Unlock()
		mails := s.Messages()
		if len(mails) >= n {
			return mails
		}
		select {
		case <-more:
		case <-deadline:
			s.t.Fatalf("the mail server has %d mails after %s, want %d", len(mails), timeout, n)
		}
	}
}

// fault does what is set for a stage, and returns the answer to give; nil when nothing is set.
func (s *SMTP) fault(conn *smtp.Conn, f SMTPFault) error {
	switch {
	case f.Hang:
		<-s.end
		return errBroken
	case f.Close:
		conn.Conn().Close()
		return errBroken
	case f.Code != 0:
		return answerWith(f.Code, f.Message)
	}
	return nil
}

var errBroken = errors.New("the connection is gone")

// answerWith returns an answer whose text, with an enhanced code or without, is the message.
func answerWith(code int, message string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: message}
}

func (s *SMTP) at(stage Stage) SMTPFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults[stage]
}

func (s *SMTP) session(conn *smtp.Conn) (smtp.Session, error) {
	s.mu.Lock()
	s.greeted++
	s.mu.Unlock()
	if err := s.fault(conn, s.at(StageHello)); err != nil {
		return nil, err
	}
	return &smtpSession{server: s, conn: conn}, nil
}

// smtpSession is one client's conversation.
type smtpSession struct {
	server *SMTP
	conn   *smtp.Conn
	user   string
	from   string
	to     []string
}

var _ smtp.AuthSession = (*smtpSession)(nil)

func (c *smtpSession) AuthMechanisms() []string {
	if c.server.config.Username == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (c *smtpSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != c.server.config.Username || password != c.server.config.Password {
			// As some servers do, it repeats what it was told.
			return answerWith(535, "5.7.8 wrong password "+password)
		}
		c.user = username
		return nil
	}), nil
}

func (c *smtpSession) Mail(from string, _ *smtp.MailOptions) error {
	if c.server.config.Username != "" && c.user == "" {
		return answerWith(530, "5.7.0 sign in first")
	}
	c.from = from
	return c.server.fault(c.conn, c.server.at(StageMail))
}

func (c *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.server.mu.Lock()
	refusal, refused := c.server.refusals[to]
	c.server.mu.Unlock()
	if !refused {
		refusal = c.server.at(StageRcpt)
	}
	if err := c.server.fault(c.conn, refusal); err != nil {
		return err
	}
	c.to = append(c.to, to)
	return nil
}

func (c *smtpSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := c.server.fault(c.conn, c.server.at(StageData)); err != nil {
		return err
	}
	m, err := parseMail(raw)
	if err != nil {
		return answerWith(554, "this is not a mail: "+err.Error())
	}
	_, m.Encrypted = c.conn.TLSConnectionState()
	m.From, m.To, m.User = c.from, c.to, c.user
	c.server.keep(m)
	return c.server.fault(c.conn, c.server.at(StageAccepted))
}

func (c *smtpSession) Reset() { c.from, c.to = "", nil }

func (c *smtpSession) Logout() error { return nil }

func (s *SMTP) keep(m Mail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, m)
	close(s.more)
	s.more = make(chan struct{})
}

// parseMail reads a mail with a part of text and one of HTML.
func parseMail(raw []byte) (Mail, error) {
	parsed, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return Mail{}, err
	}
	m := Mail{Header: parsed.Header, Raw: string(raw)}
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject")); err != nil {
		return Mail{}, err
	}
	kind, params, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil {
		return Mail{}, err
	}
	if kind != "multipart/alternative" {
		return Mail{}, fmt.Errorf("it is %s, not multipart/alternative", kind)
	}
	parts := multipart.NewReader(parsed.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return Mail{}, err
		}
		if err := m.add(part); err != nil {
			return Mail{}, err
		}
	}
}

func (m *Mail) add(part *multipart.Part) error {
	var body io.Reader = part
	if strings.EqualFold(part.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
		body = quotedprintable.NewReader(part)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	switch kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); kind {
	case "text/plain":
		m.Text = strings.ReplaceAll(string(text), "\r\n", "\n")
	case "text/html":
		m.HTML = strings.ReplaceAll(string(text), "\r\n", "\n")
	default:
		return fmt.Errorf("a part is %q", kind)
	}
	return nil
}

// selfMade returns a certificate for loopback that nobody has signed but itself.
func selfMade(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
