package postgres_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
)

// call is something a store does, and what it may look at meanwhile.
type call struct {
	name   string // begins with the name of the method
	do     func(ctx context.Context) error
	whole  []string // tables that it reads from end to end on purpose
	within []string // the only partitions that it may look into; nil says nothing
}

// believe takes every check at its word.
var believe = store.Judge{
	Check: func(_ store.Endpoint, s store.State, c store.Check) store.State {
		if status := store.Status(c.Result.Verdict); s.Status != status {
			s.Status, s.Since, s.Failure = status, c.Result.StartedAt, c.Result.Failure
		}
		return s
	},
	Vote: func(_ store.Endpoint, s store.State, places []store.Place, _ time.Time) store.State {
		s.Status, s.Since, s.Failure = places[0].State.Status, places[0].State.Since, places[0].State.Failure
		return s
	},
}

// halt has every endpoint that is down be in one incident about a chain.
func halt(s store.Situation) []store.Turn {
	at := s.Check.Ended()
	i := store.Incident{
		ID: store.NewID("inc"), Kind: store.IncidentChain, Subject: store.SubjectOfChain("evm 1"), Severity: store.StatusDown,
		StartedAt: at, OpenedAt: at,
	}
	in := slices.IndexFunc(s.Standing.Others, func(o store.Incident) bool { return o.Kind == store.IncidentChain })
	switch down := s.Standing.State.Status == store.StatusDown; {
	case down && in < 0:
		return []store.Turn{{Incident: i, Opens: true, Entries: []store.Entry{{At: at, Kind: store.EntryOpened}}, Tells: store.NoticeOpened}}
	case !down && in >= 0:
		i = *store.Resolve(s.Standing.Others[in], at, at, store.ResolutionRecovered)
		return []store.Turn{{Incident: i, Leaves: true, Entries: []store.Entry{{At: at, Kind: store.EntryLeft}}, Tells: store.NoticeResolved}}
	}
	return nil
}

// keepAll records checks as one group, all of which must be kept.
func keepAll(ctx context.Context, s store.Store, checks ...store.Check) error {
	out, err := s.Record(ctx, checks, believe)
	if err != nil {
		return err
	}
	for i, o := range out {
		if !o.Kept {
			return fmt.Errorf("check %d of %d is not kept: %+v", i+1, len(checks), o)
		}
	}
	return nil
}

// usual is an up check of a usual MCP conversation.
func usual(e store.Endpoint, location string, at time.Time) store.Check {
	r := probe.Result{StartedAt: at, Duration: 81 * time.Millisecond, Kind: probe.KindMCP, Era: probe.EraModern, Verdict: probe.Up}
	for i, name := range []string{"server/discover", "initialize", "initialized", "tools/list"} {
		r.Steps = append(r.Steps, probe.Step{
			Name: name, Method: name, Start: time.Duration(i) * 20 * time.Millisecond, Latency: 18 * time.Millisecond,
			Phases: probe.Phases{FirstByte: 17 * time.Millisecond}, HTTPStatus: 200, BytesIn: 512, BytesOut: 128,
		})
	}
	return store.NewCheck(e.ID, location, at, r)
}

// bad is usual with a failure, and with words to keep.
func bad(e store.Endpoint, location string, at time.Time) store.Check {
	r := usual(e, location, at).Result
	r.Verdict = probe.Down
	r.Failure = &probe.Failure{Step: "tools/list", Class: probe.ClassRPCError, Code: -32603, Message: "Internal error"}
	r.Steps[3].Class, r.Steps[3].Code, r.Steps[3].Message = probe.ClassRPCError, -32603, "Internal error"
	r.Transcript = []probe.Message{{Step: "tools/list", Sent: true, Head: "POST / HTTP/1.1", Body: "{}"}}
	return store.NewCheck(e.ID, location, at, r)
}

// promising is usual with a list of so many tools.
func promising(e store.Endpoint, at time.Time, tools int) store.Check {
	c := usual(e, "default", at)
	list := []byte("[")
	for i := range tools {
		list = fmt.Appendf(list, `%s{"inputSchema":{"type":"object"},"name":"tool%d"}`, []string{"", ","}[min(i, 1)], i)
	}
	list = append(list, ']')
	c.Result.Contract = &probe.Contract{Key: "modern", Hash: fmt.Sprintf("sha256:%x", sha256.Sum256(list)), Tools: list}
	return c
}

// parts names the partitions of checks of some days.
func parts(days ...time.Time) []string {
	names := []string{}
	for _, day := range days {
		names = append(names, "checks_"+day.Format("20060102"), "check_shapes_"+day.Format("20060102"))
	}
	return names
}

// callsOf does everything that a store can do, each method at least once, with a history behind it. The calls go in this
// order; those that make something make it anew each time.
func callsOf(h *history, db *postgres.DB) []call {
	h.turns++
	var (
		now       = store.Stamp(time.Now().Add(time.Duration(h.turns) * 5 * time.Second)) // later than what was recorded in the turn before
		day       = h.base.AddDate(0, 0, 1)
		last      = h.base.AddDate(0, 0, historyDays-1)
		old       = h.endpoints[7]
		e, twice  store.Endpoint
		c         store.Channel
		kept      store.Check
		incident  string
		delivered []store.Delivery
		user      store.User
		member    store.User
		invited   store.Invitation
		token     store.Token
		hash      = sha256.Sum256([]byte(store.NewID("secret")))
		me        = store.Instance{ID: store.NewID("i"), Location: store.NewID("location")}
		shards    []int

		maintenance  store.Maintenance
		subscription store.Subscription
		manual       store.Incident
	)
	months := func(from, to time.Time) (names []string) {
		for m := from; !m.After(to); m = m.AddDate(0, 0, 1) {
			names = append(names, "uptime_hours_"+m.Format("200601"))
		}
		return slices.Compact(names)
	}
	create := func(ctx context.Context, into *store.Endpoint) (err error) {
		fresh := store.NewEndpoint()
		fresh.URL, fresh.Channels, fresh.ContractNotices = "https://zz.example/mcp", []string{c.ID}, true
		fresh.Confirm.Failures = 1
		fresh.Headers = []probe.Header{{Name: "Authorization", Value: "Bearer x"}}
		*into, err = db.CreateEndpoint(ctx, fresh)
		return err
	}
	record := func(ctx context.Context, checks ...store.Check) error { return keepAll(ctx, db, checks...) }
	list := func(ctx context.Context, f store.CheckFilter) error {
		f.EndpointID, f.Limit = old.ID, 10
		for range 3 {
			page, err := db.Checks(ctx, f)
			if err != nil {
				return err
			}
			if len(page.Items) != 10 || page.Next == "" {
				return fmt.Errorf("%d checks, want a page with another behind it", len(page.Items))
			}
			kept, f.Cursor = page.Items[0], page.Next
		}
		return nil
	}
	return []call{
		{name: "Ping", do: db.Ping, whole: []string{"schema_migrations"}},
		{name: "CreateChannel", do: func(ctx context.Context) (err error) {
			c, err = db.CreateChannel(ctx, store.Channel{
				Name: store.NewID("channel"), Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://hooks.example/2"},
			})
			return err
		}},
		{name: "UpdateChannel", do: func(ctx context.Context) error {
			_, err := db.UpdateChannel(ctx, c.ID, func(c *store.Channel) error { c.Name += " again"; return nil })
			return err
		}},
		{name: "Channel", do: func(ctx context.Context) error { return second(db.Channel(ctx, c.ID)) }},
		{name: "Channels", do: func(ctx context.Context) error { return second(db.Channels(ctx)) }, whole: []string{"channels"}},
		{name: "CreateEndpoint", do: func(ctx context.Context) error {
			return errors.Join(create(ctx, &e), create(ctx, &twice))
		}},
		{name: "Record a first check", do: func(ctx context.Context) error { return record(ctx, usual(e, "default", now)) }},
		{name: "Record one that is down", do: func(ctx context.Context) error {
			out, err := db.Record(ctx, []store.Check{bad(e, "default", now.Add(time.Second))}, believe)
			if err == nil {
				incident = out[0].Opened
			}
			return err
		}, within: parts(now)},
		{name: "Record what is kept already", do: func(ctx context.Context) error {
			_, err := db.Record(ctx, []store.Check{bad(e, "default", now.Add(time.Second)), usual(old, "default", last)}, believe)
			return err
		}, within: append(parts(now, last), months(h.base, now)...)},
		{name: "Record one that is late, and the end of an hour", do: func(ctx context.Context) error {
			// Also the hour of an endpoint that was down ends.
			if err := record(ctx, bad(h.endpoints[11], "default", now), usual(h.endpoints[11], "default", now.Add(time.Hour))); err != nil {
				return err
			}
			late := time.Duration(now.UnixNano() % int64(time.Hour)).Truncate(time.Microsecond)
			return record(ctx, usual(h.endpoints[9], "default", day.Add(late)), usual(h.endpoints[10], "default", now))
		}, within: append(parts(day, now, now.Add(time.Hour)), months(h.base, now)...)},
		{name: "Record from several places", do: func(ctx context.Context) error {
			err := record(ctx, usual(twice, "fra", now), usual(twice, "nyc", now))
			return errors.Join(err, record(ctx, usual(twice, "fra", now.Add(time.Second))))
		}},
		{name: "Record under a lease", do: func(ctx context.Context) error {
			shift, err := db.Shift(ctx, store.Instance{ID: me.ID, Location: "default"}, time.Minute)
			if err != nil {
				return err
			}
			fenced := usual(e, "default", now.Add(2*time.Second))
			for _, lease := range shift.Held {
				if lease.Shard == store.ShardOf(e.ID) {
					fenced.Epoch = lease.Epoch
				}
			}
			return errors.Join(record(ctx, fenced), db.Leave(ctx, store.Instance{ID: me.ID, Location: "default"}))
		}},
		{name: "Record tool lists that change", do: func(ctx context.Context) error {
			for i := range 4 {
				if err := record(ctx, promising(e, now.Add(time.Duration(10+i)*time.Second), 1+i/2)); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "Record the head of a chain", do: func(ctx context.Context) error {
			node := usual(e, "default", now.Add(20*time.Second))
			node.Result.Kind = probe.KindEVM
			node.Result.Memory.Head = &probe.Head{Chain: "1", Height: 7, Seen: now}
			return record(ctx, node)
		}},
		{name: "Heads", do: func(ctx context.Context) error {
			heads, err := db.Heads(ctx, store.ChainKey(probe.KindEVM, "1"), now.Add(-time.Hour))
			if err == nil && len(heads) == 0 {
				err = errors.New("no heads")
			}
			return err
		}},
		{name: "Checks", do: func(ctx context.Context) error { return list(ctx, store.CheckFilter{}) }},
		{name: "Checks of a day", do: func(ctx context.Context) error {
			return list(ctx, store.CheckFilter{Since: day, Until: day.AddDate(0, 0, 1)})
		}, within: parts(day)},
		{name: "Checks since a day", do: func(ctx context.Context) error {
			return list(ctx, store.CheckFilter{Since: last, Verdict: probe.Up})
		}, within: append(parts(last), aheadOf(last)...)},
		{name: "Check", do: func(ctx context.Context) error {
			got, err := db.Check(ctx, kept.ID)
			if err == nil && len(got.Result.Steps) != 4 {
				err = fmt.Errorf("%d steps, want 4: the shape was not found", len(got.Result.Steps))
			}
			return err
		}, within: parts(last)},
		{name: "Endpoint", do: func(ctx context.Context) error { return second(db.Endpoint(ctx, old.Slug)) }, within: parts(last)},
		{name: "Endpoints", do: func(ctx context.Context) error { return second(db.Endpoints(ctx, store.EndpointFilter{Limit: 50})) },
			within: parts(last, now, now.Add(time.Hour), day)},
		{name: "Endpoints, filtered", do: func(ctx context.Context) error {
			page, err := db.Endpoints(ctx, store.EndpointFilter{
				Status: store.StatusUp, Tag: "prod", Query: "e", IDs: []string{old.ID, e.ID, h.endpoints[8].ID}, Limit: 1,
			})
			if err != nil {
				return err
			}
			return second(db.Endpoints(ctx, store.EndpointFilter{Limit: 2, Cursor: page.Next, PublicOnly: true}))
		}},
		{name: "Endpoints, all of them", do: func(ctx context.Context) error { return second(db.Endpoints(ctx, store.EndpointFilter{Limit: -1})) },
			whole: []string{"endpoints"}, within: parts(last, now, now.Add(time.Hour), day)},
		{name: "Roster", do: func(ctx context.Context) error { return second(db.Roster(ctx)) }, whole: []string{"endpoints"}},
		{name: "UpdateEndpoint", do: func(ctx context.Context) error {
			return second(db.UpdateEndpoint(ctx, old.Slug, func(e *store.Endpoint) error { e.Name = store.NewID("name"); return nil }))
		}},
		{name: "Uptime by the hour", do: func(ctx context.Context) error {
			return second(db.Uptime(ctx, old.ID, store.Hourly, day, day.AddDate(0, 0, 1)))
		}, within: months(day, day.AddDate(0, 0, 1))},
		{name: "Uptime by the day", do: func(ctx context.Context) error {
			return second(db.Uptime(ctx, old.ID, store.Daily, day.AddDate(-1, 0, 0), now))
		}, within: []string{}},
		{name: "Counts by the hour", do: func(ctx context.Context) error {
			return second(db.Counts(ctx, []string{old.ID, h.endpoints[8].ID}, store.Hourly, day))
		}, within: months(day, now.AddDate(0, 2, 0))},
		{name: "Counts by the day", do: func(ctx context.Context) error {
			return second(db.Counts(ctx, []string{old.ID}, store.Daily, now.AddDate(0, -1, 0)))
		}, within: []string{}},
		{name: "Tend", do: func(ctx context.Context) error {
			return second(db.Tend(ctx, store.Retention{Now: now, Checks: h.base, Hours: now.Add(-store.HoursKept), Audit: now.Add(-store.AuditKept)}))
		}, within: []string{}},
		{name: "Contracts", do: func(ctx context.Context) error {
			page, err := db.Contracts(ctx, store.ContractFilter{EndpointID: e.ID, Limit: 1})
			if err != nil || page.Next == "" {
				return fmt.Errorf("one of several pages: %+v, %w", page, err)
			}
			return second(db.Contracts(ctx, store.ContractFilter{EndpointID: e.ID, Cursor: page.Next}))
		}},
		{name: "Contract", do: func(ctx context.Context) error {
			page, err := db.Contracts(ctx, store.ContractFilter{EndpointID: e.ID})
			if err != nil || len(page.Items) == 0 {
				return fmt.Errorf("contracts %+v, %w", page, err)
			}
			return second(db.Contract(ctx, page.Items[0].ID))
		}},
		{name: "Events", do: func(ctx context.Context) error {
			page, err := db.Events(ctx, store.EventFilter{EndpointID: e.ID, Limit: 1})
			if err != nil || len(page.Items) == 0 {
				return fmt.Errorf("events %+v, %w", page, err)
			}
			return nil
		}},
		{name: "Announce", do: func(ctx context.Context) error {
			told, err := db.Announce(ctx, store.Event{
				At: now, Kind: store.EventLocationOffline, Severity: "warning", Title: store.NewID("offline"), Data: []byte(`{"a":1}`),
			})
			if err == nil && told == 0 {
				err = errors.New("nobody was told")
			}
			return err
		}, whole: []string{"endpoint_channels"}},
		{name: "Incidents", do: func(ctx context.Context) error {
			for _, f := range []store.IncidentFilter{
				{Limit: 1}, {EndpointID: e.ID}, {EndpointID: e.ID, Status: store.IncidentResolved}, {Status: store.IncidentOpen},
				{PublicOnly: true, Since: now.AddDate(0, 0, -7)}, {Subject: store.SubjectOf(old.ID), Limit: 1},
				{Kinds: []store.IncidentKind{store.IncidentManual}},
			} {
				page, err := db.Incidents(ctx, f)
				if err != nil {
					return err
				}
				if f.Cursor = page.Next; f.Cursor == "" {
					continue
				}
				if _, err = db.Incidents(ctx, f); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "Incident", do: func(ctx context.Context) error { return second(db.Incident(ctx, incident)) }},
		{name: "Raise", do: func(ctx context.Context) (err error) {
			manual, _, err = db.Raise(ctx, store.Incident{
				Kind: store.IncidentManual, Title: "hardware", Severity: store.StatusDegraded, Endpoints: []string{e.ID, old.ID},
			}, "admin", "we look into it", []string{c.ID})
			if err != nil {
				return err
			}
			_, again, err := db.Raise(ctx, manual, "admin", "", nil)
			if err == nil && !again {
				err = errors.New("a manual incident is another one each time")
			}
			return err
		}, whole: []string{"subscriptions"}},
		{name: "Act", do: func(ctx context.Context) error {
			out, err := db.Record(ctx, []store.Check{bad(e, "default", now.Add(25*time.Second))}, believe)
			if err != nil {
				return err
			}
			incident = out[0].Opened
			for _, a := range []store.Act{
				{Kind: store.ActAcknowledge}, {Kind: store.ActSnooze, Until: now.Add(time.Hour)},
				{Kind: store.ActComment, Text: "soon", Public: true}, {Kind: store.ActResolve}, {Kind: store.ActReopen},
			} {
				a.Author, a.At = "admin", now.Add(time.Second)
				for _, id := range []string{incident, manual.ID} {
					if _, err := db.Act(ctx, id, a); err != nil {
						return err
					}
				}
			}
			return nil
		}, whole: []string{"subscriptions"}},
		{name: "Clear", do: func(ctx context.Context) error {
			return second(db.Clear(ctx, manual.Subject, now.Add(time.Minute), store.ResolutionManual, "mended"))
		}, whole: []string{"subscriptions"}},
		{name: "Record what stands behind", do: func(ctx context.Context) error {
			_, err := db.UpdateEndpoint(ctx, twice.Slug, func(t *store.Endpoint) error { t.DependsOn = []string{e.ID, old.ID}; return nil })
			if err != nil {
				return err
			}
			return record(ctx, bad(twice, "fra", now.Add(time.Minute)))
		}, whole: []string{"subscriptions"}},
		{name: "Record a chain that stands still", do: func(ctx context.Context) error {
			halted := believe
			halted.Course = halt
			for _, v := range []probe.Verdict{probe.Down, probe.Up} {
				at := now.Add(30 * time.Second)
				var group []store.Check
				for _, of := range []store.Endpoint{e, h.endpoints[12]} {
					if v == probe.Up {
						at = at.Add(time.Minute)
					}
					check := usual(of, "default", at)
					check.Result.Verdict = v
					group = append(group, check)
				}
				if _, err := db.Record(ctx, group, halted); err != nil {
					return err
				}
			}
			chains, err := db.Incidents(ctx, store.IncidentFilter{Kinds: []store.IncidentKind{store.IncidentChain}})
			if err == nil && (len(chains.Items) == 0 || chains.Items[0].ResolvedAt == nil || len(chains.Items[0].Endpoints) != 2) {
				err = fmt.Errorf("incidents %+v, want one of two endpoints that is over", chains.Items)
			}
			return err
		}, whole: []string{"subscriptions", "incidents"}},
		{name: "Timeline", do: func(ctx context.Context) error {
			entries, err := db.Timeline(ctx, incident)
			if err == nil && len(entries) < 6 {
				err = fmt.Errorf("%d entries, want an opening and acts", len(entries))
			}
			return err
		}},
		{name: "PublicEntries", do: func(ctx context.Context) error {
			entries, err := db.PublicEntries(ctx, []string{incident, manual.ID})
			if err == nil && len(entries) == 0 {
				err = errors.New("nothing was said to everybody")
			}
			return err
		}},
		{name: "PendingNotices", do: func(ctx context.Context) error { return second(db.PendingNotices(ctx)) }},
		{name: "LeaseNotices", do: func(ctx context.Context) (err error) {
			delivered, err = db.LeaseNotices(ctx, "me", now.Add(time.Minute), time.Minute, 100)
			kinds := map[store.NoticeKind]bool{}
			for _, d := range delivered {
				kinds[d.Notice.Kind] = true
			}
			if err == nil && len(kinds) < 3 {
				err = fmt.Errorf("kinds %v, want notices of an incident, a contract and the service", kinds)
			}
			return err
		}},
		{name: "SettleNotice", do: func(ctx context.Context) error {
			for i, d := range delivered {
				s := store.Settlement{NoticeID: d.Notice.ID, LeaseID: d.LeaseID, At: now, Sent: true, Ref: "1.2"}
				switch i {
				case 0:
					s = store.Settlement{NoticeID: d.Notice.ID, LeaseID: d.LeaseID, At: now, RetryAt: now.Add(time.Hour), Error: "busy"}
				case 1:
					s = store.Settlement{NoticeID: d.Notice.ID, LeaseID: d.LeaseID, At: now, Permanent: true, Error: "gone"}
				}
				if err := db.SettleNotice(ctx, s); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "Resend", do: func(ctx context.Context) error { return db.Resend(ctx, delivered[1].Notice.ID, now) }},
		{name: "Attempts", do: func(ctx context.Context) error {
			for _, f := range []store.AttemptFilter{{Limit: 1}, {ChannelID: c.ID}, {IncidentID: incident, Limit: 1}} {
				page, err := db.Attempts(ctx, f)
				if err != nil || len(page.Items) == 0 {
					return fmt.Errorf("attempts of %+v: %+v, %w", f, page, err)
				}
				f.Cursor = page.Next
				if _, err := db.Attempts(ctx, f); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "Latencies by the day", do: func(ctx context.Context) error {
			return second(db.Latencies(ctx, []string{old.ID, h.endpoints[8].ID}, store.Daily, day.AddDate(-1, 0, 0)))
		}, within: []string{}},
		{name: "Rollups by the hour", do: func(ctx context.Context) error {
			return second(db.Rollups(ctx, []string{old.ID, h.endpoints[8].ID}, store.Hourly, day))
		}, within: months(day, now.AddDate(0, 2, 0))},
		{name: "Briefs", do: func(ctx context.Context) error {
			return second(db.Briefs(ctx, []string{old.ID, h.endpoints[8].ID}, day))
		}, within: months(day, now.AddDate(0, 2, 0))},
		{name: "Sight", do: func(ctx context.Context) error {
			sight, err := db.Sight(ctx, []string{old.Slug, h.endpoints[8].Slug, "nobody"})
			if err == nil && (len(sight.Sightings) != 2 || sight.LastEntry == "") {
				err = fmt.Errorf("sight %+v, want two endpoints and an entry", sight)
			}
			return err
		}},
		{name: "Index", do: func(ctx context.Context) error {
			return second(db.Index(ctx, store.EndpointFilter{}, true))
		}, whole: []string{"endpoints", "endpoint_states", "places"}},
		{name: "Locations", do: func(ctx context.Context) error {
			return second(db.Locations(ctx))
		}, whole: []string{"places", "instances", "leases"}},
		{name: "Tally", do: func(ctx context.Context) error {
			tally, err := db.Tally(ctx, old.ID, last.Add(time.Hour), time.Second)
			if err == nil && (tally.Counts.Up == 0 || tally.Under == 0) {
				err = fmt.Errorf("tally %+v, want the checks of a day", tally)
			}
			return err
		}, within: append(parts(last), aheadOf(last)...)},
		{name: "CreateMaintenance", do: func(ctx context.Context) (err error) {
			maintenance, err = db.CreateMaintenance(ctx, store.Maintenance{Title: "move", StartsAt: now, EndsAt: now.Add(time.Hour), All: true})
			return err
		}},
		{name: "UpdateMaintenance", do: func(ctx context.Context) error {
			return second(db.UpdateMaintenance(ctx, maintenance.ID, func(m *store.Maintenance) error { m.Text = "of a rack"; return nil }))
		}},
		{name: "Maintenance", do: func(ctx context.Context) error { return second(db.Maintenance(ctx, maintenance.ID)) }},
		{name: "Maintenances", do: func(ctx context.Context) error { return second(db.Maintenances(ctx, now)) }, whole: []string{"maintenances"}},
		{name: "DeleteMaintenance", do: func(ctx context.Context) error { return db.DeleteMaintenance(ctx, maintenance.ID) }},
		{name: "CreateStatusPage", do: func(ctx context.Context) error {
			return second(db.CreateStatusPage(ctx, store.StatusPage{Slug: "acme", Name: "ACME", Domain: "acme.example"}))
		}, whole: []string{"status_pages"}}, // it counts them
		{name: "UpdateStatusPage", do: func(ctx context.Context) error {
			return second(db.UpdateStatusPage(ctx, "acme", func(p *store.StatusPage) error { p.Text = "how we are"; return nil }))
		}},
		{name: "StatusPage", do: func(ctx context.Context) error { return second(db.StatusPage(ctx, "acme")) }},
		{name: "StatusPages", do: func(ctx context.Context) error { return second(db.StatusPages(ctx)) }, whole: []string{"status_pages"}},
		{name: "DeleteStatusPage", do: func(ctx context.Context) error { return db.DeleteStatusPage(ctx, "acme") }},
		{name: "CreateSubscription", do: func(ctx context.Context) (err error) {
			subscription, err = db.CreateSubscription(ctx, store.Subscription{
				Channel: store.Channel{Name: "me", Type: store.ChannelEmail, Settings: map[string]string{"to": store.NewID("me") + "@example.com"}},
				UserID:  h.user, All: true, ConfirmedAt: &now, ManageHash: hash[:],
			})
			return err
		}},
		{name: "UpdateSubscription", do: func(ctx context.Context) error {
			return second(db.UpdateSubscription(ctx, subscription.ID, func(s *store.Subscription) error {
				s.Severities = []store.Status{store.StatusDown}
				return nil
			}))
		}},
		{name: "Subscription", do: func(ctx context.Context) error { return second(db.Subscription(ctx, subscription.ID)) }},
		{name: "SubscriptionByToken", do: func(ctx context.Context) error { return second(db.SubscriptionByToken(ctx, hash[:])) }},
		{name: "Subscriptions", do: func(ctx context.Context) error {
			for _, f := range []store.SubscriptionFilter{
				{Limit: 10}, {PublicOnly: true, Limit: 10}, {UserID: h.user}, {Address: subscription.Address()},
				{PageID: new("")}, {Since: now.Add(-10 * time.Hour)},
			} {
				page, err := db.Subscriptions(ctx, f)
				if err != nil || len(page.Items) == 0 {
					return fmt.Errorf("subscriptions of %+v: %d, %w", f, len(page.Items), err)
				}
				f.Cursor = page.Next
				if _, err := db.Subscriptions(ctx, f); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "Crowd", do: func(ctx context.Context) error {
			posted := store.Subscription{Channel: store.Channel{Type: store.ChannelWebhook}}
			return errors.Join(second(db.Crowd(ctx, subscription)), second(db.Crowd(ctx, posted)))
		}, whole: []string{"subscriptions", "channels"}},
		{name: "ConfirmSubscription", do: func(ctx context.Context) error {
			secret, hash := store.NewSecret("")
			waits, err := db.CreateSubscription(ctx, store.Subscription{
				Channel: store.Channel{Name: "you", Type: store.ChannelEmail, Settings: map[string]string{"to": store.NewID("you") + "@example.com"}},
				All:     true, ConfirmHash: hash,
			})
			if err != nil {
				return err
			}
			_, err = db.ConfirmSubscription(ctx, waits.ID, store.HashSecret(secret), store.DefaultSubscriptionCaps)
			return errors.Join(err, db.DeleteSubscription(ctx, waits.ID))
		}, whole: []string{"subscriptions", "channels"}},
		{name: "Record what somebody who subscribed wants to hear", do: func(ctx context.Context) error {
			fallen := h.endpoints[13]
			out, err := db.Record(ctx, []store.Check{
				bad(fallen, "default", now.Add(time.Second)), usual(fallen, "default", now.Add(2*time.Second)),
			}, believe)
			if err != nil || out[0].Opened == "" || out[1].Resolved == "" {
				return fmt.Errorf("outcomes %+v, %w, want an incident from its beginning to its end", out, err)
			}
			told, err := db.LeaseNotices(ctx, "me", now.Add(time.Hour), time.Minute, 1000)
			for _, d := range told {
				if d.Subscription != nil && d.Incident.ID == out[0].Opened && len(d.Later) == 1 {
					return nil
				}
			}
			return fmt.Errorf("%d deliveries, %w, want one to the subscription with the end along", len(told), err)
		}, whole: []string{"subscriptions"}},
		{name: "PruneSubscriptions", do: func(ctx context.Context) error { return second(db.PruneSubscriptions(ctx, now)) }},
		{name: "DeleteSubscription", do: func(ctx context.Context) error { return db.DeleteSubscription(ctx, subscription.ID) }},
		{name: "PutSetupToken", do: func(ctx context.Context) error { return unlessSetUp(db.PutSetupToken(ctx, hash[:], now)) },
			whole: []string{"users"}},
		{name: "HasSetupToken", do: func(ctx context.Context) error { return second(db.HasSetupToken(ctx, hash[:])) },
			whole: []string{"setup_token"}},
		{name: "CreateFirstUser", do: func(ctx context.Context) (err error) {
			_, err = db.CreateFirstUser(ctx, hash[:], store.User{Name: "admin", PasswordHash: "x", Role: store.RoleAdmin})
			return unlessSetUp(err)
		}, whole: []string{"users", "setup_token"}},
		{name: "UserCount", do: func(ctx context.Context) error { return second(db.UserCount(ctx)) }, whole: []string{"users"}},
		{name: "UserByName", do: func(ctx context.Context) (err error) {
			user, err = db.UserByName(ctx, "ADMIN")
			return err
		}},
		{name: "CreateSession", do: func(ctx context.Context) error {
			return db.CreateSession(ctx, store.Session{TokenHash: hash[:], UserID: user.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
		}},
		{name: "Session", do: func(ctx context.Context) error {
			_, _, err := db.Session(ctx, hash[:], now)
			return err
		}},
		{name: "SeeSession", do: func(ctx context.Context) error { return db.SeeSession(ctx, hash[:], now) }},
		{name: "Sessions", do: func(ctx context.Context) error { return second(db.Sessions(ctx, user.ID, now)) }},
		{name: "DeleteSession", do: func(ctx context.Context) error { return db.DeleteSession(ctx, hash[:]) }},
		{name: "DeleteSessions", do: func(ctx context.Context) error { return second(db.DeleteSessions(ctx, user.ID, nil)) }},
		{name: "CreateUser", do: func(ctx context.Context) (err error) {
			id := store.NewID("sub")
			member, err = db.CreateUser(ctx, store.User{Name: id, Role: store.RoleAdmin, Issuer: "https://id.example", Subject: id})
			return err
		}},
		{name: "Users", do: func(ctx context.Context) error { return second(db.Users(ctx)) }, whole: []string{"users", "second_factors"}},
		{name: "User", do: func(ctx context.Context) error { return second(db.User(ctx, member.ID)) }},
		{name: "UserByIdentity", do: func(ctx context.Context) error { return second(db.UserByIdentity(ctx, member.Issuer, member.Subject)) }},
		{name: "PutFactor", do: func(ctx context.Context) error {
			return second(db.PutFactor(ctx, store.Factor{UserID: member.ID, Secret: "x"}))
		}},
		{name: "Factor", do: func(ctx context.Context) error { return second(db.Factor(ctx, member.ID)) }},
		{name: "UpdateFactor", do: func(ctx context.Context) error {
			return second(db.UpdateFactor(ctx, member.ID, func(f *store.Factor) error { f.LastStep++; return nil }))
		}},
		{name: "DeleteFactor", do: func(ctx context.Context) error { return db.DeleteFactor(ctx, member.ID) }},
		{name: "CreateInvitation", do: func(ctx context.Context) (err error) {
			invited, err = db.CreateInvitation(ctx, store.Invitation{
				Hash: hash[:], UserID: member.ID, Name: "x", Role: member.Role, ExpiresAt: now.Add(time.Hour),
			})
			return err
		}, whole: []string{"invitations"}},
		{name: "Invitations", do: func(ctx context.Context) error { return second(db.Invitations(ctx, now)) }, whole: []string{"invitations"}},
		{name: "Invitation", do: func(ctx context.Context) error { return second(db.Invitation(ctx, hash[:], now)) }},
		{name: "AcceptInvitation", do: func(ctx context.Context) error {
			return second(db.AcceptInvitation(ctx, hash[:], now, store.User{PasswordHash: "x"}))
		}},
		{name: "DeleteInvitation", do: func(ctx context.Context) error {
			if err := db.DeleteInvitation(ctx, invited.ID); !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("an invitation that was accepted: %w", err)
			}
			return nil
		}},
		{name: "UpdateUser, to be disabled", do: func(ctx context.Context) error {
			return second(db.UpdateUser(ctx, member.ID, func(u *store.User) error { u.DisabledAt = &now; return nil }))
		}, whole: []string{"users"}},
		{name: "DeleteUser", do: func(ctx context.Context) error { return db.DeleteUser(ctx, member.ID) }},
		{name: "Audits", do: func(ctx context.Context) error {
			for range 3 {
				m, err := db.CreateMaintenance(store.WithActor(ctx, store.Actor{Name: "ada"}), store.Maintenance{Title: "x", StartsAt: now})
				if err == nil {
					err = db.DeleteMaintenance(ctx, m.ID)
				}
				if err != nil {
					return err
				}
			}
			for _, f := range []store.AuditFilter{{}, {Author: "ada"}, {Noun: "maintenance"}} {
				f.Limit = 1
				page, err := db.Audits(ctx, f)
				if err != nil {
					return err
				}
				f.Cursor = page.Next
				if _, err := db.Audits(ctx, f); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "CreateToken", do: func(ctx context.Context) (err error) {
			token, err = db.CreateToken(ctx, store.Token{Name: "ci", Hash: hash[:], Role: store.RoleAdmin})
			return err
		}},
		{name: "UseToken", do: func(ctx context.Context) error { return second(db.UseToken(ctx, hash[:], now)) }},
		{name: "Logins", do: func(ctx context.Context) error {
			found, err := db.Logins(ctx, [][]byte{hash[:]}, now)
			if err == nil && len(found) == 0 {
				err = errors.New("no login, want the token")
			}
			return err
		}},
		{name: "Tokens", do: func(ctx context.Context) error { return second(db.Tokens(ctx)) }, whole: []string{"tokens"}},
		{name: "RevokeToken", do: func(ctx context.Context) error { return db.RevokeToken(ctx, token.ID, now) }},
		{name: "Shift", do: func(ctx context.Context) error {
			shift, err := db.Shift(ctx, me, time.Minute)
			for _, lease := range shift.Held {
				shards = append(shards, lease.Shard)
			}
			if err == nil && len(shards) != store.Shards {
				err = fmt.Errorf("%d shards, want all", len(shards))
			}
			return err
		}},
		{name: "Glance", do: func(ctx context.Context) error { return second(db.Glance(ctx, me)) }},
		{name: "Release", do: func(ctx context.Context) error { return db.Release(ctx, me, shards[:1]) }},
		{name: "Leave", do: func(ctx context.Context) error { return db.Leave(ctx, me) }},
		{name: "DeleteEndpoint", do: func(ctx context.Context) error {
			return errors.Join(db.DeleteEndpoint(ctx, e.Slug), db.DeleteEndpoint(ctx, twice.Slug))
		}, whole: []string{"maintenances", "subscriptions"}}, // what names them
		{name: "DeleteChannel", do: func(ctx context.Context) error { return db.DeleteChannel(ctx, c.ID) }, whole: []string{"endpoints"}},
	}
}

// aheadOf names the partitions of checks of the days after a day for which there may be room.
func aheadOf(day time.Time) (names []string) {
	for n := range 40 {
		names = append(names, parts(day.AddDate(0, 0, n))...)
	}
	return names
}

// second returns the error of a call whose answer does not matter here.
func second[T any](_ T, err error) error { return err }

// unlessSetUp lets it pass that there is a user already.
func unlessSetUp(err error) error {
	if _, ok := errors.AsType[store.Conflict](err); ok || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

func TestEveryMethodIsExercised(t *testing.T) {
	names := map[string]bool{"Close": true} // by everybody
	for _, c := range callsOf(&history{endpoints: make([]store.Endpoint, historyEndpoints)}, nil) {
		for i, r := range c.name + " " {
			if r == ' ' || r == ',' {
				names[c.name[:i]] = true
				break
			}
		}
	}
	for _, face := range []reflect.Type{reflect.TypeFor[store.Store](), reflect.TypeFor[store.Leaser]()} {
		for m := range face.Methods() {
			if !names[m.Name] {
				t.Errorf("no call of %s.%s: what it asks of Postgres is not looked at", face, m.Name)
			}
		}
	}
}
