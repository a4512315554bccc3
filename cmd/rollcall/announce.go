package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// announcer keeps word of this location's own network: an incident from when it is lost until it is back, which every channel
// hears of. A location that has lost its network has perhaps lost its database too: what is to be said waits, in order.
type announcer struct {
	location string
	store    interface {
		Channels(ctx context.Context) ([]store.Channel, error)
		Raise(ctx context.Context, i store.Incident, author, text string, channels []string) (store.Incident, bool, error)
		Clear(ctx context.Context, subject string, at time.Time, how store.Resolution, text string) (store.Incident, error)
	}
	noticed func(bool) // wakes the dispatcher
	log     *slog.Logger
	waiting chan word

	isOffline atomic.Bool // as it was last told
}

// word says what became of the network, when.
type word struct {
	offline   bool
	since, at time.Time
}

const (
	// announceEvery is how often an announcement is tried that the database does not take.
	announceEvery = 5 * time.Second
	// maxAnnouncements may wait; a network that comes and goes more often than that is told of in the log alone.
	maxAnnouncements = 100
)

func newAnnouncer(location string, db store.Store, noticed func(bool), log *slog.Logger) *announcer {
	return &announcer{location: location, store: db, noticed: noticed, log: log, waiting: make(chan word, maxAnnouncements)}
}

// begin ends what a process before may have left open: it was killed while this location was offline.
func (a *announcer) begin() { a.waiting <- word{at: time.Now()} }

// offline is told when this location goes offline and when it is back.
func (a *announcer) offline(_ context.Context, offline bool, since time.Time) {
	a.isOffline.Store(offline)
	a.log.Warn("this location lost or regained its network", "offline", offline, "since", since)
	select {
	case a.waiting <- word{offline, since, time.Now()}:
	default:
		a.log.Error("word of this location is not passed on: too much of it waits", "offline", offline)
	}
}

// run keeps what is announced until ctx ends.
func (a *announcer) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case w := <-a.waiting:
			a.keep(ctx, w)
		}
	}
}

func (a *announcer) keep(ctx context.Context, w word) {
	for {
		err := a.try(ctx, w)
		if err == nil {
			a.noticed(true)
			return
		}
		select {
		case <-ctx.Done():
			a.log.Error("word of this location is lost", "offline", w.offline, "error", err)
			return
		case <-time.After(announceEvery):
		}
	}
}

func (a *announcer) try(ctx context.Context, w word) error {
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	subject := store.SubjectOfLocation(a.location)
	if !w.offline {
		_, err := a.store.Clear(ctx, subject, w.at, store.ResolutionRecovered, "")
		if errors.Is(err, store.ErrNotFound) {
			return nil // somebody said that it is over
		}
		return err
	}
	channels, err := a.store.Channels(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, 0, len(channels))
	for _, c := range channels {
		ids = append(ids, c.ID)
	}
	_, _, err = a.store.Raise(ctx, store.Incident{
		Kind: store.IncidentLocation, Subject: subject, Title: a.location, Severity: store.StatusUnknown, StartedAt: w.since, OpenedAt: w.at,
		Cause: probe.Failure{
			Class: probe.ClassLocationOffline, Message: "most endpoints and every reference address failed at once",
		},
	}, "", "", ids)
	return err
}
