package probe_test

import (
	"context"
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/rollcallhq/rollcall/probe"
)

// nameServer answers every question that the name does not exist, and returns its address.
func nameServer(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return // closed with the test
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil {
				continue
			}
			m.Header = dnsmessage.Header{ID: m.ID, Response: true, RCode: dnsmessage.RCodeNameError}
			m.Additionals = nil
			if answer, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

// The resolver of package net dials name servers under the hooks that observe the check's own connection.
func TestConnectionsToNameServersAreNotTheEndpoints(t *testing.T) {
	server := nameServer(t)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server)
	}}
	p := &probe.Prober{Egress: probe.Egress{Any: true, Resolver: resolver}}
	r := p.Probe(t.Context(), probe.Target{Kind: probe.KindMCP, URL: "https://nobody.example/mcp"})
	if r.Failure == nil || r.Failure.Class != probe.ClassDNS {
		t.Fatalf("failure %+v, want class dns", r.Failure)
	}
	phases := r.Steps[0].Phases
	if phases.DNS == 0 || phases.Connect != 0 {
		t.Errorf("phases %+v; want time in DNS and none in connecting", phases)
	}
	if r.Facts.RemoteAddr != "" {
		t.Errorf("remote address %s; want none: that is a name server's", r.Facts.RemoteAddr)
	}
}
