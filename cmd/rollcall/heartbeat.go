package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// heartbeat is a dead man's switch: it calls a URL while all is well, and whoever listens there tells somebody when the calls
// stay away.
type heartbeat struct {
	url     string // a secret: whoever has it can pretend that all is well
	healthy func(ctx context.Context) error
	client  *http.Client
	log     *slog.Logger

	failing bool // the latest call did not arrive
}

const (
	heartbeatEvery   = time.Minute
	heartbeatTimeout = 20 * time.Second
)

// beat calls the URL when all is well. What goes wrong is said once, without the URL.
func (h *heartbeat) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	if err := h.healthy(ctx); err != nil {
		h.log.Warn("heartbeat held back", "reason", err)
		return
	}
	err := h.call(ctx)
	if err != nil && !h.failing && !errors.Is(ctx.Err(), context.Canceled) {
		h.log.Warn("heartbeat not delivered", "error", err)
	}
	h.failing = err != nil
}

func (h *heartbeat) call(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url, nil)
	if err != nil {
		return errors.New("the URL cannot be called")
	}
	req.Header.Set("User-Agent", "rollcall/"+versionString())
	resp, err := h.client.Do(req)
	if err != nil {
		return errors.New("no answer from the host of the URL") // the error's own words hold the URL
	}
	defer resp.Body.Close() //nolint:errcheck // nothing depends on how it ends
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("answered with HTTP status %d", resp.StatusCode)
	}
	return nil
}

// newHeartbeatClient returns a client that follows no redirect: the URL is a secret, and for its host alone.
func newHeartbeatClient() *http.Client {
	return &http.Client{
		Timeout:       heartbeatTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
