package probe_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestWhatIsSent(t *testing.T) {
	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.Tools(4), probetest.PageSize(2))
	target := probe.Target{Kind: probe.KindMCP, URL: s.URL, Headers: []probe.Header{
		{Name: "Authorization", Value: "Bearer x", Secret: true}, {Name: "X-Team", Value: "a"}, {Name: "X-Team", Value: "b"},
	}}
	if r := ask(t, target); r.Verdict != probe.Up {
		t.Fatalf("%s %+v", r.Verdict, r.Failure)
	}
	type sent struct{ Step, Method, Version, Session, RPCMethod, Params string }
	var got []sent
	ids := map[string]bool{}
	conns := map[string]bool{}
	session := ""
	for _, r := range s.Requests() {
		h := r.Header
		if h.Get("User-Agent") != "rollcall/1.2.3 (+https://status.example)" || h.Get("Accept-Encoding") != "identity" || h.Get("Origin") != "" {
			t.Errorf("%s: header %v", r.Step, h)
		}
		if h.Get("Authorization") != "Bearer x" || gocmp.Diff(h["X-Team"], []string{"a", "b"}) != "" {
			t.Errorf("%s: the target's headers are missing from %v", r.Step, h)
		}
		if h.Get("Accept") != "application/json, text/event-stream" {
			t.Errorf("%s: Accept %q", r.Step, h.Get("Accept"))
		}
		if r.HTTPMethod == "POST" && (h.Get("Content-Type") != "application/json" || h.Get("Content-Length") != fmt.Sprint(len(r.Body))) {
			t.Errorf("%s: Content-Type %q, Content-Length %q of %d", r.Step, h.Get("Content-Type"), h.Get("Content-Length"), len(r.Body))
		}
		if id := string(r.ID); id != "" && (ids[id] || id[0] != '"') {
			t.Errorf("%s: id %s is not a string of its own", r.Step, id)
		}
		ids[string(r.ID)] = true
		conns[r.RemoteAddr] = true
		if s := h.Get("Mcp-Session-Id"); s != "" {
			session = s
		}
		got = append(got, sent{r.Step, r.HTTPMethod, h.Get("Mcp-Protocol-Version"), strings.Replace(h.Get("Mcp-Session-Id"), cmp.Or(session, "none"), "S", 1),
			h.Get("Mcp-Method"), string(r.Params)})
	}
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"rollcall","version":"1.2.3"}}}`
	handshake := `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rollcall","version":"1.2.3"}}`
	expected := []sent{
		{"server/discover", "POST", "2026-07-28", "", "server/discover", meta},
		{"initialize", "POST", "", "", "", handshake},
		{"initialized", "POST", "2025-11-25", "S", "", ""},
		{"tools/list", "POST", "2025-11-25", "S", "", ""},
		{"tools/list", "POST", "2025-11-25", "S", "", got[min(4, len(got)-1)].Params},
		{"close", "DELETE", "2025-11-25", "S", "", ""},
	}
	if diff := gocmp.Diff(expected, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(expected[4].Params, `{"cursor":"`) {
		t.Errorf("the second page was asked for with %s", expected[4].Params)
	}
	if len(conns) != 1 {
		t.Errorf("%d connections, want one", len(conns))
	}
}

func TestSteps(t *testing.T) {
	s := probetest.EVM(t)
	r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	first, second := r.Steps[0], r.Steps[1]
	if first.Phases.Connect <= 0 || first.Phases.FirstByte <= 0 || first.Latency < first.Phases.Connect+first.Phases.FirstByte {
		t.Errorf("the first step: %+v", first)
	}
	if second.Phases.Connect != 0 || second.Phases.DNS != 0 || second.Start < first.Start+first.Latency {
		t.Errorf("the second step: %+v", second)
	}
	if first.Method != "eth_blockNumber" || first.HTTPStatus != 200 || first.BytesOut == 0 || first.BytesIn == 0 {
		t.Errorf("the first step: %+v", first)
	}
	if r.Duration < second.Start+second.Latency || r.StartedAt.IsZero() {
		t.Errorf("started %v, took %v", r.StartedAt, r.Duration)
	}
	if !strings.HasPrefix(r.Facts.RemoteAddr, "127.0.0.1:") {
		t.Errorf("remote address %q", r.Facts.RemoteAddr)
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	s := probetest.EVM(t, probetest.SlowAt("eth_chainId", 60*time.Millisecond))
	r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL, DegradedOver: 50 * time.Millisecond})
	check(t, r, want{verdict: probe.Degraded, step: "eth_chainId", class: probe.ClassSlow, message: "more than 50 ms", steps: evmSteps})
	if r := ask(t, probe.Target{Kind: probe.KindEVM, URL: s.URL, DegradedOver: 10 * time.Second}); r.Verdict != probe.Up {
		t.Errorf("%s %+v", r.Verdict, r.Failure)
	}

	// The time lost to finding out the era is not the endpoint's.
	mcp := probetest.MCP(t, probetest.DiscoverQuirk(probetest.DiscoverHangs))
	r = ask(t, probe.Target{Kind: probe.KindMCP, URL: mcp.URL, Timeout: 3 * time.Second, DegradedOver: 900 * time.Millisecond})
	if r.Verdict != probe.Up || r.Duration < 900*time.Millisecond {
		t.Errorf("%s %+v in %v", r.Verdict, r.Failure, r.Duration)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	s := probetest.MCP(t, probetest.LegacyOnly(), probetest.HangAt("tools/list"))
	ctx, cancel := context.WithCancelCause(t.Context())
	behind, err := url.Parse(strings.TrimSuffix(s.URL, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(string(body), "tools/list") {
			cancel(errors.New("shutting down"))
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	r := prober().Probe(ctx, probe.Target{Kind: probe.KindMCP, URL: front.URL + "/mcp", Era: probe.EraLegacy})
	check(t, r, want{verdict: probe.Unknown, step: "tools/list", class: probe.ClassProbeError, message: "cancelled", era: probe.EraLegacy,
		steps: "initialize initialized tools/list!probe_error close"})
	if n := s.Sessions(); n != 0 {
		t.Errorf("%d sessions left open", n)
	}

	r = prober().Probe(ctx, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	check(t, r, want{verdict: probe.Unknown, step: "eth_blockNumber", class: probe.ClassProbeError, message: "cancelled", steps: "eth_blockNumber!probe_error"})
}

func TestDeadlineOfTheCaller(t *testing.T) {
	t.Parallel()
	s := probetest.EVM(t, probetest.HangAt("eth_chainId"))
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("a bare cause"))
	defer cancel()
	r := prober().Probe(ctx, probe.Target{Kind: probe.KindEVM, URL: s.URL})
	check(t, r, want{verdict: probe.Down, step: "eth_chainId", class: probe.ClassTimeout, message: "no first byte after", steps: "eth_blockNumber eth_chainId!timeout"})
}

func TestInvalidTargets(t *testing.T) {
	for name, target := range map[string]probe.Target{
		"nothing":      {},
		"kind":         {Kind: "gopher", URL: "https://x.example"},
		"scheme":       {Kind: probe.KindMCP, URL: "ftp://x.example"},
		"no host":      {Kind: probe.KindMCP, URL: "https://"},
		"control":      {Kind: probe.KindMCP, URL: "https://x.example/\x00"},
		"bad header":   {Kind: probe.KindMCP, URL: "https://x.example", Headers: []probe.Header{{Name: "A", Value: "b\nc"}}},
		"bad params":   {Kind: probe.KindJSONRPC, URL: "https://x.example", Method: "m", Params: []byte(`{`)},
		"empty params": {Kind: probe.KindJSONRPC, URL: "https://x.example", Method: "m", Params: []byte(" ")},
		"no method":    {Kind: probe.KindJSONRPC, URL: "https://x.example"},
	} {
		t.Run(name, func(t *testing.T) {
			r := prober().Probe(t.Context(), target)
			check(t, r, want{verdict: probe.Unknown, class: probe.ClassProbeError, message: "cannot be probed"})
		})
	}
}
