package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// How the heads of other endpoints are had for a probe.
const (
	// headsFresh is how long the heads of a chain are taken as they were read: a thousand endpoints of one chain ask the
	// database once a second.
	headsFresh = time.Second
	// headsPatience bounds the question. A check without its peers is still a check.
	headsPatience = time.Second
	// headsAge is how old a head may be to be handed on at all; the probe judges what it is worth.
	headsAge = 15 * time.Minute
)

// headCache hands the heads of one chain to the probes of its endpoints. It is safe for concurrent use.
type headCache struct {
	store interface {
		Heads(ctx context.Context, chain string, since time.Time) ([]probe.Head, error)
	}
	log *slog.Logger

	mu     sync.Mutex
	chains map[string]*chainHeads // guarded by mu
}

// chainHeads are the heads of one chain as they were last read.
type chainHeads struct {
	mu    sync.Mutex // held while they are read, so that one reads for all who wait
	heads []probe.Head
	at    time.Time // when they were read; zero before
}

// peers returns the heads that other endpoints of the target's chain were seen at; nil for what is no chain node, or not
// known yet to be one. self is the name of the endpoint that is to be probed, empty for a target that is none.
func (h *headCache) peers(ctx context.Context, self string, t probe.Target) []probe.Head {
	chain := store.ChainOf(t)
	if chain == "" {
		return nil
	}
	c := h.chain(chain)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= headsFresh {
		c.heads = h.read(ctx, chain)
		c.at = time.Now()
	}
	return slices.DeleteFunc(slices.Clone(c.heads), func(head probe.Head) bool { return self != "" && head.Endpoint == self })
}

func (h *headCache) chain(name string) *chainHeads {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.chains == nil {
		h.chains = map[string]*chainHeads{}
	}
	if h.chains[name] == nil {
		h.forgetLocked()
		h.chains[name] = &chainHeads{}
	}
	return h.chains[name]
}

// maxChains bounds what is kept in memory: the id of a chain is what a node says, and a hostile one says another each time.
const maxChains = 1000

func (h *headCache) forgetLocked() {
	if len(h.chains) >= maxChains {
		clear(h.chains)
	}
}

// read returns the heads of a chain, none when the database does not answer: that is said elsewhere.
func (h *headCache) read(ctx context.Context, chain string) []probe.Head {
	ctx, cancel := context.WithTimeout(ctx, headsPatience)
	defer cancel()
	found, err := h.store.Heads(ctx, chain, time.Now().Add(-headsAge))
	if err != nil {
		h.log.Debug("heads not read", "error", err)
	}
	return found
}
