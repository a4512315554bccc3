package probe_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestTextOfServersIsTame(t *testing.T) {
	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.ResultAt("initialize",
		`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"\u001b[31m\u202Eevil\n`+strings.Repeat("x", 5000)+`","version":"1\u0000.0"}}`))
	r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy})
	if got := r.Facts.ServerName; !strings.HasPrefix(got, "[31mevil xxx") || len(got) > 200 {
		t.Errorf("name %q", got)
	}
	if got := r.Facts.ServerVersion; got != "1 .0" {
		t.Errorf("version %q", got)
	}
	s.SetFaults(probetest.LegacyOnly(), probetest.RPCErrorAt("initialize", 200, -32603, strings.Repeat("very bad\n", 1000)))
	r = ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy})
	if got := r.Failure.Message; len(got) > probe.MaxMessage || strings.Contains(got, "\n") || got != r.Steps[0].Message {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestTranscript(t *testing.T) {
	const token = "tok-SECRET-123456"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "sid=cookie-from-server")
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "you sent %s to %s with %s %s", r.Header.Get("Authorization"), r.URL, body, strings.Repeat("y", 100_000))
	}))
	defer s.Close()
	target := probe.Target{
		Kind: probe.KindJSONRPC, Method: "m", URL: s.URL + "/v3/0123456789abcdef0123456789abcdef?apikey=pa55word", Transcript: true,
		Headers: []probe.Header{{Name: "Authorization", Value: "Bearer " + token}},
	}
	r := ask(t, target)
	text := fmt.Sprintf("%+v %+v", r, *r.Failure)
	for _, secret := range []string{token, "0123456789abcdef", "pa55word", "cookie-from-server"} {
		if strings.Contains(text, secret) {
			t.Errorf("the result holds %q:\n%.2000s", secret, text)
		}
	}
	if len(r.Transcript) != 2 {
		t.Fatalf("%d messages, want 2", len(r.Transcript))
	}
	sent, received := r.Transcript[0], r.Transcript[1]
	if !sent.Sent || !strings.HasPrefix(sent.Head, "POST /v3/…?apikey=… HTTP/1.1\nHost: 127.0.0.1:") || !strings.Contains(sent.Head, "Authorization: …") ||
		!strings.Contains(sent.Body, `"method":"m"`) || sent.Step != "m" {
		t.Errorf("sent %+v", sent)
	}
	if received.Sent || !strings.HasPrefix(received.Head, "HTTP/1.1 500 Internal Server Error\n") || !strings.Contains(received.Head, "X-Echo: …") ||
		!strings.HasPrefix(received.Body, "you sent … to /v3/…?apikey=… with {") || !received.Clipped || len(received.Body) > 64<<10 {
		t.Errorf("received %.600s…, clipped %t", received.Head+received.Body, received.Clipped)
	}
	target.Transcript = false
	if r := ask(t, target); r.Transcript != nil {
		t.Errorf("a transcript that nobody asked for: %+v", r.Transcript)
	}
}

func TestTranscriptIsMadeWhenTheResultIsWorthIt(t *testing.T) {
	for name, tc := range map[string]struct {
		faults []probetest.Fault
		want   probe.Verdict
		worth  bool
	}{
		"the result is not worth it": {nil, probe.Up, false},
		"the result is worth it":     {[]probetest.Fault{probetest.RPCErrorAt("tools/list", 200, -32603, "broken")}, probe.Down, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := probetest.MCP(t, append(tc.faults, probetest.LegacyOnly())...)
			var asked []probe.Result
			target := probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy, Transcript: true}
			target.TranscriptOf = func(r probe.Result) bool {
				asked = append(asked, r)
				return r.Verdict != probe.Up
			}
			r := ask(t, target)
			if r.Verdict != tc.want || len(asked) != 1 || asked[0].Verdict != tc.want || asked[0].Transcript != nil {
				t.Errorf("%s was asked about as %+v, want one question about %s", r.Verdict, asked, tc.want)
			}
			if got := len(r.Transcript) > 0; got != tc.worth {
				t.Errorf("%d messages, worth it: %t", len(r.Transcript), tc.worth)
			}
		})
	}
}
