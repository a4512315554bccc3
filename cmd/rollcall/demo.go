package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// demo is a handful of endpoints, healthy and broken ones, served by this process on a loopback port of its own, for a
// newcomer to watch. What they answer is in demo_mcp.go and demo_chain.go, and how that changes in demo_life.go.
type demo struct {
	addr   string
	server *http.Server
	served chan error
}

// demoPlace is an endpoint of the demo.
type demoPlace struct {
	path, slug, name string
	kind             probe.Kind
}

// demoPlaces lists the demo's endpoints in the order of their paths.
var demoPlaces = []demoPlace{
	{"/mcp/modern", "demo-mcp-modern", "Demo: modern MCP server", probe.KindMCP},
	{"/mcp/legacy", "demo-mcp-legacy", "Demo: legacy MCP server", probe.KindMCP},
	{"/mcp/failing", "demo-mcp-failing", "Demo: MCP server that errs with HTTP 200", probe.KindMCP},
	{"/mcp/hanging", "demo-mcp-hanging", "Demo: MCP server that hangs", probe.KindMCP},
	{"/mcp/flaky", "demo-mcp-flaky", "Demo: MCP server that comes and goes", probe.KindMCP},
	{"/mcp/changing", "demo-mcp-changing", "Demo: MCP server whose tools change", probe.KindMCP},
	{"/chain/advancing", "demo-chain-advancing", "Demo: chain node that advances", probe.KindEVM},
	{"/chain/frozen", "demo-chain-frozen", "Demo: chain node that stopped an hour ago", probe.KindEVM},
}

// startDemo serves the demo's endpoints until it is closed; ctx bounds only the start.
func startDemo(ctx context.Context) (*demo, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the demo's endpoints: %w", err)
	}
	mux := http.NewServeMux()
	begun := time.Now()
	mux.Handle("/mcp/modern", leisurely(modernDemo(demoTools)))
	mux.Handle("/mcp/legacy", leisurely(newLegacyDemo(demoTools())))
	mux.Handle("/mcp/failing", leisurely(newLegacyDemo(nil)))
	mux.HandleFunc("/mcp/hanging", hang)
	mux.Handle("/mcp/flaky", comingAndGoing(begun, leisurely(modernDemo(demoTools))))
	mux.Handle("/mcp/changing", leisurely(modernDemo(changingTools)))
	for release, path := range demoReleases() {
		mux.Handle(path, modernDemo(func() []map[string]any { return toolsOf(release) }))
	}
	mux.Handle("/chain/advancing", leisurely(chainDemo(advancingHeight)))
	mux.Handle("/chain/frozen", leisurely(chainDemo(frozenSince(begun.Add(-time.Hour)))))
	d := &demo{
		addr: listener.Addr().String(),
		server: &http.Server{
			Handler:           http.MaxBytesHandler(mux, 64<<10),
			ReadHeaderTimeout: 5 * time.Second,
			IdleTimeout:       30 * time.Second,
		},
		served: make(chan error, 1),
	}
	go func() { d.served <- ignoreClosed(d.server.Serve(listener)) }()
	return d, nil
}

// Close drops every connection and returns when nothing is served any more.
func (d *demo) Close() error { return errors.Join(d.server.Close(), <-d.served) }

// endpoints returns the demo's endpoints, ready to be registered. Their URLs hold a port that is another one at every
// start; their slugs stay. They are checked often, so that a visitor sees life within seconds.
func (d *demo) endpoints() []store.Endpoint {
	endpoints := make([]store.Endpoint, 0, len(demoPlaces))
	for _, p := range demoPlaces {
		e := store.NewEndpoint()
		e.Slug, e.Name, e.Kind, e.URL = p.slug, p.name, p.kind, "http://"+d.addr+p.path
		e.Tags, e.Public = []string{"demo"}, true
		e.Schedule, e.Timeout, e.DegradedOver = "@every 10s", 4*time.Second, 2*time.Second
		e.Confirm.After = 2 * time.Second
		e.Alerting.FlapChanges = 20 // what comes and goes is to open and resolve incidents before a visitor's eyes
		endpoints = append(endpoints, e)
	}
	return endpoints
}

// probeWith returns p.Probe, with leave to dial the demo's own address whatever else on loopback is forbidden.
func (d *demo) probeWith(p *probe.Prober) func(context.Context, probe.Target) probe.Result {
	loopback := netip.PrefixFrom(netip.MustParseAddrPort(d.addr).Addr(), 32)
	home := &probe.Prober{
		Version:   p.Version,
		PublicURL: p.PublicURL,
		Limits:    p.Limits,
		Egress:    probe.Egress{Allow: []netip.Prefix{loopback}},
	}
	return func(ctx context.Context, t probe.Target) probe.Result {
		if u, err := url.Parse(t.URL); err == nil && u.Host == d.addr {
			return home.Probe(ctx, t)
		}
		return p.Probe(ctx, t)
	}
}
