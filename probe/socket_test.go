package probe_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

func TestSocket(t *testing.T) {
	t.Parallel()
	up, down := probe.Up, probe.Down
	type faults = []probetest.Fault
	type carrier = []probetest.CarrierFault
	const busy = `{"jsonrpc":"2.0","method":"busy"}`
	for name, tc := range map[string]struct {
		faults  faults
		carrier carrier
		want    want
	}{
		"healthy":                 {nil, nil, want{verdict: up}},
		"byte by byte":            {nil, carrier{probetest.Pieces()}, want{verdict: up}},
		"concatenated":            {nil, carrier{probetest.Glued()}, want{verdict: up}},
		"blank lines":             {nil, carrier{probetest.Greeting("\r\n\r\n \n")}, want{verdict: up}},
		"notifications before":    {nil, carrier{probetest.Greeting(busy), probetest.Before("m", busy+"\n"+busy)}, want{verdict: up}},
		"a byte order mark":       {nil, carrier{probetest.Greeting("\xEF\xBB\xBF")}, want{verdict: up, warnings: []string{"m framing"}}},
		"a request of its own":    {nil, carrier{probetest.Greeting(`{"jsonrpc":"2.0","method":"ping","id":1}`)}, want{verdict: up}},
		"an error":                {faults{probetest.RPCErrorAt("m", 200, -32601, "no such method")}, nil, want{verdict: down, class: probe.ClassRPCError, code: -32601}},
		"another id":              {faults{probetest.WrongIDAt("m")}, nil, want{verdict: down, class: probe.ClassIDMismatch}},
		"too large":               {faults{probetest.HugeBodyAt("m", 2<<20)}, nil, want{verdict: down, class: probe.ClassBodyTooLarge, message: "larger than 1048576 bytes"}},
		"cut off":                 {faults{probetest.HalfBodyAt("m")}, nil, want{verdict: down, class: probe.ClassTruncatedBody, message: "in the middle of a message"}},
		"closed":                  {faults{probetest.CloseAt("m")}, nil, want{verdict: down, class: probe.ClassConnect, message: "closed before an answer"}},
		"reset":                   {faults{probetest.ResetAt("m")}, nil, want{verdict: down, class: probe.ClassConnect, message: "connection reset"}},
		"a greeting":              {nil, carrier{probetest.Greeting("220 mail.example ESMTP\r\n")}, want{verdict: down, class: probe.ClassFraming, message: "no JSON-RPC: 220 mail.example ESMTP"}},
		"garbage for an answer":   {faults{probetest.GarbageAt("m")}, nil, want{verdict: down, class: probe.ClassFraming}},
		"an array for an answer":  {faults{probetest.EnvelopeAt("m", "[1]")}, nil, want{verdict: down, class: probe.ClassFraming}},
		"two answers in an array": {faults{probetest.EnvelopeAt("m", "[{},{}]")}, nil, want{verdict: down, class: probe.ClassInvalidEnvelope}},
		"TLS":                     {nil, carrier{probetest.Greeting("\x15\x03\x01\x00\x02\x02\x16")}, want{verdict: down, class: probe.ClassFraming, message: "use tls://"}},
		"messages with a header":  {nil, carrier{probetest.Before("m", "Content-Length: 40\r\n\r\n")}, want{verdict: down, class: probe.ClassFraming, message: `"content-length"`}},
		"headers":                 {nil, carrier{probetest.HeaderFraming()}, want{verdict: up}},
		"headers byte by byte":    {nil, carrier{probetest.HeaderFraming(), probetest.Pieces()}, want{verdict: up}},
		"bare line feeds":         {nil, carrier{probetest.BareLineFeeds()}, want{verdict: up, warnings: []string{"m framing"}}},
		"a negative length":       {nil, carrier{probetest.HeaderTextAt("m", "Content-Length: -1\r\n\r\n")}, want{verdict: down, class: probe.ClassFraming, message: "no length: -1"}},
		"no length":               {nil, carrier{probetest.HeaderTextAt("m", "Content-Type: x\r\n\r\n")}, want{verdict: down, class: probe.ClassFraming, message: "without Content-Length"}},
		"no header":               {nil, carrier{probetest.HeaderTextAt("m", "")}, want{verdict: down, class: probe.ClassFraming, message: `"line"`}},
		"a length too large":      {nil, carrier{probetest.HeaderTextAt("m", "Content-Length: 99999999999\r\n\r\n")}, want{verdict: down, class: probe.ClassBodyTooLarge}},
		"cut off behind a header": {faults{probetest.HalfBodyAt("m")}, carrier{probetest.HeaderFraming()}, want{verdict: down, class: probe.ClassTruncatedBody}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := probetest.JSONRPC(t, tc.faults...)
			fronts := map[string]*probetest.Carrier{"tcp": probetest.Socket(t, s, tc.carrier...)}
			if tc.want.message != "use tls://" && name != "reset" { // which a unix socket does not do
				fronts["unix"] = probetest.UnixSocket(t, s, tc.carrier...)
			}
			tc.want.steps = "m"
			if tc.want.class != "" {
				tc.want.step, tc.want.steps = "m", "m!"+string(tc.want.class)
			}
			for network, front := range fronts {
				t.Run(network, func(t *testing.T) {
					target := probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL, Timeout: 10 * time.Second}
					if front.HasHeaders() {
						target.Options.Framing = probe.FramingHeader
					}
					p := local()
					p.Limits.ResponseBytes = 1 << 20
					check(t, p.Probe(t.Context(), target), tc.want)
				})
			}
		})
	}
}

func TestSocketPhasesAndFacts(t *testing.T) {
	t.Parallel()
	front := probetest.Socket(t, probetest.JSONRPC(t), probetest.OverTLS())
	p := local()
	p.RootCAs = front.CertPool()
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL, Transcript: true})
	check(t, r, want{verdict: probe.Up, steps: "m"})
	step := r.Steps[0]
	if r.Facts.TLSExpiresAt == nil || step.Phases.TLS <= 0 || step.Phases.Connect <= 0 || step.Phases.FirstByte <= 0 || step.HTTPStatus != 0 {
		t.Errorf("facts %+v, step %+v", r.Facts, step)
	}
	if r.Facts.RemoteAddr == "" || !strings.HasSuffix(front.URL, r.Facts.RemoteAddr) || step.BytesIn == 0 || step.BytesOut == 0 {
		t.Errorf("remote address %q, step %+v", r.Facts.RemoteAddr, step)
	}
	if len(r.Transcript) != 2 || !r.Transcript[0].Sent || r.Transcript[1].Sent || !strings.Contains(r.Transcript[1].Body, `"ok":true`) {
		t.Errorf("transcript %+v", r.Transcript)
	}
	bad := probetest.Socket(t, probetest.JSONRPC(t), probetest.OverBadTLS())
	check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: bad.URL}),
		want{verdict: probe.Down, step: "m", class: probe.ClassTLS, steps: "m!tls"})
	plain := probetest.Socket(t, probetest.JSONRPC(t))
	check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: strings.Replace(plain.URL, "tcp:", "tls:", 1)}),
		want{verdict: probe.Down, step: "m", class: probe.ClassTLS, message: "does not speak TLS", steps: "m!tls"})
}

func TestHTTPServerAtASocket(t *testing.T) {
	t.Parallel()
	s := probetest.JSONRPC(t)
	check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: "tcp://" + strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/rpc")}),
		want{verdict: probe.Down, step: "m", class: probe.ClassFraming, message: "an HTTP server answers here: use http://", steps: "m!framing"})
}

func TestSocketInTime(t *testing.T) {
	t.Parallel()
	front := probetest.Socket(t, probetest.JSONRPC(t, probetest.HangAt("m")))
	check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL, Timeout: 200 * time.Millisecond}),
		want{verdict: probe.Down, step: "m", class: probe.ClassTimeout, message: "no first byte after", steps: "m!timeout"})
}

func TestSocketsAreRefused(t *testing.T) {
	t.Parallel()
	s := probetest.JSONRPC(t)
	var strict probe.Prober
	for _, front := range []*probetest.Carrier{probetest.Socket(t, s), probetest.UnixSocket(t, s)} {
		check(t, strict.Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: front.URL}),
			want{verdict: probe.Unknown, step: "m", class: probe.ClassEgressBlocked, steps: "m!ssrf_blocked"})
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

func TestUnixSocketsThatAreNot(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "probe") //nolint:usetesting // a test's own directory has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := net.Listen("unix", dir+"/left")
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, err := os.Stat(dir + "/left"); errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for path, message := range map[string]string{"/missing": "there is no socket at this path", "/left": "connection refused"} {
		check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: "unix://" + dir + path}),
			want{verdict: probe.Down, step: "m", class: probe.ClassConnect, message: message, steps: "m!connect"})
	}
}

func TestMCPOverASocket(t *testing.T) {
	t.Parallel()
	s := probetest.MCP(t, probetest.LegacyOnly())
	front := probetest.Socket(t, s)
	check(t, local().Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: front.URL, Era: probe.EraLegacy}),
		want{verdict: probe.Up, era: probe.EraLegacy, steps: "initialize initialized tools/list", tools: 3})
	front.Stop()
	if n := s.Sessions(); n != 0 {
		t.Errorf("%d sessions left open", n)
	}
}
