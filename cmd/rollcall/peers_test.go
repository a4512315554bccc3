package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

// TestRealPeers holds the real binary against servers of other people's making: MCP servers, gateways, chain nodes, agents
// and a language server, while they are well, frozen, gone, and back again.
//
// All of them go through each stage together. A frozen server costs a whole timeout and no work, so that twenty of them
// take as long as one.
func TestRealPeers(t *testing.T) {
	binary(t) // a build that fails is told once, before anything is started
	peers := realPeers(t)
	launch(peers)
	t.Run("check sees each as what it is", func(t *testing.T) { seeHealthy(t, peers) })
	t.Run("one of two eras is up in the older one, too", func(t *testing.T) { seeLegacy(t, peers, "typescript-dual-era") })
	t.Run("a frozen one has a timeout", func(t *testing.T) {
		for _, p := range peers {
			p.freeze()
		}
		seeBroken(t, peers, "timeout")
		for _, p := range peers {
			p.thaw()
		}
	})
	t.Run("serve tells each outage once, and its end", func(t *testing.T) { outages(t, peers) })
}

// sighting is what `rollcall check --json` says of a peer.
type sighting struct {
	Verdict, Class  string
	Kind            string
	Era             string
	ProtocolVersion string
	ServerName      string
	Tools           int
	ChainID         string
	Height          bool // whether one is known
}

// up is the sighting of a healthy endpoint.
func (s sighting) up() sighting {
	s.Verdict = "up"
	return s
}

// seeHealthy asks for every face until it is up, which takes a chain its first blocks, and compares what was seen.
func seeHealthy(t *testing.T, peers []*peer) {
	seen := lookAt(peers, func(f *face) seen {
		const patience = time.Minute
		end, tick := time.After(patience), time.NewTicker(250*time.Millisecond)
		defer tick.Stop()
		for {
			got := f.see(10 * time.Second)
			if got.err != nil || got.Verdict == "up" {
				return got
			}
			select {
			case <-tick.C:
			case <-end:
				return got
			}
		}
	})
	compare(t, peers, seen, func(f *face) sighting { return f.want.up() })
}

// seeLegacy asks a server of both eras as a client of 2025 would, which the command line has no flag for: it takes the
// newest that is spoken.
func seeLegacy(t *testing.T, peers []*peer, slug string) {
	for _, p := range peers {
		if p.faces[0].slug != slug {
			continue
		}
		prober := &probe.Prober{Version: "test", Egress: probe.Egress{Any: true}}
		got := prober.Probe(t.Context(), probe.Target{
			Kind: probe.KindMCP, Era: probe.EraLegacy, URL: p.faces[0].url(), Timeout: 10 * time.Second,
		})
		if got.Verdict != probe.Up || got.Facts.ProtocolVersion != "2025-11-25" {
			t.Errorf("got verdict %s with protocol %q, %+v", got.Verdict, got.Facts.ProtocolVersion, got.Failure)
		}
		return
	}
	t.Errorf("no peer is called %s", slug)
}

// seeBroken asks every face once: each must be down for the reason given.
func seeBroken(t *testing.T, peers []*peer, class string) {
	seen := lookAt(peers, func(f *face) seen {
		got := f.see(2 * time.Second)
		got.sighting = sighting{Verdict: got.Verdict, Class: got.Class} // what it told before it broke is not the question
		return got
	})
	compare(t, peers, seen, func(*face) sighting { return sighting{Verdict: "down", Class: class} })
}

// lookAt calls look for every face, some at a time, and returns what each saw.
func lookAt(peers []*peer, look func(*face) seen) map[*face]seen {
	const atOnce = 8
	var wg sync.WaitGroup
	var mu sync.Mutex // guards all
	all := make(map[*face]seen)
	slots := make(chan struct{}, atOnce)
	for _, p := range peers {
		for _, f := range p.faces {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				got := look(f)
				mu.Lock()
				defer mu.Unlock()
				all[f] = got
			})
		}
	}
	wg.Wait()
	return all
}

func compare(t *testing.T, peers []*peer, all map[*face]seen, want func(*face) sighting) {
	t.Helper()
	for _, p := range peers {
		for _, f := range p.faces {
			t.Run(f.slug, func(t *testing.T) {
				got := all[f]
				if got.err != nil {
					t.Fatal(got.err)
				}
				if diff := cmp.Diff(got.sighting, want(f)); diff != "" {
					t.Errorf("got (-) and want (+):\n%s%s", diff, got.raw)
				}
			})
		}
	}
}

// seen is what one run of `rollcall check --json` said.
type seen struct {
	sighting
	raw []byte
	err error // it said nothing that can be read, or its exit code is not that of its verdict
}

// look runs `rollcall check --json` with more arguments.
func look(bin string, args ...string) seen {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, append([]string{"check", "--json"}, args...)...)
	raw, err := cmd.Output()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
		raw = append(raw, exit.Stderr...)
	} else if err != nil {
		return seen{err: err}
	}
	var check struct {
		Verdict string `json:"verdict"`
		Class   string `json:"class"`
		Kind    string `json:"kind"`
		Facts   struct {
			Era             string  `json:"era"`
			ProtocolVersion string  `json:"protocol_version"`
			ServerName      string  `json:"server_name"`
			Tools           int     `json:"tools"`
			Height          *uint64 `json:"height"`
			ChainID         string  `json:"chain_id"`
		} `json:"facts"`
	}
	if err := json.Unmarshal(raw, &check); err != nil {
		return seen{err: fmt.Errorf("rollcall check --json %q: exit code %d, %w in %s", args, code, err, raw)}
	}
	if wantCode := map[string]int{"up": 0, "degraded": 1, "down": 1, "gated": 3, "unknown": 3}[check.Verdict]; code != wantCode {
		err = fmt.Errorf("rollcall check --json %q: exit code %d for verdict %q", args, code, check.Verdict)
	} else {
		err = nil
	}
	f := check.Facts
	return seen{err: err, raw: raw, sighting: sighting{
		Verdict: check.Verdict, Class: check.Class, Kind: check.Kind,
		Era: f.Era, ProtocolVersion: f.ProtocolVersion, ServerName: f.ServerName, Tools: f.Tools,
		ChainID: f.ChainID, Height: f.Height != nil,
	}}
}

// outages stops and starts every peer under one running service.
func outages(t *testing.T, peers []*peer) {
	ops := newWebhook(t)
	service := serveInstance(t, nil, "--allow-private", "127.0.0.0/8")
	// So many outages at once on one channel would be a storm, which is told in one digest.
	var channels []string
	for _, name := range []string{"ops", "more ops"} {
		var channel struct{ ID string }
		service.call("POST", "/api/v1/channels", object{"name": name, "type": "slack", "webhook_url": ops.url}, 201, &channel)
		channels = append(channels, channel.ID)
	}
	var slugs []string
	for _, p := range peers {
		for _, f := range p.faces {
			slugs = append(slugs, f.slug)
			endpoint := f.endpoint()
			endpoint["schedule"], endpoint["timeout"] = "@every 6s", "5s"
			endpoint["confirm"] = object{"failures": 2, "successes": 1, "after": "1s"}
			endpoint["channels"] = channels[len(slugs)%2 : len(slugs)%2+1]
			service.call("POST", "/api/v1/endpoints", endpoint, 201, nil)
		}
	}
	all := func(what string, holds func(slug string) bool) {
		t.Helper()
		for _, slug := range slugs {
			awaitWithin(t, time.Minute, slug+": "+what, func() bool { return holds(slug) })
		}
	}
	all("to be up", func(slug string) bool { return service.status(slug) == "up" })
	for _, p := range peers {
		p.stop()
	}
	t.Run("a stopped one refuses connections", func(t *testing.T) { seeBroken(t, peers, "connect") })
	all("the alert", func(slug string) bool { return ops.heard(slug+" is down") > 0 })
	launch(peers)
	t.Run("check sees each as it was", func(t *testing.T) { seeHealthy(t, peers) })
	all("the resolution", func(slug string) bool { return ops.heard(slug+" has recovered") > 0 })
	for _, slug := range slugs {
		incidents := service.incidents(slug)
		if len(incidents) != 1 || incidents[0]["status"] != "resolved" {
			t.Errorf("%s: got incidents %v, want a single one, resolved", slug, incidents)
		}
	}
	service.stop() // and with it all deliveries, so that the count is final
	for _, slug := range slugs {
		down, up := ops.heard(slug+" is down"), ops.heard(slug+" has recovered")
		if down != 1 || up != 1 {
			t.Errorf("%s: heard %d alerts and %d resolutions, want one of each; all messages:\n%s", slug, down, up, ops)
		}
	}
}
