package probe_test

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

const oneDay = 24 * time.Hour

// secured starts a chain node that presents pair.
func secured(t *testing.T, pair *probetest.Pair, change ...func(*tls.Config)) *probetest.Server {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{pair.TLS}}
	for _, f := range change {
		f(config)
	}
	return probetest.EVM(t, probetest.TLSWith(config))
}

// warningsOf returns the messages of the warnings of a class.
func warningsOf(r probe.Result, class probe.Class) []string {
	var messages []string
	for _, w := range r.Warnings {
		if w.Class == class {
			messages = append(messages, w.Message)
		}
	}
	return messages
}

// askWith probes a chain node with options.
func askWith(t *testing.T, url string, options probe.Options) probe.Result {
	t.Helper()
	return ask(t, probe.Target{Kind: probe.KindEVM, URL: url, Options: options})
}

func TestWhatIsWrongWithACertificate(t *testing.T) {
	root := probetest.NewAuthority(t, probetest.Certificate{CommonName: "Root of Tests"})
	ended := root.Intermediate(t, probetest.Certificate{CommonName: "Old Intermediate", NotAfter: time.Now().Add(-50 * time.Hour)})
	between := root.Intermediate(t, probetest.Certificate{CommonName: "Good Intermediate"})
	lonely := between.Issue(t, probetest.Certificate{})
	lonely.TLS.Certificate = lonely.TLS.Certificate[:1]
	tomorrow := time.Now().Add(oneDay)
	trusted := probe.TLS{CA: root.PEM()}
	many := []string{"a.example", "b.example", "c.example", "d.example", "e.example", "f.example", "10.0.0.1"}
	for name, tc := range map[string]struct {
		pair    *probetest.Pair
		options probe.TLS
		want    string
	}{
		"it has ended":            {root.Issue(t, probetest.Certificate{NotAfter: time.Now().Add(-73 * time.Hour)}), trusted, "the certificate expired 3 days ago, at 20"},
		"it has not begun":        {root.Issue(t, probetest.Certificate{NotBefore: tomorrow}), trusted, "the certificate is not valid before " + tomorrow.UTC().Format("2006-01-02 15:04")},
		"it is for other hosts":   {root.Issue(t, probetest.Certificate{Names: many[:2]}), trusted, "the certificate is for a.example, b.example, not for 127.0.0.1"},
		"it is for many hosts":    {root.Issue(t, probetest.Certificate{Names: many}), trusted, "for a.example, b.example, c.example, d.example, e.example and 2 more, not for"},
		"it is for nobody":        {root.Issue(t, probetest.Certificate{CommonName: "127.0.0.1", Names: []string{}}), trusted, `names no host (its common name "127.0.0.1" does not count)`},
		"it is self-signed":       {probetest.SelfSigned(t, probetest.Certificate{}), probe.TLS{}, "is self-signed: to trust it, give it as the CA (--ca)"},
		"its root is private":     {root.Issue(t, probetest.Certificate{}), probe.TLS{}, `an unknown authority, "Root of Tests": `},
		"it comes alone":          {lonely, trusted, `not signed by the given CA but by "Good Intermediate"`},
		"it comes alone, no CA":   {lonely, probe.TLS{}, "the server left out the certificates in between"},
		"another CA was given":    {probetest.SelfSigned(t, probetest.Certificate{}), trusted, "is self-signed"},
		"one in between is over":  {ended.Issue(t, probetest.Certificate{}), trusted, `the certificate of "Old Intermediate", which vouches for that of the server, expired 2 days ago`},
		"it is for a client only": {root.Issue(t, probetest.Certificate{Client: true}), trusted, "the certificate is not valid: certificate specifies an incompatible key usage"},
	} {
		t.Run(name, func(t *testing.T) {
			s := secured(t, tc.pair)
			r := askWith(t, s.URL, probe.Options{TLS: tc.options})
			check(t, r, want{verdict: probe.Down, step: "eth_blockNumber", class: probe.ClassTLS, message: tc.want, steps: "eth_blockNumber!tls"})
			if r.Facts.TLSExpiresAt == nil || !r.Facts.TLSExpiresAt.Equal(tc.pair.TLS.Leaf.NotAfter) {
				t.Errorf("it ends at %v, want %v", r.Facts.TLSExpiresAt, tc.pair.TLS.Leaf.NotAfter)
			}

			tc.options.Insecure = true
			r = askWith(t, s.URL, probe.Options{TLS: tc.options})
			got := warningsOf(r, probe.ClassTLSUnverified)
			if r.Verdict != probe.Up || len(got) != 1 || !strings.HasPrefix(got[0], "the certificate was not verified: ") || !strings.Contains(got[0], tc.want) {
				t.Errorf("insecure: %s %+v %q, want up and one warning with %q", r.Verdict, r.Failure, got, tc.want)
			}
		})
	}
}

func TestPrivateAuthority(t *testing.T) {
	root := probetest.NewAuthority(t, probetest.Certificate{})
	pair := root.Intermediate(t, probetest.Certificate{}).Issue(t, probetest.Certificate{})
	s := secured(t, pair)
	if r := askWith(t, s.URL, probe.Options{TLS: probe.TLS{CA: root.PEM()}}); r.Verdict != probe.Up || r.Warnings != nil {
		t.Errorf("%s %+v %v", r.Verdict, r.Failure, r.Warnings)
	}
	r := askWith(t, s.URL, probe.Options{TLS: probe.TLS{CA: root.PEM(), Insecure: true}})
	if got := warningsOf(r, probe.ClassTLSUnverified); len(got) != 1 || !strings.Contains(got[0], "would have passed") {
		t.Errorf("insecure without need: %q", got)
	}
	self := probetest.SelfSigned(t, probetest.Certificate{})
	if r := askWith(t, secured(t, self).URL, probe.Options{TLS: probe.TLS{CA: self.CertPEM}}); r.Verdict != probe.Up {
		t.Errorf("self-signed and known: %s %+v", r.Verdict, r.Failure)
	}
}

// A CA of the target stands in place of those that the prober trusts, not beside them.
func TestPrivateAuthorityReplacesOthers(t *testing.T) {
	known := probetest.NewAuthority(t, probetest.Certificate{})
	s := secured(t, known.Issue(t, probetest.Certificate{}))
	p := probe.Prober{Egress: probe.Egress{Any: true}, RootCAs: known.Pool()}
	target := probe.Target{Kind: probe.KindEVM, URL: s.URL}
	if r := p.Probe(t.Context(), target); r.Verdict != probe.Up {
		t.Errorf("%s %+v", r.Verdict, r.Failure)
	}
	target.Options.TLS.CA = probetest.NewAuthority(t, probetest.Certificate{}).PEM()
	if r := p.Probe(t.Context(), target); r.Failure == nil || r.Failure.Class != probe.ClassTLS {
		t.Errorf("with another CA: %s %+v", r.Verdict, r.Failure)
	}
}

func TestServerName(t *testing.T) {
	root := probetest.NewAuthority(t, probetest.Certificate{})
	asked := make(chan string, 10)
	s := secured(t, root.Issue(t, probetest.Certificate{Names: []string{"mcp.example.com"}}), func(c *tls.Config) {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			asked <- hello.ServerName
			return nil, nil
		}
	})
	r := askWith(t, s.URL, probe.Options{TLS: probe.TLS{CA: root.PEM(), ServerName: "mcp.example.com"}})
	if r.Verdict != probe.Up || r.Warnings != nil {
		t.Errorf("%s %+v %v", r.Verdict, r.Failure, r.Warnings)
	}
	if name := <-asked; name != "mcp.example.com" {
		t.Errorf("asked for %q", name)
	}
}

func TestCertificateExpiry(t *testing.T) {
	short := func(d time.Duration) time.Time { return time.Now().Add(d + time.Minute) }
	root := probetest.NewAuthority(t, probetest.Certificate{NotAfter: short(1000 * oneDay)})
	between := root.Intermediate(t, probetest.Certificate{CommonName: "Hasty", NotAfter: short(3 * oneDay)})
	for name, tc := range map[string]struct {
		pair   *probetest.Pair
		window time.Duration
		want   string
	}{
		"in good time":            {root.Issue(t, probetest.Certificate{NotAfter: short(15 * oneDay)}), 0, ""},
		"within two weeks":        {root.Issue(t, probetest.Certificate{NotAfter: short(9 * oneDay)}), 0, "the certificate ends in 9 days (" + short(9*oneDay).UTC().Format("2006-01-02") + ")"},
		"within hours":            {root.Issue(t, probetest.Certificate{NotAfter: short(20 * time.Hour)}), 0, "the certificate ends in 20 hours ("},
		"a shorter window":        {root.Issue(t, probetest.Certificate{NotAfter: short(9 * oneDay)}), 5 * oneDay, ""},
		"a longer window":         {root.Issue(t, probetest.Certificate{NotAfter: short(29 * oneDay)}), 30 * oneDay, "ends in 29 days"},
		"never":                   {root.Issue(t, probetest.Certificate{NotAfter: short(time.Hour)}), -1, ""},
		"the one above ends soon": {between.Issue(t, probetest.Certificate{}), 0, `the certificate of "Hasty", which vouches for that of the server, ends in 3 days`},
	} {
		t.Run(name, func(t *testing.T) {
			s := secured(t, tc.pair)
			for _, insecure := range []bool{false, true} {
				r := askWith(t, s.URL, probe.Options{TLS: probe.TLS{CA: root.PEM(), ExpiryWarning: tc.window, Insecure: insecure}})
				got := strings.Join(warningsOf(r, probe.ClassTLSExpiring), "; ")
				if r.Verdict != probe.Up || got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
					t.Errorf("insecure %t: %s %+v, warned %q, want %q", insecure, r.Verdict, r.Failure, got, tc.want)
				}
				if r.Facts.TLSExpiresAt == nil || !r.Facts.TLSExpiresAt.Equal(tc.pair.TLS.Leaf.NotAfter) {
					t.Errorf("it ends at %v, want %v", r.Facts.TLSExpiresAt, tc.pair.TLS.Leaf.NotAfter)
				}
			}
		})
	}
}

// A check that has to dial again says once what it thinks of the certificate.
func TestCertificateIsJudgedOncePerCheck(t *testing.T) {
	pair := probetest.SelfSigned(t, probetest.Certificate{NotAfter: time.Now().Add(oneDay)})
	config := &tls.Config{Certificates: []tls.Certificate{pair.TLS}}
	s := probetest.EVM(t, probetest.TLSWith(config), probetest.HeaderAt("", "Connection", "close"))
	r := askWith(t, s.URL, probe.Options{TLS: probe.TLS{Insecure: true}})
	if len(r.Warnings) != 2 || r.Steps[1].Phases.TLS == 0 {
		t.Errorf("warnings %+v; the second step %+v", r.Warnings, r.Steps[1])
	}
}

func TestClientCertificate(t *testing.T) {
	clients := probetest.NewAuthority(t, probetest.Certificate{CommonName: "Clients"})
	good := clients.Issue(t, probetest.Certificate{Client: true})
	stranger := probetest.SelfSigned(t, probetest.Certificate{Client: true})
	server := probetest.SelfSigned(t, probetest.Certificate{})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			s := secured(t, server, func(c *tls.Config) {
				c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, clients.Pool(), version
			})
			options := probe.TLS{CA: server.CertPEM, ClientCert: good.CertPEM, ClientKey: good.KeyPEM}
			if r := askWith(t, s.URL, probe.Options{TLS: options}); r.Verdict != probe.Up {
				t.Errorf("%s %+v", r.Verdict, r.Failure)
			}
			options.ClientCert, options.ClientKey = stranger.CertPEM, stranger.KeyPEM
			check(t, askWith(t, s.URL, probe.Options{TLS: options}), want{verdict: probe.Gated, step: "eth_blockNumber", class: probe.ClassCredentialRejected,
				message: "the server does not accept the client certificate: ", steps: "eth_blockNumber!credential_rejected"})

			none := want{verdict: probe.Gated, step: "eth_blockNumber", class: probe.ClassAuthRequired, message: "the server wants a client certificate",
				steps: "eth_blockNumber!auth_required"}
			if version == tls.VersionTLS12 { // which has no alert of its own for it
				none = want{verdict: probe.Down, step: "eth_blockNumber", class: probe.ClassTLS, message: "or wants a client certificate", steps: "eth_blockNumber!tls"}
			}
			check(t, askWith(t, s.URL, probe.Options{TLS: probe.TLS{CA: server.CertPEM}}), none)
		})
	}
}

func TestHandshakesThatFail(t *testing.T) {
	pair := probetest.SelfSigned(t, probetest.Certificate{})
	trusted := probe.TLS{CA: pair.CertPEM}
	old := secured(t, pair, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	other := secured(t, pair, func(c *tls.Config) { c.NextProtos = []string{"spdy/3"} })
	picky := secured(t, pair, func(c *tls.Config) {
		c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}
	})
	plain := probetest.EVM(t)
	for name, tc := range map[string]struct {
		url     string
		class   probe.Class
		message string
	}{
		"too old":               {old.URL, probe.ClassTLS, "the server speaks no TLS from version 1.2 on"},
		"no HTTP":               {other.URL, probe.ClassTLS, "the server speaks neither HTTP/1.1 nor HTTP/2"},
		"no cipher in common":   {picky.URL, probe.ClassTLS, "handshake failure; it shares no cipher with us"},
		"plain HTTP":            {strings.Replace(plain.URL, "http:", "https:", 1), probe.ClassTLS, "does not speak TLS on this port but plain HTTP: use http://"},
		"closes the connection": {"https://" + hangsUp(t, ""), probe.ClassTLS, "closed the connection during the handshake"},
		"something else":        {"https://" + hangsUp(t, "220 mail.example ESMTP\r\n"), probe.ClassTLS, "the server does not speak TLS on this port"},
		"TLS where plain HTTP is asked for": {"http://" + hangsUp(t, "\x15\x03\x01\x00\x02\x02\x46"), probe.ClassConnect,
			"the server speaks TLS on this port: use https://"},
	} {
		t.Run(name, func(t *testing.T) {
			r := askWith(t, tc.url, probe.Options{TLS: trusted})
			check(t, r, want{verdict: probe.Down, step: "eth_blockNumber", class: tc.class, message: tc.message, steps: "eth_blockNumber!" + string(tc.class)})
		})
	}
}

// hangsUp starts a server that writes the same to everybody and hangs up.
func hangsUp(t *testing.T, says string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed with the test
			}
			_, _ = conn.Read(make([]byte, 4096)) // whatever the client begins with
			_, _ = conn.Write([]byte(says))
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestTLSOptionsThatCannotBeUsed(t *testing.T) {
	authority := probetest.NewAuthority(t, probetest.Certificate{})
	one, two := authority.Issue(t, probetest.Certificate{Client: true}), authority.Issue(t, probetest.Certificate{Client: true})
	broken := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	badKey := "-----BEGIN PRIVATE KEY-----\nc2VjcmV0IGtleSBieXRlcw==\n-----END PRIVATE KEY-----\n"
	locked := "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
	for name, tc := range map[string]struct {
		options probe.TLS
		want    string // "field message"; empty when nothing is wrong
	}{
		"all of it":                   {probe.TLS{CA: one.CertPEM, ClientCert: one.CertPEM, ClientKey: one.KeyPEM, ServerName: "a-b.example", ExpiryWarning: oneDay}, ""},
		"an address as name":          {probe.TLS{ServerName: "::1"}, ""},
		"a CA that is no PEM":         {probe.TLS{CA: "hello"}, "tls.ca holds no certificate: paste PEM"},
		"a CA that cannot be read":    {probe.TLS{CA: one.CertPEM + broken}, "tls.ca holds a certificate that cannot be read: number 2"},
		"a key in place of a CA":      {probe.TLS{CA: one.KeyPEM}, "tls.ca holds a private key"},
		"a CA of other things":        {probe.TLS{CA: strings.ReplaceAll(one.CertPEM, "CERTIFICATE", "PUBLIC KEY")}, "tls.ca holds something else"},
		"a CA without end":            {probe.TLS{CA: strings.Repeat(one.CertPEM, 1000)}, "tls.ca is larger than"},
		"a URL as name":               {probe.TLS{ServerName: "https://a.example"}, "tls.server_name is not a host name"},
		"a name with a port":          {probe.TLS{ServerName: "a.example:443"}, "tls.server_name is not a host name"},
		"a certificate without key":   {probe.TLS{ClientCert: one.CertPEM}, "tls.client_key is required"},
		"a key without certificate":   {probe.TLS{ClientKey: one.KeyPEM}, "tls.client_cert is required"},
		"a key of another":            {probe.TLS{ClientCert: one.CertPEM, ClientKey: two.KeyPEM}, "tls.client_key does not belong to the client_cert"},
		"a key that is no PEM":        {probe.TLS{ClientCert: one.CertPEM, ClientKey: "secret key bytes"}, "tls.client_key holds no key"},
		"a key that cannot be read":   {probe.TLS{ClientCert: one.CertPEM, ClientKey: badKey}, "tls.client_key cannot be read"},
		"a key with a passphrase":     {probe.TLS{ClientCert: one.CertPEM, ClientKey: locked}, "tls.client_key is encrypted"},
		"a certificate that is a key": {probe.TLS{ClientCert: one.KeyPEM, ClientKey: one.KeyPEM}, "tls.client_cert holds a private key"},
		"a warning for ever":          {probe.TLS{ExpiryWarning: 1 << 62}, "tls.expiry_warning is longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			target := probe.Target{Kind: probe.KindEVM, URL: "https://x.example", Options: probe.Options{TLS: tc.options}}
			problems := target.Validate()
			var got []string
			for _, p := range problems {
				got = append(got, p.Field+" "+p.Message)
			}
			if tc.want == "" && got != nil || tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.want)) {
				t.Errorf("problems %q, want one that begins with %q", got, tc.want)
			}
			if text := strings.Join(got, " "); strings.Contains(text, "secret") || strings.Contains(text, "c2VjcmV0") {
				t.Errorf("a problem repeats a key: %s", text)
			}
			if tc.want == "" {
				return
			}
			r := ask(t, target)
			shown, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != probe.Unknown || slices.ContainsFunc(keyLines(tc.options.ClientKey), func(line string) bool { return strings.Contains(string(shown), line) }) {
				t.Errorf("probed: %s %s", r.Verdict, shown)
			}
		})
	}
}

// keyLines returns the lines of a key that are secret.
func keyLines(pem string) []string {
	return slices.DeleteFunc(strings.Split(pem, "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "-----") })
}
