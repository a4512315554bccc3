package alerts

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"regexp"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
	"golang.org/x/net/idna"

	"github.com/rollcallhq/rollcall/store"
)

// Email sends messages as mails through one SMTP server, which is a setting of this service: a channel has addresses only.
// A message is one mail to all of them, with its text and the same as HTML.
//
// An incident is one conversation: the Receipt's Ref is the Message-ID of its opening, which everything later refers to. Its
// subjects differ in the bracket alone, "[down] Weather" and "[recovered] Weather". Programs that go by subjects leave
// brackets at the beginning out (RFC 5256 §2.1), and whoever sees no more than the subject reads how it stands.
//
// The Message-ID is made of the notice's id: a mail that comes again after a crash is the same one, and mailboxes that
// look at that keep one of the two.
//
// Only addresses that the server refuses for good break a channel. That it does not let us in, or likes neither our
// address nor our words, is trouble of ours, goes for all channels, and passes once somebody mends the settings.
type Email struct{ config EmailConfig }

// EmailConfig says how mail leaves. Host and From are required.
type EmailConfig struct {
	Host     string
	Port     int    // zero: 465 with ImplicitTLS, else 587
	Username string // empty: without signing in
	Password string
	TLS      TLSMode

	From      netmail.Address // that mails come from, with a name or without
	HelloName string          // that we greet the server by; empty: the host of From

	// Dial connects to the server; nil: without a limit to where. It is the operator who chooses it, not a user.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLSConfig says whom to trust; nil: the system's authorities. Its ServerName is set to Host.
	TLSConfig *tls.Config
}

// TLSMode says how a connection to an SMTP server is encrypted. Where it is, the certificate is checked.
type TLSMode string

// The modes of encryption.
const (
	TLSAuto     TLSMode = ""         // STARTTLS where the server offers it; a password is never sent without
	TLSRequired TLSMode = "required" // STARTTLS, or no mail
	TLSNone     TLSMode = "none"     // in the clear
	TLSImplicit TLSMode = "implicit" // from the first byte
)

// NewEmail returns a sender that sends through config's server, with a connection for each mail.
func NewEmail(config EmailConfig) *Email {
	if config.Port == 0 {
		config.Port = 587
		if config.TLS == TLSImplicit {
			config.Port = 465
		}
	}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{}).DialContext
	}
	if config.HelloName == "" {
		config.HelloName = config.domain()
	}
	return &Email{config}
}

var _ Sender = (*Email)(nil)

// domain returns the host of From in ASCII.
func (c EmailConfig) domain() string {
	_, host, _ := strings.Cut(c.From.Address, "@")
	if ascii, err := idna.Lookup.ToASCII(host); err == nil && ascii != "" {
		return ascii
	}
	return "localhost"
}

// Send implements Sender. It passes over updates that tell of what somebody did, such as an acknowledgement: nobody wants a
// mail for that, and the page of the incident says it. When a server takes some of the addresses, the message counts as sent.
func (e *Email) Send(ctx context.Context, c store.Channel, ref string, m Message) (Receipt, error) {
	if m.isWordOfAnAct() {
		return Receipt{Ref: ref, Passed: true}, nil
	}
	to, err := store.Recipients(c.Settings["to"])
	if err != nil {
		return Receipt{}, &PermanentError{"the addresses are not a list of email addresses with commas between them"}
	}
	if !isMessageID(ref) {
		ref = ""
	}
	id := e.messageID(m)
	msg, err := e.compose(c, to, id, ref, m)
	if err != nil {
		return Receipt{}, err
	}
	if err := e.deliver(ctx, to, msg); err != nil {
		return Receipt{}, err
	}
	if ref == "" {
		ref = id
	}
	return Receipt{Ref: ref}, nil
}

func (e *Email) messageID(m Message) string {
	local := m.ID
	if !isWebhookID(local) { // what is good there is good here
		local = "msg_" + rand.Text()
	}
	return "<" + local + "@" + e.config.domain() + ">"
}

var isMessageID = regexp.MustCompile(`^<[\x21-\x3b\x3d\x3f-\x7e]{1,400}>$`).MatchString

// compose writes the mail.
func (e *Email) compose(c store.Channel, to []string, id, ref string, m Message) (*mail.Msg, error) {
	text, html, err := emailBodies(c, m)
	if err != nil {
		return nil, err
	}
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	from := e.config.From
	msg.FromMailAddress(&from)
	for _, address := range to {
		msg.AddToMailAddress(&netmail.Address{Address: address})
	}
	msg.Subject(emailSubject(m))
	msg.SetMessageIDWithValue(strings.Trim(id, "<>"))
	msg.SetDateWithValue(time.Now())
	if ref != "" && ref != id {
		msg.SetGenHeader(mail.HeaderInReplyTo, ref)
		msg.SetGenHeader(mail.HeaderReferences, ref)
	}
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: nobody's absence is to be answered
	msg.SetGenHeader("List-Id", "Rollcall <rollcall."+e.config.domain()+">")
	if isUnsubscribe(m.Unsubscribe) {
		msg.SetGenHeader(mail.HeaderListUnsubscribe, "<"+m.Unsubscribe+">")
		msg.SetGenHeader(mail.HeaderListUnsubscribePost, "List-Unsubscribe=One-Click")
	}
	msg.SetBodyString(mail.TypeTextPlain, text)
	msg.AddAlternativeString(mail.TypeTextHTML, html)
	return msg, nil
}

// isUnsubscribe reports whether an address can stand between the angle brackets of a header; a line has at most 998 bytes.
var isUnsubscribe = regexp.MustCompile(`^https?://[\x21-\x3b\x3d\x3f-\x7e]{1,800}$`).MatchString

// emailSubject returns a line that says how it stands, and of what.
func emailSubject(m Message) string {
	state, what := m.State, cmp.Or(m.About, m.Title)
	switch m.Kind {
	case KindReminder:
		state = "still " + state
	case KindFlapping, KindDigest, KindTest:
		state = string(m.Kind)
	case KindCalmed:
		state = "calmed, " + state // which may be down all the same
	}
	if state != "" {
		what = "[" + state + "] " + what
	}
	// A text that looks like an encoded word (RFC 2047) would be shown as what it decodes to.
	return strings.ReplaceAll(oneLine(what, maxLine), "=?", "= ?")
}

// smtpPatience is how long one mail may take where the caller has no deadline.
const smtpPatience = time.Minute

// deliver hands the mail over in a connection of its own.
func (e *Email) deliver(ctx context.Context, to []string, msg *mail.Msg) error {
	ctx, cancel := context.WithTimeoutCause(ctx, smtpPatience, fmt.Errorf("no answer within %s: %w", smtpPatience, context.DeadlineExceeded))
	defer cancel()
	err := e.converse(ctx, to, msg)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the mail server %w: %w", errUnreachable, context.Cause(ctx))
	}
	return err
}

func (e *Email) converse(ctx context.Context, to []string, msg *mail.Msg) error {
	conn, err := e.connect(ctx)
	if err != nil {
		return fmt.Errorf("the mail server %w: %w", errUnreachable, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // the library reads without a context
	defer stop()

	client, err := e.open(conn)
	if err != nil {
		return err
	}
	if err := e.hand(client, to, msg); err != nil {
		return err
	}
	_ = client.Quit() // the mail is on its way, however the connection ends
	return nil
}

// connect dials, and does the handshake where TLS comes first.
func (e *Email) connect(ctx context.Context) (net.Conn, error) {
	conn, err := e.config.Dial(ctx, "tcp", net.JoinHostPort(e.config.Host, fmt.Sprint(e.config.Port)))
	if err != nil {
		return nil, err
	}
	conn = &boundedConn{Conn: conn, left: maxSMTPAnswers}
	if e.config.TLS != TLSImplicit {
		return conn, nil
	}
	secure := tls.Client(conn, e.tlsConfig())
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

func (e *Email) tlsConfig() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.config.TLSConfig != nil {
		config = e.config.TLSConfig.Clone()
	}
	config.ServerName = e.config.Host
	return config
}

// maxSMTPAnswers bounds what a server may say in one connection, certificates included.
const maxSMTPAnswers = 1 << 20

// boundedConn is a connection that ends when the other side has said too much: the library reads an answer to its last line.
type boundedConn struct {
	net.Conn
	left int
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the server says too much")
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// open greets the server, encrypts, and signs in.
func (e *Email) open(conn net.Conn) (*smtp.Client, error) {
	client, err := smtp.NewClient(conn, e.config.Host)
	if err != nil {
		return nil, e.smtpError("our connection", err)
	}
	client.SkipSMTPUTF8(true) // it is asked for where an address needs it: not every server on the way knows it
	if err := client.Hello(e.config.HelloName); err != nil {
		return nil, e.smtpError("our greeting", err)
	}
	if err := e.encrypt(client); err != nil {
		return nil, err
	}
	return client, e.signIn(client)
}

func (e *Email) encrypt(client *smtp.Client) error {
	if e.config.TLS == TLSNone || e.config.TLS == TLSImplicit {
		return nil
	}
	switch offered, _ := client.Extension("STARTTLS"); {
	case offered:
		return e.smtpError("STARTTLS", client.StartTLS(e.tlsConfig()))
	case e.config.TLS == TLSRequired:
		return errors.New("the mail server offers no encryption (STARTTLS), which is required")
	}
	return nil
}

// signIn chooses a way that the server offers. Without encryption that is one in which the password is not sent.
func (e *Email) signIn(client *smtp.Client) error {
	user, password, host := e.config.Username, e.config.Password, e.config.Host
	if user == "" {
		return nil
	}
	_, offered := client.Extension("AUTH")
	ways := strings.Fields(strings.ToUpper(offered))
	_, encrypted := client.TLSConnectionState()
	var auth smtp.Auth
	for _, way := range ways {
		switch {
		case way == "PLAIN" && (encrypted || isLoopback(host)):
			auth = smtp.PlainAuth("", user, password, host, true)
		case way == "LOGIN" && (encrypted || isLoopback(host)) && auth == nil:
			auth = smtp.LoginAuth(user, password, host, true)
		}
	}
	for _, way := range ways {
		switch {
		case auth != nil:
		case way == "SCRAM-SHA-256":
			auth = smtp.ScramSHA256Auth(user, password)
		case way == "CRAM-MD5":
			auth = smtp.CRAMMD5Auth(user, password)
		}
	}
	switch {
	case len(ways) == 0 && !encrypted:
		return errors.New("the mail server lets nobody sign in without encryption: see starttls")
	case auth == nil && !encrypted:
		return errors.New("the mail server offers no encryption, and the password is not sent without")
	case auth == nil:
		return errors.New("the mail server offers no way to sign in that we know: PLAIN, LOGIN, SCRAM-SHA-256 or CRAM-MD5")
	}
	if err := client.Auth(auth); err != nil {
		return e.authError(err)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// authError words a refusal without the server's words: they may repeat what was sent.
func (e *Email) authError(err error) error {
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("the mail server does not let us in: it answered %d to user name and password", answer.Code)
	}
	return fmt.Errorf("the mail server %w: it broke off while we signed in", errUnreachable)
}

// hand gives the server the mail, and returns nil once it has taken it for at least one address.
func (e *Email) hand(client *smtp.Client, to []string, msg *mail.Msg) error {
	for _, address := range append([]string{e.config.From.Address}, to...) {
		if !isASCII(address) {
			client.SkipSMTPUTF8(false)
		}
	}
	if err := client.Mail("<" + e.config.From.Address + ">"); err != nil {
		return e.smtpError("the sender "+e.config.From.Address, err)
	}
	var refusals []error
	for _, address := range to {
		if err := client.Rcpt("<" + address + ">"); err != nil {
			if _, ok := errors.AsType[*textproto.Error](err); !ok {
				return e.smtpError("the recipients", err)
			}
			refusals = append(refusals, err)
		}
	}
	if len(refusals) == len(to) {
		return e.refusedBy(refusals)
	}
	w, err := client.Data()
	if err != nil {
		return e.smtpError("the mail", err)
	}
	if _, err := msg.WriteTo(w); err != nil {
		return e.smtpError("the mail", err)
	}
	return e.smtpError("the mail", w.Close())
}

// refusedBy returns the error of a mail that no address was accepted for: permanent when there is none for which it may
// pass.
func (e *Email) refusedBy(refusals []error) error {
	for _, err := range refusals {
		if !isHardBounce(err) {
			return e.smtpError("the recipients", err)
		}
	}
	return &PermanentError{e.smtpError("the recipients", refusals[0]).Error()}
}

// isHardBounce reports whether an answer to RCPT says that there is no such mailbox: a code of 5xx, unless it goes for
// something else than the address. Those are a sender who has to sign in (530), commands and their sequence (50x), and of
// the enhanced codes (RFC 3463) a full mailbox (5.2.2), the system (5.3), the protocol (5.5) and policy, most of all
// forbidden relaying (5.7).
func isHardBounce(err error) bool {
	answer, ok := errors.AsType[*textproto.Error](err)
	if !ok || answer.Code < 510 || answer.Code > 599 || answer.Code == 530 {
		return false
	}
	for _, about := range []string{"5.2.2", "5.3.", "5.5.", "5.7."} {
		if strings.HasPrefix(answer.Msg, about) {
			return false
		}
	}
	return true
}

// smtpError words an error of the conversation; nil stays nil. The server's own words are in it, since they name what is to
// be mended: it is the operator's server and not a stranger's. The password is cut out all the same.
func (e *Email) smtpError(about string, err error) error {
	if err == nil {
		return nil
	}
	answer, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		return fmt.Errorf("the mail server %w: %w", errUnreachable, err)
	}
	said := answer.Msg
	if e.config.Password != "" {
		said = strings.ReplaceAll(said, e.config.Password, "…")
	}
	return fmt.Errorf("the mail server answered %d to %s: %s", answer.Code, about, oneLine(said, maxLine))
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0
}
