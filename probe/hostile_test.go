package probe_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rollcallhq/rollcall/probe"
)

// listen answers every connection with what handle writes into it, and returns a URL that leads there.
func listen(t *testing.T, handle func(net.Conn)) string {
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
			go handle(conn)
		}
	}()
	return "http://" + l.Addr().String() + "/mcp"
}

// net/http hands over the bare connection of a 101, which no deadline of the request ends.
func TestSwitchingProtocolsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	left := make(chan struct{}, 10)
	url := listen(t, func(conn net.Conn) {
		defer conn.Close()
		buffer := make([]byte, 4096)
		if _, err := conn.Read(buffer); err != nil {
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the probe hangs up
		left <- struct{}{}
	})
	p := &probe.Prober{Egress: probe.Egress{Any: true}}
	for _, kind := range []probe.Kind{probe.KindMCP, probe.KindEVM} {
		r := p.Probe(t.Context(), probe.Target{Kind: kind, URL: url, Timeout: 10 * time.Second})
		if r.Verdict != probe.Down || r.Failure.Class != probe.ClassHTTPStatus || r.Failure.Code != 101 {
			t.Errorf("kind %s: %s, %+v; want down with http_status 101", kind, r.Verdict, r.Failure)
		}
		<-left // it hung up
	}
}

// An endpoint that says our own secret back, changed so that it does not look like one, must not make us show it.
func TestEchoedSecretsAreCutHoweverTheyAreHidden(t *testing.T) {
	t.Parallel()
	const secret = "SECRETSECRETabc123"
	for name, echo := range map[string]func(header string) string{
		"as it is":             func(h string) string { return h },
		"split by zero widths": func(h string) string { return strings.Join(strings.Split(h, ""), "\u200b") },
		"split by joiners":     func(h string) string { return strings.Join(strings.Split(h, ""), "\u034f") },
		"split by selectors":   func(h string) string { return strings.Join(strings.Split(h, ""), "\ufe0f") },
		"split by fillers":     func(h string) string { return strings.Join(strings.Split(h, ""), "\u3164") },
		"all but its end":      func(h string) string { return "token " + h[:len(h)-4] + "... was refused" },
		"with its space wider": func(h string) string { return strings.ReplaceAll(h, " ", "\t  ") },
		"cut off at 200":       func(h string) string { return strings.Repeat("x", 175) + h },
		"cut off at 100":       func(h string) string { return strings.Repeat("x", 80) + h },
		"cut off at 500":       func(h string) string { return strings.Repeat("x", 480) + h },
		"many, then a part":    func(h string) string { return strings.Repeat(h+" ", 40) + h[:len(h)-2] },
		"cut off by itself":    func(h string) string { return h[:len(h)-3] },
	} {
		for form, wrap := range map[string]string{
			"rpc error":   `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":%q}}`,
			"odd error":   `{"jsonrpc":"2.0","id":null,"error":%q}`,
			"json":        `{"error":%q}`,
			"text":        `bad gateway: %s`,
			"page":        `<html><title>%s</title></html>`,
			"wrong id":    `{"jsonrpc":"2.0","id":%q,"result":{}}`,
			"odd version": `{"jsonrpc":"2.0","id":null,"result":{"protocolVersion":%q}}`,
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusBadGateway)
				fmt.Fprintf(w, wrap, echo(r.Header.Get("Authorization")))
			}))
			p := &probe.Prober{Egress: probe.Egress{Any: true}}
			r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: server.URL, Headers: []probe.Header{
				{Name: "Authorization", Value: "Bearer " + secret, Secret: true},
			}})
			server.Close()
			if shown := visible(fmt.Sprintf("%+v", r)); strings.Contains(shown, secret[:6]) {
				t.Errorf("%s, %s: the secret shows in %s", name, form, shown)
			}
		}
	}
}

// visible is what a reader sees of text: nothing of the characters that show nothing.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, s)
}

func TestTranscriptShowsNoSecretWhereverItIsEchoed(t *testing.T) {
	t.Parallel()
	const secret = "SuperSecretTokenABC123"
	url := listen(t, func(conn net.Conn) {
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 4096)); err != nil {
			return
		}
		split := strings.Join(strings.Split(secret, ""), "\u200b")
		fmt.Fprintf(conn, "HTTP/1.1 500 %s\r\nX-%s: 1\r\nX-Token: %s\r\nContent-Length: %d\r\n\r\n%s", secret, secret, split, len(split), split)
	})
	p := &probe.Prober{Egress: probe.Egress{Any: true}}
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: url, Transcript: true, Headers: []probe.Header{
		{Name: "X-Api-Key", Value: secret, Secret: true},
	}})
	if len(r.Transcript) < 2 {
		t.Fatalf("%d messages in the transcript", len(r.Transcript))
	}
	if shown := visible(fmt.Sprintf("%+v", r)); strings.Contains(strings.ToLower(shown), strings.ToLower(secret[:8])) {
		t.Errorf("the secret shows in %s", shown)
	}
}

// modernServer answers every request with a modern result that has these members, besides those the era asks for.
func modernServer(t *testing.T, members string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		_, id, _ := strings.Cut(string(body), `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%q,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},
			"resultType":"complete","ttlMs":0,"cacheScope":"public",%s}}`, id, members)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// What an answer of 2 MiB makes us allocate is bounded, whatever its shape: times is how often its size, over all requests
// of the check. Reading alone takes it five times, as buffers grow, and the server that sends it shares the memory.
func TestHostileShapesTakeNoMoreThanTheirSize(t *testing.T) {
	const size = 2 << 20
	zeros := "0" + strings.Repeat(",0", size/2)
	versions := `"2099-01-01"` + strings.Repeat(`,"2099-01-01"`, size/13)
	dates := strings.Repeat("2099-01-01 ", size/11)
	for name, test := range map[string]struct {
		body  string
		times uint64
	}{
		"a batch":            {"[" + zeros + "]", 30},
		"error data":         {`{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no","data":{"supported":[` + versions + `]}}}`, 60},
		"a message of dates": {`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"` + dates + `"}}`, 200},
		"members":            {`{"a":0` + strings.Repeat(`,"a":0`, size/6) + `}`, 40},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, test.body)
		}))
		p := &probe.Prober{Egress: probe.Egress{Any: true}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: server.URL, Timeout: time.Minute})
		runtime.ReadMemStats(&after)
		server.Close()
		if r.Verdict == probe.Up {
			t.Errorf("%s: up", name)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > test.times*size {
			t.Errorf("%s: %d MiB allocated for %d requests of 2 MiB, want %d at most", name, took>>20, len(r.Steps), test.times*size>>20)
		}
	}
}

func TestEndlessToolListsAreNotRead(t *testing.T) {
	t.Parallel()
	p := &probe.Prober{Egress: probe.Egress{Any: true}}
	for name, members := range map[string]string{
		"a million tools": `"tools":[1` + strings.Repeat(",1", 1_000_000) + `]`,
		"a giant name":    `"tools":[{"name":"` + strings.Repeat("x", 1<<20) + `"}]`,
	} {
		r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: modernServer(t, members), Timeout: time.Minute})
		if r.Verdict != probe.Degraded || r.Facts.Tools == nil || *r.Facts.Tools > 10_000 {
			t.Errorf("%s: %s, %+v, tools %v; want degraded and no more than 10000 tools", name, r.Verdict, r.Failure, r.Facts.Tools)
		}
		if size := len(fmt.Sprintf("%+v", r)); size > 16<<10 {
			t.Errorf("%s: the result takes %d bytes", name, size)
		}
	}
}
