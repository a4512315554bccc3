package probetest_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestHealthyServers(t *testing.T) {
	t.Run("a modern client is answered in JSON, without a session", func(t *testing.T) {
		s := probetest.MCP(t)
		discovered := ask(t, modern(s, "server/discover", nil))
		if discovered.status != 200 || !discovered.contains(`"supportedVersions":["2026-07-28"]`, `"resultType":"complete"`) {
			t.Errorf("server/discover: got %s, want 200 and the version", discovered)
		}
		tools := ask(t, modern(s, "tools/list", nil))
		if got := strings.Count(tools.body, `"inputSchema"`); got != 3 || tools.header.Get("Content-Type") != "application/json" {
			t.Errorf("tools/list: got %d tools in %s, want 3 in JSON", got, tools)
		}
		if got := s.Sessions(); got != 0 {
			t.Errorf("got %d sessions, want none", got)
		}
	})
	t.Run("a legacy client is answered in event streams, within a session", func(t *testing.T) {
		s := probetest.MCP(t)
		opened := ask(t, initialize(s, "2025-11-25"))
		if !opened.contains("data: \n\n", `"protocolVersion":"2025-11-25"`) || opened.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("initialize: got %s, want a stream with a priming event and the version", opened)
		}
		session := opened.header.Get("Mcp-Session-Id")
		if got := ask(t, legacy(s, "", "tools/list")); got.status != 400 || !got.contains(`"id":null`, "not initialized") {
			t.Errorf("tools/list without a session: got %s, want 400", got)
		}
		if got := ask(t, notify(s, session)); got.status != 202 || got.body != "" {
			t.Errorf("initialized: got %s, want 202 without a body", got)
		}
		if got := ask(t, legacy(s, session, "tools/list")); strings.Count(got.body, `"inputSchema"`) != 3 {
			t.Errorf("tools/list: got %s, want 3 tools", got)
		}
		if got := s.Sessions(); got != 1 {
			t.Errorf("before DELETE: got %d sessions, want 1", got)
		}
		if got := ask(t, closeSession(s, session)); got.status != 200 {
			t.Errorf("DELETE: got %s, want 200", got)
		}
		if got := s.Sessions(); got != 0 {
			t.Errorf("after DELETE: got %d sessions, want none", got)
		}
		if got := ask(t, legacy(s, session, "tools/list")); got.status != 404 {
			t.Errorf("tools/list in a deleted session: got %s, want 404", got)
		}
		want := []string{"initialize", "tools/list", "initialized", "tools/list", "close", "tools/list"}
		if got := s.Steps(); !slices.Equal(got, want) {
			t.Errorf("got steps %q, want %q", got, want)
		}
	})
	t.Run("a chain node advances, until it is frozen", func(t *testing.T) {
		s := probetest.EVM(t)
		for _, want := range []string{"0x3e8", "0x3e9"} {
			if got := ask(t, rpc(s, "eth_blockNumber")); !got.contains(want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		s.SetHeight(7)
		if got := ask(t, rpc(s, "eth_blockNumber")); !got.contains(`"0x7"`) {
			t.Errorf("after SetHeight: got %s, want 0x7", got)
		}
		s.SetFaults(probetest.Frozen(5))
		for range 2 {
			if got := ask(t, rpc(s, "eth_blockNumber")); !got.contains(`"0x5"`) {
				t.Errorf("frozen: got %s, want 0x5", got)
			}
		}
		if got := ask(t, rpc(s, "eth_chainId")); !got.contains(`"0x1"`) {
			t.Errorf("eth_chainId: got %s, want 0x1", got)
		}
		if got := ask(t, rpc(s, "tools/list")); !got.contains("-32601") {
			t.Errorf("another method: got %s, want -32601", got)
		}
	})
	t.Run("a JSON-RPC server answers anything and notes what it was asked", func(t *testing.T) {
		s := probetest.JSONRPC(t)
		if got := ask(t, rpc(s, "any.method")); got.status != 200 || !got.contains(`"id":7`, `"ok":true`) {
			t.Errorf("got %s, want a result under id 7", got)
		}
		r := s.Requests()[0]
		if r.RPCMethod != "any.method" || r.HTTPMethod != "POST" || string(r.ID) != "7" || r.URI != "/rpc" ||
			r.Header.Get("Content-Type") != "application/json" || len(r.Body) == 0 {
			t.Errorf("got request %+v, want all of it noted", r)
		}
	})
}

func TestStrictness(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*http.Request)
		status int
		body   string
	}{
		{"no Accept", func(r *http.Request) { r.Header.Del("Accept") }, 406, "-32000"},
		{"half an Accept", func(r *http.Request) { r.Header.Set("Accept", "application/json") }, 406, "-32000"},
		{"text/plain", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, ""},
		{"no Mcp-Method", func(r *http.Request) { r.Header.Del("Mcp-Method") }, 400, "-32020"},
		{"no version header", func(r *http.Request) { r.Header.Del("Mcp-Protocol-Version") }, 400, "-32020"},
		{"no _meta", func(r *http.Request) { setBody(r, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`) }, 400, "-32602"},
		{"no JSON", func(r *http.Request) { setBody(r, `tools/list`) }, 400, "-32700"},
		{"no method", func(r *http.Request) { setBody(r, `{}`) }, 400, "-32600"},
		{"GET", func(r *http.Request) { r.Method = "GET" }, 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := modern(probetest.MCP(t), "tools/list", nil)
			c.spoil(r)
			if got := ask(t, r); got.status != c.status || !got.contains(c.body) {
				t.Errorf("got %s, want %d with %q", got, c.status, c.body)
			}
		})
	}
}

// TestFaultsOfAnswers asks a faulty JSON-RPC server once. An answer is what a test wants to see of it.
func TestFaultsOfAnswers(t *testing.T) {
	const page = "text/html; charset=utf-8"
	for _, c := range []struct {
		name        string
		fault       probetest.Fault
		status      int
		contentType string
		want        string
	}{
		{"GarbageAt", probetest.GarbageAt("m"), 200, "application/json", "not json"},
		{"HTMLAt", probetest.HTMLAt("m"), 200, page, "<html>"},
		{"StatusAt", probetest.StatusAt("m", 502, "text/plain", "bad gateway"), 502, "text/plain", "bad gateway"},
		{"StatusAt without a body", probetest.StatusAt("m", 204, "", ""), 204, "", ""},
		{"HeaderAt", probetest.HeaderAt("", "Content-Type", "text/plain"), 200, "text/plain", `"ok":true`},
		{"HeaderAt removes", probetest.HeaderAt("", "Content-Type", ""), 200, "", `"ok":true`},
		{"WrongIDAt", probetest.WrongIDAt("m"), 200, "application/json", `"id":"of another request"`},
		{"IDAt", probetest.IDAt("m", `"7"`), 200, "application/json", `"id":"7"`},
		{"ResultAt", probetest.ResultAt("m", `null`), 200, "application/json", `"result":null`},
		{"EnvelopeAt", probetest.EnvelopeAt("m", `{"id":$id}`), 200, "application/json", `{"id":7}`},
		{"RPCErrorAt", probetest.RPCErrorAt("m", 500, -32603, "broken"), 500, "application/json", `"code":-32603,"message":"broken"`},
		{"HugeBodyAt", probetest.HugeBodyAt("m", 1<<20), 200, "application/json", strings.Repeat(" ", 1<<20)},
		{"DripAt", probetest.DripAt("m", 0), 200, "application/json", `"ok":true`},
		{"SlowAt", probetest.SlowAt("m", time.Millisecond), 200, "application/json", `"ok":true`},
		{"EmptyStreamAt", probetest.EmptyStreamAt("m"), 200, "text/event-stream", "data: \n\n"},
		{"BotWall", probetest.BotWall(), 403, "text/html; charset=UTF-8", "Just a moment"},
		{"a fault of another step", probetest.HangAt("other"), 200, "application/json", `"ok":true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := probetest.JSONRPC(t, c.fault)
			got := ask(t, rpc(s, "m"))
			if got.status != c.status || got.header.Get("Content-Type") != c.contentType || !got.contains(c.want) {
				t.Errorf("got %.300s, want %d %q with %.80q", got, c.status, c.contentType, c.want)
			}
			s.SetFaults()
			if got := ask(t, rpc(s, "m")); got.status != 200 || !got.contains(`"ok":true`) {
				t.Errorf("without faults: got %.300s, want a result", got)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	s := probetest.JSONRPC(t, probetest.Unauthorized(`Bearer realm="x"`))
	if got := ask(t, rpc(s, "m")); got.status != 401 || got.header.Get("WWW-Authenticate") != `Bearer realm="x"` {
		t.Errorf("Unauthorized: got %s", got)
	}
	s.SetFaults(probetest.Unauthorized(""))
	if got := ask(t, rpc(s, "m")); got.status != 401 || got.header.Values("WWW-Authenticate") != nil {
		t.Errorf("Unauthorized without a scheme: got %s %q", got, got.header)
	}
	s.SetFaults(probetest.RateLimited("30"))
	if got := ask(t, rpc(s, "m")); got.status != 429 || got.header.Get("Retry-After") != "30" {
		t.Errorf("RateLimited: got %s", got)
	}
	s.SetFaults(probetest.Times(2, probetest.StatusAt("m", 503, "", "")))
	var statuses []int
	for range 3 {
		statuses = append(statuses, ask(t, rpc(s, "m")).status)
	}
	if want := []int{503, 503, 200}; !slices.Equal(statuses, want) {
		t.Errorf("Times(2): got %v, want %v", statuses, want)
	}
}

// TestBrokenConnections asks for answers that do not come to an end by themselves, or not to a good one.
func TestBrokenConnections(t *testing.T) {
	t.Run("HangAt", func(t *testing.T) {
		err := impatient(t, rpc(probetest.JSONRPC(t, probetest.HangAt("m")), "m"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want no answer", err)
		}
	})
	t.Run("HangBodyAt", func(t *testing.T) {
		_, body := begin(t, rpc(probetest.JSONRPC(t, probetest.HangBodyAt("m")), "m"))
		if n, err := body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %d bytes, %v, want none", n, err)
		}
	})
	t.Run("DripAt", func(t *testing.T) {
		_, body := begin(t, rpc(probetest.JSONRPC(t, probetest.DripAt("m", time.Hour)), "m"))
		got, err := io.ReadAll(body)
		if string(got) != "{" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %q, %v, want one byte", got, err)
		}
	})
	t.Run("HalfBodyAt", func(t *testing.T) {
		_, body := begin(t, rpc(probetest.JSONRPC(t, probetest.HalfBodyAt("m")), "m"))
		got, err := io.ReadAll(body)
		if len(got) == 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %q, %v, want half a body", got, err)
		}
	})
	t.Run("StalledStreamAt", func(t *testing.T) {
		_, body := begin(t, rpc(probetest.JSONRPC(t, probetest.StalledStreamAt("m")), "m"))
		got, err := io.ReadAll(body)
		if strings.Contains(string(got), "jsonrpc") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %q, %v, want a priming event only", got, err)
		}
	})
	t.Run("StreamOpenAt", func(t *testing.T) {
		_, body := begin(t, rpc(probetest.JSONRPC(t, probetest.StreamOpenAt("m")), "m"))
		got, err := io.ReadAll(body)
		if !strings.Contains(string(got), `"ok":true`) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %q, %v, want the reply and an open stream", got, err)
		}
	})
	t.Run("CloseAt", func(t *testing.T) {
		if err := impatient(t, rpc(probetest.JSONRPC(t, probetest.CloseAt("m")), "m")); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
	})
	t.Run("ResetAt", func(t *testing.T) {
		if err := impatient(t, rpc(probetest.JSONRPC(t, probetest.ResetAt("m")), "m")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want a reset", err)
		}
	})
	t.Run("Stop and Start", func(t *testing.T) {
		s := probetest.JSONRPC(t)
		s.Stop()
		if err := impatient(t, rpc(s, "m")); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("stopped: got %v, want connection refused", err)
		}
		s.Start()
		if got := ask(t, rpc(s, "m")); got.status != 200 {
			t.Errorf("started again: got %s, want 200", got)
		}
	})
	t.Run("Stop ends what hangs", func(t *testing.T) {
		s := probetest.JSONRPC(t, probetest.HangBodyAt("m"))
		_, body := begin(t, rpc(s, "m"))
		s.Stop()
		if _, err := io.ReadAll(body); err == nil {
			t.Error("got a whole body of a server that hung and was stopped")
		}
	})
}

func TestTLS(t *testing.T) {
	good := probetest.JSONRPC(t, probetest.TLS())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: good.CertPool()}}}
	defer client.CloseIdleConnections()
	res, err := client.Do(rpc(good, "m"))
	if err != nil {
		t.Fatalf("TLS: %v", err)
	}
	res.Body.Close()
	if got := res.TLS.PeerCertificates[0].NotAfter; !got.Equal(good.Certificate().NotAfter) || got.Before(time.Now()) {
		t.Errorf("TLS: got a certificate until %s, want %s", got, good.Certificate().NotAfter)
	}

	bad := probetest.JSONRPC(t, probetest.BadTLS())
	client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: bad.CertPool()}}
	_, err = client.Do(rpc(bad, "m"))
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); !ok || invalid.Reason != x509.Expired {
		t.Errorf("BadTLS: got %v, want an expired certificate", err)
	}
}

func TestRedirects(t *testing.T) {
	s := probetest.JSONRPC(t, probetest.RedirectAt("", 307, "/rpc/"))
	if got := ask(t, rpc(s, "m")); got.status != 307 || got.header.Get("Location") != "/rpc/" {
		t.Errorf("got %s, want 307 to /rpc/", got)
	}
	r := rpc(s, "m")
	r.URL.Path = "/rpc/"
	if got := ask(t, r); got.status != 200 {
		t.Errorf("at the location: got %s, want 200", got)
	}
	s.SetFaults(probetest.RedirectLoopAt(""))
	r = rpc(s, "m")
	for _, want := range []string{"/rpc?hop=1", "/rpc?hop=2", "/rpc?hop=3"} {
		got := ask(t, r)
		if got.status != 307 || got.header.Get("Location") != want {
			t.Errorf("loop: got %s to %q, want 307 to %q", got, got.header.Get("Location"), want)
		}
		r = rpc(s, "m")
		_, r.URL.RawQuery, _ = strings.Cut(want, "?")
	}
}

func TestFaultsOfMCP(t *testing.T) {
	t.Run("LegacyOnly", func(t *testing.T) {
		s := probetest.MCP(t, probetest.LegacyOnly())
		if got := ask(t, modern(s, "server/discover", nil)); got.status != 400 || !got.contains("-32000", `"id":null`) {
			t.Errorf("server/discover: got %s, want 400 with -32000", got)
		}
	})
	t.Run("ModernOnly", func(t *testing.T) {
		s := probetest.MCP(t, probetest.ModernOnly())
		if got := ask(t, initialize(s, "2025-11-25")); got.status != 400 || !got.contains("-32022", `"supported":["2026-07-28"]`) {
			t.Errorf("initialize: got %s, want 400 with -32022", got)
		}
		if got := ask(t, closeSession(s, "x")); got.status != 405 {
			t.Errorf("DELETE: got %s, want 405", got)
		}
	})
	t.Run("Tools and PageSize", func(t *testing.T) {
		s := probetest.MCP(t, probetest.Tools(5), probetest.PageSize(2))
		var got []int
		cursor := []string(nil)
		for range 3 {
			page := ask(t, modern(s, "tools/list", cursor))
			got = append(got, strings.Count(page.body, `"inputSchema"`))
			cursor = page.nextCursor(t)
		}
		if want := []int{2, 2, 1}; !slices.Equal(got, want) || cursor != nil {
			t.Errorf("got pages of %v tools and then cursor %q, want %v and none", got, cursor, want)
		}
		if got := ask(t, modern(s, "tools/list", []string{"9"})); !got.contains("-32602") {
			t.Errorf("an invented cursor: got %s, want -32602", got)
		}
	})
	t.Run("EmptyCursor", func(t *testing.T) {
		s := probetest.MCP(t, probetest.PageSize(2), probetest.EmptyCursor())
		page := ask(t, modern(s, "tools/list", nil))
		if got := page.nextCursor(t); !slices.Equal(got, []string{""}) {
			t.Errorf("modern: got cursor %q, want the empty one", got)
		}
		if got := ask(t, modern(s, "tools/list", []string{""})); strings.Count(got.body, `"inputSchema"`) != 1 {
			t.Errorf("modern, second page: got %s, want 1 tool", got)
		}
	})
	t.Run("CursorLoop", func(t *testing.T) {
		s := probetest.MCP(t, probetest.CursorLoop())
		for _, cursor := range [][]string{nil, {"again"}} {
			if got := ask(t, modern(s, "tools/list", cursor)).nextCursor(t); !slices.Equal(got, []string{"again"}) {
				t.Errorf("after %q: got cursor %q, want again", cursor, got)
			}
		}
	})
	t.Run("NoTools", func(t *testing.T) {
		s := probetest.MCP(t, probetest.NoTools())
		if got := ask(t, modern(s, "server/discover", nil)); got.contains(`"tools"`) {
			t.Errorf("server/discover: got %s, want no tools", got)
		}
		if got := ask(t, modern(s, "tools/list", nil)); got.status != 404 || !got.contains("-32601") {
			t.Errorf("tools/list: got %s, want -32601", got)
		}
	})
	t.Run("SSE", func(t *testing.T) {
		s := probetest.MCP(t, probetest.SSE())
		got := ask(t, modern(s, "tools/list", nil))
		if got.header.Get("Content-Type") != "text/event-stream" || !got.contains(": keep-alive", "notifications/message", `"inputSchema"`) {
			t.Errorf("got %s, want a stream with more than the reply", got)
		}
	})
	t.Run("JSONBody", func(t *testing.T) {
		got := ask(t, initialize(probetest.MCP(t, probetest.JSONBody()), "2025-11-25"))
		if got.header.Get("Content-Type") != "application/json" || !got.contains("serverInfo") {
			t.Errorf("got %s, want JSON", got)
		}
	})
	t.Run("BadVersion", func(t *testing.T) {
		s := probetest.MCP(t, probetest.BadVersion("2099-01-01"))
		if got := ask(t, initialize(s, "2025-11-25")); !got.contains(`"protocolVersion":"2099-01-01"`) {
			t.Errorf("initialize: got %s, want 2099-01-01", got)
		}
		if got := ask(t, modern(s, "server/discover", nil)); got.status != 400 || !got.contains("-32022", `"supported":["2099-01-01"]`) {
			t.Errorf("server/discover: got %s, want -32022", got)
		}
	})
	t.Run("StrictVersion", func(t *testing.T) {
		s := probetest.MCP(t, probetest.StrictVersion("2025-03-26"))
		if got := ask(t, initialize(s, "2025-11-25")); got.status != 400 || !got.contains("-32602", `"supported":["2025-03-26"]`) {
			t.Errorf("another version: got %s, want -32602", got)
		}
		if got := ask(t, initialize(s, "2025-03-26")); got.status != 200 {
			t.Errorf("its version: got %s, want 200", got)
		}
	})
	t.Run("NoSession", func(t *testing.T) {
		s := probetest.MCP(t, probetest.NoSession())
		if got := ask(t, initialize(s, "2025-11-25")).header.Get("Mcp-Session-Id"); got != "" {
			t.Errorf("got session %q, want none", got)
		}
		if got := ask(t, legacy(s, "", "tools/list")); got.status != 200 {
			t.Errorf("tools/list: got %s, want 200", got)
		}
	})
	t.Run("LoseSession", func(t *testing.T) {
		s := probetest.MCP(t, probetest.LoseSession())
		session := ask(t, initialize(s, "2025-11-25")).header.Get("Mcp-Session-Id")
		if got := ask(t, legacy(s, session, "tools/list")); got.status != 404 || s.Sessions() != 0 {
			t.Errorf("got %s and %d sessions, want 404 and none", got, s.Sessions())
		}
	})
	for _, quirk := range probetest.Quirks() {
		t.Run("DiscoverQuirk "+string(quirk), func(t *testing.T) {
			s := probetest.MCP(t, probetest.DiscoverQuirk(quirk))
			if quirk == probetest.DiscoverHangs {
				if err := impatient(t, modern(s, "server/discover", nil)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want no answer", err)
				}
			} else if got := ask(t, modern(s, "server/discover", nil)); got.contains(modernVersion) {
				t.Errorf("got %s, want nothing modern", got)
			}
			if got := ask(t, initialize(s, "2025-11-25")); got.status != 200 || !got.contains("serverInfo") {
				t.Errorf("initialize: got %s, want 200", got)
			}
		})
	}
}

func TestFaultsOfSessionsAndVersions(t *testing.T) {
	t.Run("LoseSessionAt", func(t *testing.T) {
		s := probetest.MCP(t, probetest.LoseSessionAt("tools/list", 400, -32000, "No valid session ID provided"))
		session := ask(t, initialize(s, "2025-11-25")).header.Get("Mcp-Session-Id")
		if got := ask(t, notify(s, session)); got.status != 202 {
			t.Errorf("another step: got %s, want 202", got)
		}
		if got := ask(t, legacy(s, session, "tools/list")); got.status != 400 || !got.contains("-32000", "No valid session") || s.Sessions() != 0 {
			t.Errorf("got %s and %d sessions, want 400 and none", got, s.Sessions())
		}
	})
	t.Run("KeepSessions", func(t *testing.T) {
		s := probetest.MCP(t, probetest.KeepSessions())
		session := ask(t, initialize(s, "2025-11-25")).header.Get("Mcp-Session-Id")
		if got := ask(t, closeSession(s, session)); got.status != 200 || s.Sessions() != 1 {
			t.Errorf("DELETE: got %s and %d sessions, want 200 and 1", got, s.Sessions())
		}
	})
	t.Run("EchoVersion", func(t *testing.T) {
		if got := ask(t, initialize(probetest.MCP(t, probetest.EchoVersion()), "1999-01-01")); !got.contains(`"protocolVersion":"1999-01-01"`) {
			t.Errorf("got %s, want the version that was asked for", got)
		}
	})
	t.Run("NoVersionHeader", func(t *testing.T) {
		s := probetest.MCP(t, probetest.NoVersionHeader())
		r := initialize(s, "2025-11-25")
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		if got := ask(t, r); got.status != 400 || !got.contains("Unsupported protocol version") {
			t.Errorf("with the header: got %s, want 400", got)
		}
		if got := ask(t, initialize(s, "2025-11-25")); got.status != 200 {
			t.Errorf("without: got %s, want 200", got)
		}
	})
	t.Run("RefuseAgents", func(t *testing.T) {
		s := probetest.MCP(t, probetest.RefuseAgents())
		if got := ask(t, initialize(s, "2025-11-25")); got.status != 403 {
			t.Errorf("a library: got %s, want 403", got)
		}
		r := initialize(s, "2025-11-25")
		r.Header.Set("User-Agent", "rollcall/1 (+https://status.example)")
		if got := ask(t, r); got.status != 200 {
			t.Errorf("one with a name: got %s, want 200", got)
		}
	})
	t.Run("Padding", func(t *testing.T) {
		if got := ask(t, modern(probetest.MCP(t, probetest.Padding(1000)), "tools/list", nil)); len(got.body) < 3000 {
			t.Errorf("got %d bytes for three tools, want 1000 more for each", len(got.body))
		}
	})
}

func TestFaultsOfStreamsAndBodies(t *testing.T) {
	t.Run("TooLongAt", func(t *testing.T) {
		res, body := begin(t, rpc(probetest.JSONRPC(t, probetest.TooLongAt("m", 2)), "m"))
		got, err := io.ReadAll(body)
		if res != 200 || !json.Valid(got) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %d %q, %v, want all of the answer and an early end", res, got, err)
		}
	})
	t.Run("GzipAt", func(t *testing.T) {
		got := ask(t, rpc(probetest.JSONRPC(t, probetest.GzipAt("m")), "m"))
		unpacked, err := gzip.NewReader(strings.NewReader(got.body))
		if err != nil || got.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("got %q, %v, want it compressed", got.body, err)
		}
		if plain, err := io.ReadAll(unpacked); err != nil || !bytes.Contains(plain, []byte(`"ok":true`)) {
			t.Errorf("got %q, %v, want a result", plain, err)
		}
	})
	t.Run("StreamTextAt", func(t *testing.T) {
		got := ask(t, rpc(probetest.JSONRPC(t, probetest.StreamTextAt("m", "data:$message\r\r")), "m"))
		if got.header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(got.body, "data:{") || !strings.HasSuffix(got.body, "}\r\r") {
			t.Errorf("got %q, want the message as it was framed", got.body)
		}
	})
	t.Run("ResumeAt", func(t *testing.T) {
		s := probetest.MCP(t, probetest.NoSession(), probetest.ResumeAt("tools/list", 20*time.Millisecond, 2))
		first := ask(t, legacy(s, "", "tools/list"))
		if !first.contains("id: event-1\n", "retry: 20\n") || first.contains("result") {
			t.Errorf("got %q, want an id, a wait and no answer", first.body)
		}
		if got := ask(t, resume(s, "event-1")); !got.contains("id: event-2\n") || got.contains("result") {
			t.Errorf("first GET: got %q, want the next id and no answer", got.body)
		}
		if got := ask(t, resume(s, "event-2")); !got.contains(`"id":7`, `"inputSchema"`) {
			t.Errorf("second GET: got %q, want the answer", got.body)
		}
		for _, id := range []string{"event-2", "other"} {
			if got := ask(t, resume(s, id)); got.status != 404 {
				t.Errorf("GET after %s: got %s, want 404", id, got)
			}
		}
	})
}

func TestHTTPSSE(t *testing.T) {
	t.Run("answers on the stream", func(t *testing.T) {
		s := probetest.HTTPSSE(t, probetest.ChangedFirst())
		events := open(t, s)
		if got := <-events; got != "event: endpoint\ndata: /message?sessionId=stream-1" {
			t.Errorf("first event: got %q, want the endpoint", got)
		}
		if got := ask(t, to("/message?sessionId=stream-1", initialize(s, "2025-11-25"))); got.status != 202 || got.body != "Accepted" {
			t.Errorf("POST: got %s, want 202", got)
		}
		if got := <-events; !strings.Contains(got, "list_changed") {
			t.Errorf("got %q, want the notification first", got)
		}
		if got := <-events; !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
			t.Errorf("got %q, want the answer", got)
		}
		if got := ask(t, to("/message?sessionId=stream-1", notify(s, ""))); got.status != 202 {
			t.Errorf("initialized: got %s, want 202", got)
		}
		if s.Feeds() != 1 || !slices.Equal(s.Steps(), []string{"sse", "initialize", "initialized"}) {
			t.Errorf("got %d streams and steps %q", s.Feeds(), s.Steps())
		}
	})
	t.Run("refuses", func(t *testing.T) {
		s := probetest.HTTPSSE(t)
		for path, want := range map[string]int{"/sse": 405, "/message?sessionId=other": 404, "/mcp": 404} {
			if got := ask(t, to(path, initialize(s, "2025-11-25"))); got.status != want {
				t.Errorf("POST %s: got %s, want %d", path, got, want)
			}
		}
	})
	t.Run("InBodyAt", func(t *testing.T) {
		s := probetest.HTTPSSE(t, probetest.InBodyAt("initialize"))
		<-open(t, s)
		if got := ask(t, to("/message?sessionId=stream-1", initialize(s, "2025-11-25"))); got.status != 200 || !got.contains("serverInfo") {
			t.Errorf("got %s, want the answer here", got)
		}
	})
	t.Run("StreamEndsAt", func(t *testing.T) {
		s := probetest.HTTPSSE(t, probetest.StreamEndsAt("initialize"))
		events := open(t, s)
		<-events
		if got := ask(t, to("/message?sessionId=stream-1", initialize(s, "2025-11-25"))); got.status != 202 {
			t.Errorf("got %s, want 202", got)
		}
		if got, more := <-events; more {
			t.Errorf("got %q, want the end of the stream", got)
		}
	})
	t.Run("Endpoint, FirstEvent and PostStreams", func(t *testing.T) {
		s := probetest.HTTPSSE(t, probetest.Endpoint("http://10.0.0.7/$id"), probetest.PostStreams())
		if got := <-open(t, s); got != "event: endpoint\ndata: http://10.0.0.7/stream-1" {
			t.Errorf("Endpoint: got %q", got)
		}
		_, body := begin(t, initialize(s, "2025-11-25"))
		if got, err := body.(*bufio.Reader).ReadString('\n'); got != "event: endpoint\n" {
			t.Errorf("PostStreams: got %q, %v, want an endpoint event", got, err)
		}
		s.SetFaults(probetest.FirstEvent("data: hello\n\n"))
		if got := <-open(t, s); got != "data: hello" {
			t.Errorf("FirstEvent: got %q", got)
		}
	})
}

// resume asks for the events after one.
func resume(s *probetest.Server, id string) *http.Request {
	r, err := http.NewRequest(http.MethodGet, s.URL, nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Last-Event-Id", id)
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

// to turns r to another path of its server.
func to(path string, r *http.Request) *http.Request {
	u, err := r.URL.Parse(path)
	if err != nil {
		panic(err)
	}
	r.URL = u
	return r
}

// open opens the event stream of s and returns its events as they come, without the blank line behind each.
func open(t *testing.T, s *probetest.Server) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := roundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	events := make(chan string, 10)
	go func() {
		defer close(events)
		in := bufio.NewScanner(res.Body)
		event := ""
		for in.Scan() {
			if in.Text() != "" {
				event += "\n" + in.Text()
				continue
			}
			lines := slices.DeleteFunc(strings.Split(event, "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "id:") })
			events <- strings.Join(lines, "\n")
			event = ""
		}
	}()
	return events
}

const modernVersion = "2026-07-28"

// answer is what came back for one request.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) String() string { return http.StatusText(a.status) + " " + a.body }

func (a answer) contains(parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(a.body, part) })
}

// nextCursor returns the cursor of a JSON answer, nil when there is none.
func (a answer) nextCursor(t *testing.T) []string {
	t.Helper()
	var message struct {
		Result struct {
			NextCursor *string `json:"nextCursor"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(a.body), &message); err != nil {
		t.Fatalf("read %q: %v", a.body, err)
	}
	if message.Result.NextCursor == nil {
		return nil
	}
	return []string{*message.Result.NextCursor}
}

func ask(t *testing.T, r *http.Request) answer {
	t.Helper()
	res, err := roundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// impatience is long enough for an answer on loopback to begin, and short for a test to wait for one that never comes.
const impatience = 200 * time.Millisecond

// impatient returns the error of a request that gets no answer.
func impatient(t *testing.T, r *http.Request) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), impatience)
	defer cancel()
	res, err := roundTrip(r.WithContext(ctx))
	if err == nil {
		res.Body.Close()
		t.Fatalf("%s %s: got %s, want an error", r.Method, r.URL, res.Status)
	}
	return err
}

// begin returns the status and the body of an answer that has begun, to be read with little patience.
func begin(t *testing.T, r *http.Request) (int, io.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), impatience)
	t.Cleanup(cancel)
	res, err := roundTrip(r.WithContext(ctx))
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res.StatusCode, bufio.NewReader(res.Body)
}

// roundTrip uses a connection of its own, follows no redirect and repeats nothing.
func roundTrip(r *http.Request) (*http.Response, error) {
	return (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(r)
}

func setBody(r *http.Request, body string) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
}

func post(s *probetest.Server, message map[string]any) *http.Request {
	body, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequest(http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

func rpc(s *probetest.Server, method string) *http.Request {
	return post(s, map[string]any{"jsonrpc": "2.0", "id": 7, "method": method})
}

func modern(s *probetest.Server, method string, cursor []string) *http.Request {
	params := map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    modernVersion,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}}
	if cursor != nil {
		params["cursor"] = cursor[0]
	}
	r := post(s, map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	r.Header.Set("Mcp-Protocol-Version", modernVersion)
	r.Header.Set("Mcp-Method", method)
	return r
}

func initialize(s *probetest.Server, version string) *http.Request {
	return post(s, map[string]any{"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": map[string]any{
		"protocolVersion": version,
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "test", "version": "1"},
	}})
}

func legacy(s *probetest.Server, session, method string) *http.Request {
	r := rpc(s, method)
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return r
}

func notify(s *probetest.Server, session string) *http.Request {
	r := post(s, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	r.Header.Set("Mcp-Session-Id", session)
	return r
}

func closeSession(s *probetest.Server, session string) *http.Request {
	r, err := http.NewRequest(http.MethodDelete, s.URL, nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Mcp-Session-Id", session)
	return r
}
