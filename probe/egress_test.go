package probe_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// names resolves every host to the next list of addresses, the last list for ever.
type names struct {
	mu    sync.Mutex
	lists [][]string
	asked int
}

func (n *names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var addrs []netip.Addr
	for _, a := range n.lists[min(n.asked, len(n.lists)-1)] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	n.asked++
	return addrs, nil
}

func TestEgressRefuses(t *testing.T) {
	for addr, where := range map[string]string{
		"127.0.0.1":              "loopback range 127.0.0.0/8",
		"127.1.2.3":              "loopback",
		"::1":                    "loopback",
		"0.0.0.0":                "unspecified",
		"::":                     "unspecified",
		"10.1.2.3":               "private range 10.0.0.0/8",
		"172.31.255.255":         "private",
		"192.168.1.1":            "private",
		"fd12::1":                "private",
		"169.254.10.10":          "link-local",
		"fe80::1":                "link-local",
		"fe80::1%eth0":           "link-local",
		"169.254.169.254":        "metadata",
		"168.63.129.16":          "metadata",
		"100.100.100.200":        "metadata",
		"fd00:ec2::254":          "metadata",
		"100.64.0.1":             "carrier-grade NAT",
		"224.0.0.1":              "multicast",
		"ff02::1":                "multicast",
		"255.255.255.255":        "broadcast",
		"240.0.0.1":              "reserved",
		"198.18.0.1":             "benchmarking",
		"203.0.113.9":            "documentation",
		"2001:db8::1":            "documentation",
		"::ffff:127.0.0.1":       "loopback",
		"::ffff:169.254.169.254": "metadata",
		"::127.0.0.1":            "IPv4-compatible",
		"::ffff:0:127.0.0.1":     "IPv4-translated",
		"64:ff9b::127.0.0.1":     "loopback",
		"64:ff9b::a9fe:a9fe":     "metadata",
		"64:ff9b:1::1":           "NAT64",
		"2002:7f00:1::1":         "loopback",
		"2002:c0a8:101::1":       "private",
		"2001:0:1::1":            "Teredo",
		"fec0::1":                "site-local",
	} {
		for _, host := range []string{addr, "name.example"} {
			e := probe.Egress{Resolver: &names{lists: [][]string{{addr}}}}
			conn, err := e.DialContext(t.Context(), "tcp", net.JoinHostPort(host, "1"))
			if err == nil {
				conn.Close()
			}
			refused, ok := errors.AsType[*probe.EgressError](err)
			if !ok {
				t.Errorf("%s: error %v, want a refusal", host, err)
				continue
			}
			if !strings.Contains(refused.Range, where) || refused.Host != host {
				t.Errorf("%s as %s: range %q of %q, want one that says %q", addr, host, refused.Range, refused.Host, where)
			}
			if text := refused.Error(); !strings.Contains(text, refused.Range) || !strings.Contains(text, "--allow-private "+refused.Addr.WithZone("").String()+"/") {
				t.Errorf("%s: %q names neither range nor way out", addr, text)
			}
		}
	}
}

func TestEgressLetsPublicAddressesPass(t *testing.T) {
	for _, addr := range []string{"1.1.1.1", "8.8.8.8", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::1", "172.32.0.1", "100.128.0.1", "::ffff:1.1.1.1"} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // whether the address answers is not the question
		_, err := probe.Egress{}.DialContext(ctx, "tcp", net.JoinHostPort(addr, "1"))
		if _, refused := errors.AsType[*probe.EgressError](err); refused || err == nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestEgressAllows(t *testing.T) {
	s := probetest.MCP(t)
	for name, egress := range map[string]probe.Egress{
		"anything":         {Any: true},
		"the address":      {Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		"one of the range": {Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")}},
	} {
		p := probe.Prober{Egress: egress}
		if r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: s.URL}); r.Verdict != probe.Up {
			t.Errorf("%s: %s %+v", name, r.Verdict, r.Failure)
		}
	}
}

func TestProbeOfARefusedAddress(t *testing.T) {
	s := probetest.MCP(t)
	p := probe.Prober{}
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindAuto, URL: s.URL})
	check(t, r, want{verdict: probe.Unknown, step: "server/discover", class: probe.ClassEgressBlocked, message: "--allow-private 127.0.0.1/32", steps: "server/discover!ssrf_blocked"})
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// The name is public when it is checked and private a moment later: a prober that resolved twice would dial the second.
func TestEgressDialsWhatItChecked(t *testing.T) {
	s := probetest.MCP(t)
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/mcp"))
	resolver := &names{lists: [][]string{{"127.0.0.1"}, {"169.254.169.254"}}}
	p := probe.Prober{Egress: probe.Egress{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Resolver: resolver}}
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: "http://rebind.example:" + port + "/mcp"})
	if r.Verdict != probe.Up || resolver.asked != 1 || r.Facts.RemoteAddr != "127.0.0.1:"+port {
		t.Errorf("%s %+v, resolved %d times, dialled %s", r.Verdict, r.Failure, resolver.asked, r.Facts.RemoteAddr)
	}

	// A connection that the server closes is dialled again, and what the name leads to by then is checked again.
	s.SetFaults(probetest.HeaderAt("server/discover", "Connection", "close"))
	resolver.asked = 0
	r = p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: "http://rebind.example:" + port + "/mcp"})
	check(t, r, want{verdict: probe.Unknown, step: "tools/list", class: probe.ClassEgressBlocked, message: "169.254.169.254", era: probe.EraModern,
		steps: "server/discover tools/list!ssrf_blocked"})
}

func TestEgressTriesTheAddressesThatAreLeft(t *testing.T) {
	s := probetest.MCP(t)
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/mcp"))
	e := probe.Egress{
		Allow:    []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Resolver: &names{lists: [][]string{{"10.0.0.1", "127.0.0.9", "127.0.0.1"}}}, // refused, dead, alive
	}
	conn, err := e.DialContext(t.Context(), "tcp", "many.example:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.RemoteAddr().String(); got != "127.0.0.1:"+port {
		t.Errorf("dialled %s", got)
	}
}

func TestNamesThatLeadNowhere(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		verdict probe.Verdict
		class   probe.Class
	}{
		"no such name":            {&net.DNSError{Err: "no such host", Name: "x.example", IsNotFound: true}, probe.Down, probe.ClassDNS},
		"no addresses":            {nil, probe.Down, probe.ClassDNS},
		"the name's own servers":  {&net.DNSError{Err: "server misbehaving", Name: "x.example", IsTemporary: true}, probe.Down, probe.ClassDNS},
		"our resolver is not up":  {&net.DNSError{Err: "read udp 127.0.0.1:1->127.0.0.53:53: read: connection refused", Name: "x.example", IsTemporary: true}, probe.Unknown, probe.ClassProbeError},
		"our network is not up":   {&net.DNSError{Err: "dial udp 9.9.9.9:53: connect: network is unreachable", Name: "x.example", IsTemporary: true}, probe.Unknown, probe.ClassProbeError},
		"nobody answers about it": {&net.DNSError{Err: "i/o timeout", Name: "x.example", IsTimeout: true}, probe.Down, probe.ClassDNS},
	} {
		t.Run(name, func(t *testing.T) {
			p := probe.Prober{Egress: probe.Egress{Resolver: deadResolver{tc.err}}}
			r := p.Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: "http://x.example/key-0123456789abcdef0123"})
			check(t, r, want{verdict: tc.verdict, step: "eth_blockNumber", class: tc.class, steps: "eth_blockNumber!" + string(tc.class)})
		})
	}
}

type deadResolver struct{ err error }

func (d deadResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, d.err
}
