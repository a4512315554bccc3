package probe_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// BenchmarkLegacyMCP measures a whole check of a legacy MCP server, and how much longer it takes than the same five
// requests sent by net/http without looking at the answers.
func BenchmarkLegacyMCP(b *testing.B) {
	s := probetest.MCP(b, probetest.LegacyOnly())
	target := probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraLegacy}
	benchmark(b, s, target)
}

// BenchmarkEVM measures a whole check of a chain node: two requests.
func BenchmarkEVM(b *testing.B) {
	s := probetest.EVM(b)
	benchmark(b, s, probe.Target{Kind: probe.KindEVM, URL: s.URL})
}

func benchmark(b *testing.B, s *probetest.Server, target probe.Target) {
	p := prober()
	if r := p.Probe(b.Context(), target); r.Verdict != probe.Up {
		b.Fatalf("%s %+v", r.Verdict, r.Failure)
	}
	conversation := s.Requests()
	var bare, checks time.Duration
	n := 0
	for b.Loop() {
		begin := time.Now()
		replay(b, s.URL, conversation)
		middle := time.Now()
		if r := p.Probe(b.Context(), target); r.Verdict != probe.Up {
			b.Fatalf("%s %+v", r.Verdict, r.Failure)
		}
		bare += middle.Sub(begin)
		checks += time.Since(middle)
		n++
	}
	b.ReportMetric(float64(checks)/float64(bare), "×bare")
	b.ReportMetric(float64(n)/checks.Seconds(), "checks/s")
}

// replay sends a conversation as it was once received, on a connection of its own.
func replay(b *testing.B, url string, conversation []probetest.Request) {
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	session := ""
	for _, r := range conversation {
		req, err := http.NewRequestWithContext(b.Context(), r.HTTPMethod, url, bytes.NewReader(r.Body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header = r.Header.Clone()
		if req.Header.Get("Mcp-Session-Id") != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
}
