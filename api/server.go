// Package api shows and edits what Rollcall knows: the REST API, the public status API and badges, and the dashboard
// (whose pages api/web renders). It knows no database driver, no scheduler and no sender: what it needs of them comes in
// as functions in Config.
package api

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Config is everything the server needs. All members are required unless they say otherwise.
type Config struct {
	Store    store.Store
	Log      *slog.Logger
	Registry *prometheus.Registry // what /metrics shows; the server registers its own collectors on it
	Location string               // where this instance probes from
	Version  string

	// PublicURL is where people reach this service, without a trailing slash; empty means "as the request says".
	PublicURL string
	// AdminToken is a bearer token with the admin role; empty means that there is none.
	AdminToken string
	// TrustedProxies are the addresses whose X-Forwarded-For is believed; none by default.
	TrustedProxies []netip.Prefix

	// Probe asks a target once and keeps nothing.
	Probe func(ctx context.Context, t probe.Target) probe.Result
	// CheckNow probes an endpoint at once and records the check. store.ErrNotFound when there is no such endpoint.
	CheckNow func(ctx context.Context, slug string) (store.Check, error)
	// Changed is called after an endpoint was registered, changed or removed, so that the schedule follows at once.
	Changed func(ctx context.Context, endpointID, slug string)
	// Period reads a schedule and says how long it leaves between two checks at least; its error is fit for a user.
	Period func(schedule string) (time.Duration, error)
	// TestChannel sends a test message and reports, without secrets, why it did not arrive.
	TestChannel func(ctx context.Context, c store.Channel) error
	// Backlog reports how many checks wait in memory because the database is away.
	Backlog func() int
}
