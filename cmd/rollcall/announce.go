package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/store"
)

// announcer keeps word of this location's own network, with a notice for each channel. A location that has lost its network
// has perhaps lost its database too: what is to be said waits, in order.
type announcer struct {
	location string
	store    interface {
		Announce(ctx context.Context, e store.Event) (int, error)
	}
	noticed func(bool) // wakes the dispatcher
	log     *slog.Logger
	waiting chan store.Event

	isOffline atomic.Bool // as it was last told
}

const (
	// announceEvery is how often an announcement is tried that the database does not take.
	announceEvery = 5 * time.Second
	// maxAnnouncements may wait; a network that comes and goes more often than that is told of in the log alone.
	maxAnnouncements = 100
)

func newAnnouncer(location string, db store.Store, noticed func(bool), log *slog.Logger) *announcer {
	return &announcer{location: location, store: db, noticed: noticed, log: log, waiting: make(chan store.Event, maxAnnouncements)}
}

// offline is told when this location goes offline and when it is back.
func (a *announcer) offline(_ context.Context, offline bool, since time.Time) {
	a.isOffline.Store(offline)
	ev := alerts.LocationEvent(a.location, offline, since, time.Now())
	a.log.Warn("this location lost or regained its network", "event", ev.Kind, "since", since)
	select {
	case a.waiting <- ev:
	default:
		a.log.Error("word of this location is not passed on: too much of it waits", "event", ev.Kind)
	}
}

// run keeps what is announced until ctx ends.
func (a *announcer) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev := <-a.waiting:
			a.keep(ctx, ev)
		}
	}
}

func (a *announcer) keep(ctx context.Context, ev store.Event) {
	for {
		n, err := a.try(ctx, ev)
		if err == nil {
			a.noticed(n > 0)
			return
		}
		select {
		case <-ctx.Done():
			a.log.Error("word of this location is lost", "event", ev.Kind, "error", err)
			return
		case <-time.After(announceEvery):
		}
	}
}

func (a *announcer) try(ctx context.Context, ev store.Event) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	return a.store.Announce(ctx, ev)
}
