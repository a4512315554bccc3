package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/store"
)

func mailConfig(s *alertstest.SMTP) alerts.EmailConfig {
	return alerts.EmailConfig{
		Host: s.Host(), Port: s.Port(), TLSConfig: s.TLSConfig(),
		From: netmail.Address{Name: "Röllcall", Address: "alerts@rollcall.example"},
	}
}

func mailChannel(to string) store.Channel {
	return store.Channel{ID: "ch_4", Name: "ops", Type: store.ChannelEmail, Settings: map[string]string{"to": to}}
}

// TestASubjectHasOneShapeForWhateverAnIncidentIsAbout holds the subjects of all sayings about incidents: how it stands in brackets, then a
// name that stays the same from the opening to the end.
func TestASubjectHasOneShapeForWhateverAnIncidentIsAbout(t *testing.T) {
	want := map[string]string{
		"opened": "[down] Weather", "opened late": "[recovered] Weather", "opened degraded": "[degraded] Weather", "opened unknown": "[unknown] Weather",
		"credential rejected": "[gated] Weather", "another cause": "[down] Weather", "reminder": "[still down] Weather", "resolved": "[recovered] Weather",
		"resolved by a pause": "[paused] Weather", "resolved by hand": "[over] Weather", "reopened": "[down] Weather",
		"certificate expiring": "[expiring] Weather", "certificate renewed": "[renewed] Weather", "credential expiring": "[expiring] Weather",
		"chain lag": "[down] geth-3", "chain halted": "[halted] Ethereum (evm 1)", "chain still halted": "[still halted] Ethereum (evm 1)",
		"chain moves again":        "[moving again] Ethereum (evm 1)",
		"location without network": "[offline] Location fra", "location with network again": "[online] Location fra",
		"location offline": "[offline] Location fra", "location online again": "[online] Location fra",
		"objective burning": "[burning budget] Weather: availability", "objective no longer burning": "[no longer burning budget] Weather: availability",
		"manual opened": "[degraded] Slow answers in Europe", "manual over": "[over] Slow answers in Europe",
		"digest": "[digest] 21 endpoints down, 6 degraded, 3 over", "digest of the end": "[digest] 3 endpoints have recovered",
		"digest of several kinds":   "[digest] 4 incidents: 1 down, 1 halted, 1 expiring, 1 over",
		"public opened turned away": "[restricted] Weather", "public resolved": "[recovered] Weather", "public digest": "[digest] 2 incidents: 1 down, 1 degraded",
		"question": "Confirm your subscription",
	}
	for _, s := range sayings(t) {
		if subject, ok := want[s.name]; ok {
			if got, _, _ := asMailGetsIt(t, s.message); got != subject {
				t.Errorf("%s: subject %q, want %q", s.name, got, subject)
			}
			delete(want, s.name)
		}
	}
	if len(want) > 0 {
		t.Errorf("nobody says %v", want)
	}
}

// asMailGetsIt returns the subject and the two parts of a message as they came over the wire.
func asMailGetsIt(t *testing.T, m alerts.Message) (subject, text, html string) {
	t.Helper()
	server := alertstest.NewSMTP(t)
	if _, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), mailChannel("ops@example.com"), "", m); err != nil {
		t.Fatal(err)
	}
	got := server.Messages()[0]
	return got.Subject, got.Text, got.HTML
}

func incidentMail(kind alerts.Kind, id string) alerts.Message {
	m := everything(kind)
	m.ID, m.Unsubscribe, m.Act, m.Acted = id, "", "", false
	return m
}

func TestAMailGoesToAllAddressesOfItsChannel(t *testing.T) {
	server := alertstest.NewSMTP(t)
	receipt, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), mailChannel("Ops <ops@example.com>, ada@example.com"), "", everything(alerts.KindOpened))
	if err != nil || receipt != (alerts.Receipt{Ref: "<ntc_1@rollcall.example>"}) {
		t.Fatalf("sending = %+v, %v", receipt, err)
	}
	got := server.Messages()
	if len(got) != 1 || got[0].From != "alerts@rollcall.example" || !cmp.Equal(got[0].To, []string{"ops@example.com", "ada@example.com"}) {
		t.Fatalf("mails = %+v, want one to both", got)
	}
	want := map[string]string{
		"From":                  "=?utf-8?q?R=C3=B6llcall?= <alerts@rollcall.example>",
		"To":                    "<ops@example.com>, <ada@example.com>",
		"Subject":               "[down] Weather",
		"Message-Id":            "<ntc_1@rollcall.example>",
		"In-Reply-To":           "",
		"References":            "",
		"Auto-Submitted":        "auto-generated",
		"List-Id":               "Rollcall <rollcall.rollcall.example>",
		"List-Unsubscribe":      "<https://rollcall.example/unsubscribe/abc>",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
		"Mime-Version":          "1.0",
		"User-Agent":            "",
	}
	for name, value := range want {
		if got := got[0].Header.Get(name); got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
	if date, err := got[0].Header.Date(); err != nil || time.Since(date).Abs() > time.Minute {
		t.Errorf("Date = %s, %v", date, err)
	}
	for _, part := range []string{got[0].Text, got[0].HTML} {
		for _, word := range []string{"Weather is down", "Acknowledged by ada.", "tools/list", "https://rollcall.example/unsubscribe/abc"} {
			if !strings.Contains(part, word) {
				t.Errorf("%q is missing in:\n%s", word, part)
			}
		}
	}
}

func TestAnIncidentIsOneConversation(t *testing.T) {
	server := alertstest.NewSMTP(t)
	sender := alerts.NewEmail(mailConfig(server))
	ref := ""
	for i, kind := range []alerts.Kind{alerts.KindOpened, alerts.KindReminder, alerts.KindResolved} {
		m := incidentMail(kind, fmt.Sprintf("ntc_%d", i))
		if kind == alerts.KindResolved {
			m.State = "recovered"
		}
		receipt, err := sender.Send(t.Context(), mailChannel("ops@example.com"), ref, m)
		if err != nil || receipt.Ref != "<ntc_0@rollcall.example>" {
			t.Fatalf("receipt of %s = %+v, %v; want the opening's Message-ID", kind, receipt, err)
		}
		ref = receipt.Ref
	}
	type threaded struct{ Subject, ID, InReplyTo, References string }
	var got []threaded
	for _, m := range server.Messages() {
		got = append(got, threaded{m.Subject, m.Header.Get("Message-Id"), m.Header.Get("In-Reply-To"), m.Header.Get("References")})
	}
	const opening = "<ntc_0@rollcall.example>"
	want := []threaded{
		{"[down] Weather", opening, "", ""},
		{"[still down] Weather", "<ntc_1@rollcall.example>", opening, opening},
		{"[recovered] Weather", "<ntc_2@rollcall.example>", opening, opening},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("mails (-got +want):\n%s", diff)
	}
}

func TestAMailThatComesAgainIsTheSameMail(t *testing.T) {
	server := alertstest.NewSMTP(t)
	server.SetFault(alertstest.StageAccepted, alertstest.SMTPFault{Close: true})
	m := incidentMail(alerts.KindOpened, "ntc_1")
	if _, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), mailChannel("ops@example.com"), "", m); err == nil || isPermanent(err) {
		t.Errorf("error = %v, want a passing one: nobody said that the mail was taken", err)
	}
	server.SetFault(alertstest.StageAccepted, alertstest.SMTPFault{})
	if _, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), mailChannel("ops@example.com"), "", m); err != nil {
		t.Fatal(err)
	}
	got := server.Messages()
	if len(got) != 2 || got[0].Header.Get("Message-Id") != got[1].Header.Get("Message-Id") {
		t.Errorf("mails = %+v, want two with one Message-ID", got)
	}
}

func TestAReferenceThatIsNoMessageIDIsLeftOut(t *testing.T) {
	for _, ref := range []string{"C0123456789:1.2", "<a b>", "<x@y>\r\nBcc: <eve@example.com>", "<>", "<" + strings.Repeat("x", 900) + ">"} {
		server := alertstest.NewSMTP(t)
		m := incidentMail(alerts.KindReminder, "ntc_\r\nBcc: eve")
		m.Unsubscribe = "https://x.example/\r\nBcc:eve"
		receipt, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), mailChannel("ops@example.com"), ref, m)
		if err != nil {
			t.Fatal(err)
		}
		header := server.Messages()[0].Header
		if got := header.Get("References") + header.Get("In-Reply-To") + header.Get("Bcc") + header.Get("List-Unsubscribe"); got != "" {
			t.Errorf("%q became the headers %q", ref, got)
		}
		if receipt.Ref != header.Get("Message-Id") || !strings.HasPrefix(receipt.Ref, "<msg_") {
			t.Errorf("ref = %q, Message-ID %q", receipt.Ref, header.Get("Message-Id"))
		}
	}
}

func TestASubjectSaysHowItStandsAndOfWhat(t *testing.T) {
	tests := []struct {
		name   string
		change func(*alerts.Message)
		want   string
	}{
		{"opened", func(*alerts.Message) {}, "[down] Weather"},
		{"changed", func(m *alerts.Message) { m.Kind, m.State = alerts.KindUpdated, "gated" }, "[gated] Weather"},
		{"still open", func(m *alerts.Message) { m.Kind = alerts.KindReminder }, "[still down] Weather"},
		{"escalated", func(m *alerts.Message) { m.Kind = alerts.KindEscalation }, "[down] Weather"},
		{"flapping", func(m *alerts.Message) { m.Kind = alerts.KindFlapping }, "[flapping] Weather"},
		{"calmed", func(m *alerts.Message) { m.Kind = alerts.KindCalmed }, "[calmed, down] Weather"},
		{"recovered", func(m *alerts.Message) { m.Kind, m.State = alerts.KindResolved, "recovered" }, "[recovered] Weather"},
		{"many", func(m *alerts.Message) {
			m.Kind, m.State, m.About, m.Title = alerts.KindDigest, "", "", "3 endpoints down"
		}, "[digest] 3 endpoints down"},
		{"tools changed", func(m *alerts.Message) {
			m.Kind, m.State, m.About, m.Title = alerts.KindContract, "", "", "Weather: the tool list changed"
		}, "Weather: the tool list changed"},
		{"a test", func(m *alerts.Message) {
			m.Kind, m.State, m.About, m.Title = alerts.KindTest, "", "", "Rollcall can reach this channel"
		}, "[test] Rollcall can reach this channel"},
		{"another script", func(m *alerts.Message) { m.About = "Wëtter 天気 🌦" }, "[down] Wëtter 天気 🌦"},
		{"breaks", func(m *alerts.Message) { m.About = "Weather\r\nBcc: eve@example.com" }, "[down] Weather Bcc: eve@example.com"},
		{"an encoded word", func(m *alerts.Message) { m.About = "=?utf-8?q?=0ABcc?=" }, "[down] = ?utf-8?q?=0ABcc?="},
		{"a long name", func(m *alerts.Message) { m.About = strings.Repeat("Weather ", 40) }, "[down] " + strings.Repeat("Weather ", 24) + "…"},
	}
	for _, tt := range tests {
		m := incidentMail(alerts.KindOpened, "ntc_1")
		tt.change(&m)
		if got, _, _ := asMailGetsIt(t, m); got != tt.want {
			t.Errorf("%s: subject %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHostileWordsStayWordsInAMail(t *testing.T) {
	const evil = `</pre><script>alert(1)</script><img src=x onerror=alert(1)> & "quotes' {{.Title}}`
	m := everything(alerts.KindOpened)
	m.Title, m.Meaning, m.Update, m.Outcome, m.Endpoint, m.Step, m.Said, m.URL = evil, evil, evil, evil, evil, evil, evil, evil
	m.SeenFrom, m.Dependents, m.Changes = []string{evil}, []string{evil}, []string{evil}
	m.Items = []alerts.Item{{Symbol: evil, Title: evil, Said: evil, Link: "javascript:alert(1)"}}
	m.Link = "javascript:alert(1)//https://rollcall.example"
	_, text, html := asMailGetsIt(t, m)
	for _, bad := range []string{"<script", "<img", "javascript:", "</pre><"} {
		if strings.Contains(html, bad) {
			t.Errorf("%q reached the page:\n%s", bad, html)
		}
	}
	if !strings.Contains(html, "&lt;script&gt;") || !strings.Contains(text, "<script>alert(1)</script>") {
		t.Errorf("the words are not there:\n%s\n%s", text, html)
	}
}

func TestAMailIsWhatItsTemplateMakes(t *testing.T) {
	server := alertstest.NewSMTP(t)
	channel := mailChannel("ops@example.com")
	channel.Settings["template"] = "{{.Endpoint}} <b>: {{.Said}}\n.\nbye"
	m := everything(alerts.KindOpened)
	m.Unsubscribe = ""
	if _, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), channel, "", m); err != nil {
		t.Fatal(err)
	}
	got := server.Messages()[0]
	if want := "Weather <b>: <b>database</b> is locked & \u2028\n.\nbye\n"; got.Text != want {
		t.Errorf("text = %q, want %q", got.Text, want)
	}
	if !strings.Contains(got.HTML, "Weather &lt;b&gt;: &lt;b&gt;database") || strings.Contains(got.HTML, "It is gone.") || got.Subject != "[down] Weather" {
		t.Errorf("subject %q, HTML:\n%s", got.Subject, got.HTML)
	}
	channel.Settings["template"] = "{{index .Items 9}}"
	if _, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), channel, "", m); err != nil || !strings.Contains(server.Messages()[1].Text, "It is gone.") {
		t.Errorf("with a template that fails: %v, %q; want our own words", err, server.Messages()[1].Text)
	}
}

func TestWordOfAnActIsNotMailed(t *testing.T) {
	server := alertstest.NewSMTP(t)
	m := everything(alerts.KindUpdated)
	m.Acted = true
	receipt, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), mailChannel("ops@example.com"), "<ntc_0@rollcall.example>", m)
	if err != nil || receipt != (alerts.Receipt{Ref: "<ntc_0@rollcall.example>", Passed: true}) || server.Greeted() != 0 {
		t.Errorf("receipt = %+v, %v; want it passed over", receipt, err)
	}
}

func TestAMailServersRefusalsAreToldApart(t *testing.T) {
	tests := []struct {
		name      string
		at        alertstest.Stage
		fault     alertstest.SMTPFault
		want      string
		permanent bool
	}{
		{"no such mailbox", alertstest.StageRcpt, alertstest.SMTPFault{Code: 550, Message: "5.1.1 User unknown"},
			"the mail server answered 550 to the recipients: 5.1.1 User unknown", true},
		{"no such mailbox, without an enhanced code", alertstest.StageRcpt, alertstest.SMTPFault{Code: 553, Message: "no"},
			"the mail server answered 553 to the recipients: no", true},
		{"greylisting", alertstest.StageRcpt, alertstest.SMTPFault{Code: 450, Message: "4.2.0 come back later"},
			"the mail server answered 450 to the recipients: 4.2.0 come back later", false},
		{"a full mailbox", alertstest.StageRcpt, alertstest.SMTPFault{Code: 552, Message: "5.2.2 full"}, "the mail server answered 552 to the recipients: 5.2.2 full", false},
		{"forbidden relaying", alertstest.StageRcpt, alertstest.SMTPFault{Code: 554, Message: "5.7.1 Relay access denied"},
			"the mail server answered 554 to the recipients: 5.7.1 Relay access denied", false},
		{"a sender that is not liked", alertstest.StageMail, alertstest.SMTPFault{Code: 550, Message: "5.7.1 not yours"},
			"the mail server answered 550 to the sender alerts@rollcall.example: 5.7.1 not yours", false},
		{"words that are not liked", alertstest.StageData, alertstest.SMTPFault{Code: 554, Message: "5.6.0 spam"},
			"the mail server answered 554 to the mail: 5.6.0 spam", false},
		{"a server that is closing", alertstest.StageHello, alertstest.SMTPFault{Code: 421, Message: "4.3.2 later"},
			"the mail server answered 421 to our greeting: 4.3.2 later", false},
		{"an end in the middle", alertstest.StageData, alertstest.SMTPFault{Close: true}, "the mail server cannot be reached: ", false},
	}
	for _, tt := range tests {
		server := alertstest.NewSMTP(t)
		server.SetFault(tt.at, tt.fault)
		_, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), mailChannel("ops@example.com, ada@example.com"), "", opening())
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || isPermanent(err) != tt.permanent {
			t.Errorf("%s: error %v, permanent %t; want %q, %t", tt.name, err, isPermanent(err), tt.want, tt.permanent)
		}
		if len(server.Messages()) != 0 {
			t.Errorf("%s: it was delivered", tt.name)
		}
	}
}

func TestOneGoodAddressIsEnough(t *testing.T) {
	tests := []struct {
		name      string
		ops, ada  int // answers to RCPT; zero: accepted
		to        []string
		permanent bool
	}{
		{name: "one is gone", ops: 550, to: []string{"ada@example.com"}},
		{name: "one is to come back later", ops: 450, to: []string{"ada@example.com"}},
		{name: "one is gone and one may come back", ops: 550, ada: 450},
		{name: "both are gone", ops: 550, ada: 550, permanent: true},
	}
	for _, tt := range tests {
		server := alertstest.NewSMTP(t)
		for address, code := range map[string]int{"ops@example.com": tt.ops, "ada@example.com": tt.ada} {
			if code != 0 {
				server.Refuse(address, code, "no")
			}
		}
		_, err := alerts.NewEmail(mailConfig(server)).Send(t.Context(), mailChannel("ops@example.com, ada@example.com"), "", opening())
		if (err == nil) != (tt.to != nil) || isPermanent(err) != tt.permanent {
			t.Errorf("%s: error %v, permanent %t; want permanent %t", tt.name, err, isPermanent(err), tt.permanent)
		}
		var to []string
		for _, m := range server.Messages() {
			to = append(to, m.To...)
		}
		if diff := cmp.Diff(to, tt.to); diff != "" {
			t.Errorf("%s: delivered to (-got +want):\n%s", tt.name, diff)
		}
	}
}

func TestAMailServerThatHangsIsLeftInTime(t *testing.T) {
	for _, at := range []alertstest.Stage{alertstest.StageHello, alertstest.StageMail, alertstest.StageData} {
		server := alertstest.NewSMTP(t)
		server.SetFault(at, alertstest.SMTPFault{Hang: true})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, fmt.Errorf("no answer within 50ms: %w", context.DeadlineExceeded))
		_, err := alerts.NewEmail(mailConfig(server)).Send(ctx, mailChannel("ops@example.com"), "", opening())
		cancel()
		if err == nil || isPermanent(err) || err.Error() != "the mail server cannot be reached: no answer within 50ms: context deadline exceeded" {
			t.Errorf("hanging at %s: error = %v", at, err)
		}
	}
}

// TestAMailServerThatNeverStopsTalkingIsLeft answers to the greeting with lines without an end.
func TestAMailServerThatNeverStopsTalkingIsLeft(t *testing.T) {
	config := alerts.EmailConfig{Host: "mail.example", From: netmail.Address{Address: "alerts@rollcall.example"}}
	talker := make(chan struct{})
	config.Dial = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer close(talker)
			for {
				if _, err := theirs.Write([]byte("220-" + strings.Repeat("x", 1000) + "\r\n")); err != nil {
					return
				}
			}
		}()
		return ours, nil
	}
	_, err := alerts.NewEmail(config).Send(t.Context(), mailChannel("ops@example.com"), "", opening())
	if err == nil || isPermanent(err) || !strings.Contains(err.Error(), "the server says too much") {
		t.Errorf("error = %v, want an end to it", err)
	}
	<-talker // the connection was closed
}

func TestAMailIsEncryptedAndSignedInAsItIsSet(t *testing.T) {
	const user, password = "rollcall", "correct-horse"
	tests := []struct {
		name      string
		server    alertstest.SMTPConfig
		mode      alerts.TLSMode
		password  string
		encrypted bool
		want      string // in the error; empty: delivered
	}{
		{name: "in the clear"},
		{name: "STARTTLS where it is offered", server: alertstest.SMTPConfig{StartTLS: true}, encrypted: true},
		{name: "no STARTTLS where it is not wanted", server: alertstest.SMTPConfig{StartTLS: true}, mode: alerts.TLSNone},
		{name: "STARTTLS required", server: alertstest.SMTPConfig{StartTLS: true}, mode: alerts.TLSRequired, encrypted: true},
		{name: "STARTTLS required and not offered", mode: alerts.TLSRequired, want: "offers no encryption (STARTTLS)"},
		{name: "TLS from the first byte", server: alertstest.SMTPConfig{Implicit: true}, mode: alerts.TLSImplicit, encrypted: true},
		{name: "signed in", server: alertstest.SMTPConfig{StartTLS: true, Username: user, Password: password}, password: password, encrypted: true},
		{name: "signed in on TLS from the first byte", server: alertstest.SMTPConfig{Implicit: true, Username: user, Password: password},
			mode: alerts.TLSImplicit, password: password, encrypted: true},
		{name: "not signed in", server: alertstest.SMTPConfig{Username: user, Password: password}, want: "answered 530 to the sender"},
		{name: "a wrong password", server: alertstest.SMTPConfig{Username: user, Password: password}, password: "battery-staple",
			want: "the mail server does not let us in: it answered 535 to user name and password"},
		{name: "nothing to sign in to", password: password, want: "lets nobody sign in without encryption"},
	}
	for _, tt := range tests {
		server := alertstest.NewSMTPWith(t, tt.server)
		config := mailConfig(server)
		config.TLS = tt.mode
		if tt.password != "" {
			config.Username, config.Password = user, tt.password
		}
		_, err := alerts.NewEmail(config).Send(t.Context(), mailChannel("ops@example.com"), "", opening())
		if tt.want != "" {
			if err == nil || isPermanent(err) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "staple") {
				t.Errorf("%s: error = %v, want a passing one with %q", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := server.Messages()[0]; got.Encrypted != tt.encrypted || got.User != tt.server.Username {
			t.Errorf("%s: encrypted %t as %q, want %t as %q", tt.name, got.Encrypted, got.User, tt.encrypted, tt.server.Username)
		}
	}
}

func TestACertificateOfNobodyIsNotTrusted(t *testing.T) {
	for _, mode := range []alerts.TLSMode{alerts.TLSAuto, alerts.TLSImplicit} {
		server := alertstest.NewSMTPWith(t, alertstest.SMTPConfig{StartTLS: mode == alerts.TLSAuto, Implicit: mode == alerts.TLSImplicit})
		config := mailConfig(server)
		config.TLSConfig, config.TLS = nil, mode
		_, err := alerts.NewEmail(config).Send(t.Context(), mailChannel("ops@example.com"), "", opening())
		if err == nil || isPermanent(err) || !strings.Contains(err.Error(), "certificate") || len(server.Messages()) != 0 {
			t.Errorf("%q: error = %v, want one about the certificate", mode, err)
		}
	}
}

// TestAPasswordIsNotSentInTheClear speaks to a host that is not loopback, by name.
func TestAPasswordIsNotSentInTheClear(t *testing.T) {
	server := alertstest.NewSMTPWith(t, alertstest.SMTPConfig{Username: "rollcall", Password: "hunter2"})
	config := mailConfig(server)
	config.Host, config.Username, config.Password = "mail.example", "rollcall", "hunter2"
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if want := fmt.Sprintf("mail.example:%d", server.Port()); address != want {
			t.Errorf("dials %s, want %s", address, want)
		}
		return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("%s:%d", server.Host(), server.Port()))
	}
	_, err := alerts.NewEmail(config).Send(t.Context(), mailChannel("ops@example.com"), "", opening())
	if err == nil || err.Error() != "the mail server offers no encryption, and the password is not sent without" {
		t.Errorf("error = %v", err)
	}
}

func TestAnAddressListThatIsNoneIsBroken(t *testing.T) {
	for _, to := range []string{"", "ops", "ops@example.com\r\nRCPT TO:<eve@example.com>", ","} {
		if _, err := alerts.NewEmail(alerts.EmailConfig{Host: "mail.example"}).Send(t.Context(), mailChannel(to), "", opening()); !isPermanent(err) {
			t.Errorf("%q: error = %v, want a permanent one", to, err)
		}
	}
}

func TestTheMailServerIsReadFromAURL(t *testing.T) {
	tests := []struct {
		raw  string
		want alerts.EmailConfig
	}{
		{"smtp://mail.example.com", alerts.EmailConfig{Host: "mail.example.com"}},
		{"smtp://user:p%40ss%3A%2F@mail.example.com:587?starttls=required", alerts.EmailConfig{
			Host: "mail.example.com", Port: 587, Username: "user", Password: "p@ss:/", TLS: alerts.TLSRequired}},
		{"smtps://u%40example.com:p@mail.example.com:465/?hello=rollcall.example", alerts.EmailConfig{
			Host: "mail.example.com", Port: 465, Username: "u@example.com", Password: "p", TLS: alerts.TLSImplicit, HelloName: "rollcall.example"}},
		{"smtp://[::1]:25?starttls=none", alerts.EmailConfig{Host: "::1", Port: 25, TLS: alerts.TLSNone}},
		{"smtp://u:p@localhost:25?starttls=none", alerts.EmailConfig{Host: "localhost", Port: 25, Username: "u", Password: "p", TLS: alerts.TLSNone}},
		{"smtp://mail.example.com?starttls=auto", alerts.EmailConfig{Host: "mail.example.com"}},
	}
	for _, tt := range tests {
		got, err := alerts.ParseSMTPURL(tt.raw)
		if err != nil {
			t.Errorf("%s: %v", tt.raw, err)
		}
		if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(alerts.EmailConfig{}, "Dial", "TLSConfig")); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.raw, diff)
		}
	}
}

func TestAMailServersURLThatIsWrongIsRefusedWithoutThePassword(t *testing.T) {
	tests := []struct{ raw, want string }{
		{"", "must begin with smtp:// or smtps://"},
		{"http://u:hunter2@mail.example.com", "must begin with smtp:// or smtps://"},
		{"smtp://u:hunter2%zz@mail.example.com", "is not a URL like"},
		{"smtp://u:hunter2#x@mail.example.com", "is not a URL like"},
		{"smtp://u:hunter2@", "names no host"},
		{"smtp://hunter2@mail.example.com", "must have both a user name and a password"},
		{"smtp://u:hunter2@mail.example.com:99999", "has a port that is not between 1 and 65535"},
		{"smtp://u:hunter2@mail.example.com/hunter2", "must end behind the host and port"},
		{"smtp://u:hunter2@mail.example.com?hunter2=1", "knows starttls and hello only"},
		{"smtp://u:hunter2@mail.example.com?starttls=hunter2", "has a starttls that is not auto, required or none"},
		{"smtp://u:hunter2@mail.example.com?starttls=none", "would send the password in the clear"},
		{"smtps://u:hunter2@mail.example.com?starttls=required", "has no use for starttls with smtps://"},
		{"smtp://u:hunter2@mail.example.com?hello=hunter2%0D%0A", "has a hello that is not a host name"},
		{"smtp://mail.example.com:0/x?y=1", "has a port that is not between 1 and 65535\nmust end behind the host and port, but for ?starttls= and &hello=\nknows"},
	}
	for _, tt := range tests {
		got, err := alerts.ParseSMTPURL(tt.raw)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") || got.Host != "" {
			t.Errorf("%s: %+v, error %v; want %q", tt.raw, got, err, tt.want)
		}
	}
}

func FuzzParseSMTPURL(f *testing.F) {
	for _, seed := range []string{
		"smtp://user:pass@mail.example.com:587?starttls=required", "smtps://h", "smtp://[::1]:25?starttls=none&hello=a", "smtp://%zz", "://", "smtp://h:0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := alerts.ParseSMTPURL(raw)
		if err == nil && (c.Host == "" || c.Port < 0 || c.Port > 65535 || strings.ContainsAny(c.HelloName, " \r\n")) {
			t.Errorf("%q = %+v", raw, c)
		}
		if err != nil && (c.Password != "" || errors.Unwrap(err) != nil) {
			t.Errorf("%q: %+v, %v", raw, c, err)
		}
	})
}

// TestMailsReadAloud holds one mail against a golden file, in both of its parts.
func TestMailsReadAloud(t *testing.T) {
	m := incidentMail(alerts.KindResolved, "ntc_1")
	m.Symbol, m.Title, m.State, m.Open, m.Update, m.Changes, m.Items = "🟢", "Weather has recovered", "recovered", false, "", nil, nil
	m.Unsubscribe = "https://rollcall.example/unsubscribe/abc"
	subject, text, html := asMailGetsIt(t, m)
	golden(t, "testdata/email.txt", []byte("Subject: "+subject+"\n\n"+text))
	golden(t, "testdata/email.html", []byte(html))
	golden(t, "testdata/webhook.json", asWebhookGetsIt(t, m))
}
