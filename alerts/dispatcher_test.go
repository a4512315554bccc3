package alerts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/store"
)

func TestDispatcher(t *testing.T) {
	tests := []struct {
		name string
		test func(t *testing.T, f *fixture)
	}{
		{"delivers what is due and keeps what the channel gave for it", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.run(2 * time.Second)
			f.wantSent("ch_1 inc_1 opened")
			if got := f.store.settlements[0]; !got.Sent || got.Ref != "ref of inc_1" || got.Error != "" {
				t.Errorf("settlement = %+v, want sent with its ref", got)
			}
		}},
		{"tells of a changed tool list", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeContract)
			d := &f.store.list[0]
			d.Notice.IncidentID, d.Notice.EventID, d.Incident = "", "evt_1", store.Incident{}
			d.Event = &store.Event{ID: "evt_1", Severity: "breaking", Title: "The tool list changed", Data: []byte(`{"changes": [{"rank": "breaking", "tool": "radar", "message": "the tool is gone"}]}`)}
			f.run(2 * time.Second)
			f.wantSent("ch_1 inc_1 contract")
			if got := f.sender.messages[0]; got.Title != "inc_1: the tool list changed" || !slices.Equal(got.Changes, []string{"breaking: radar: the tool is gone"}) {
				t.Errorf("message %+v", got)
			}
		}},
		{"tells of a location of ours that lost its network, which has no endpoint", func(t *testing.T, f *fixture) {
			f.add("", "ch_1", store.NoticeService)
			d := &f.store.list[0]
			d.Notice.EventID, d.Incident, d.Endpoint = "evt_1", store.Incident{}, store.Endpoint{}
			d.Event = &store.Event{
				ID: "evt_1", At: time.Now(), Kind: store.EventLocationOffline,
				Data: []byte(`{"location": "fra", "since": "2026-11-21T12:03:20Z", "until": null, "endpoints": 3}`),
			}
			f.run(2 * time.Second)
			f.wantSent("ch_1  service")
			if got := f.sender.messages[0]; got.Title != "Location fra lost its network at 12:03 UTC" || got.Location != "fra" || got.Endpoint != "" {
				t.Errorf("message %+v", got)
			}
			if !f.store.settlements[0].Sent {
				t.Errorf("settlement = %+v, want sent", f.store.settlements[0])
			}
		}},
		{"looks at once when woken", func(t *testing.T, f *fixture) {
			wake := make(chan struct{})
			f.config.Wake, f.config.Poll = wake, time.Hour
			stop := f.start()
			time.Sleep(time.Minute)
			f.add("inc_1", "ch_1", store.NoticeOpened)
			wake <- struct{}{}
			synctest.Wait()
			f.wantSent("ch_1 inc_1 opened")
			stop()
		}},
		{"keeps the order of an incident, and hands the ref on", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.fail(3, errors.New("away"))
			f.run(time.Minute)
			f.add("inc_1", "ch_1", store.NoticeResolved)
			f.run(time.Minute)
			f.wantSent("ch_1 inc_1 opened", "ch_1 inc_1 resolved")
			if got, want := f.sender.refs, []string{"", "ref of inc_1"}; !slices.Equal(got, want) {
				t.Errorf("refs handed to the sender = %q, want %q", got, want)
			}
		}},
		{"tells an outage that is over by then in one message", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_1", "ch_1", store.NoticeResolved)
			f.fail(3, errors.New("away"))
			f.run(time.Minute)
			if got := len(f.sender.sent); got != 1 || len(f.store.list) != 0 {
				t.Errorf("%d messages, %d notices left; want one message that settles both", got, len(f.store.list))
			}
		}},
		{"takes no for an answer from a channel that has no place for a message", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeUpdated)
			f.sender.passes = true
			f.run(time.Minute)
			if got := f.store.settlements; len(got) != 1 || !got[0].Passed || len(f.store.list) != 0 {
				t.Errorf("settlements = %+v, want one that is passed", got)
			}
			f.wantMetric("rollcall_deliveries_total", 1, "passed", "slack")
		}},
		{"names itself as the holder of its leases", func(t *testing.T, f *fixture) {
			f.config.Holder = "dsp_mine"
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.run(time.Second)
			if got := f.store.holders[f.store.settlements[0].LeaseID]; got != "dsp_mine" {
				t.Errorf("the lease is held by %q, want the name that was given", got)
			}
		}},
		{"leaves a channel alone of which another one holds a lease", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			if _, err := f.store.LeaseNotices(t.Context(), "another", time.Now(), time.Minute, 10); err != nil {
				t.Fatal(err)
			}
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.add("inc_3", "ch_2", store.NoticeOpened)
			f.run(30 * time.Second)
			f.wantSent("ch_2 inc_3 opened")
		}},
		{"waits twice as long after each failure, up to a bound", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.fail(12, errors.New("away"))
			f.run(3 * time.Hour)
			f.wantSent("ch_1 inc_1 opened")
			for i, pause := range f.sender.pauses() {
				longest := min(5*time.Second<<i, 15*time.Minute)
				if pause < longest/2 || pause > longest+time.Second { // a second is the poll
					t.Errorf("pause %d = %s, want between %s and %s", i, pause, longest/2, longest)
				}
			}
		}},
		{"stays away for as long as the channel asks, with everything it has for it", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.add("inc_3", "ch_2", store.NoticeOpened)
			f.fail(1, &alerts.RetryError{After: 40 * time.Second, Err: errors.New("too many")})
			f.run(time.Minute)
			slices.Sort(f.sender.sent)
			f.wantSent("ch_1 inc_1 opened", "ch_1 inc_2 opened", "ch_2 inc_3 opened")
			for _, pause := range f.sender.pauses() {
				if pause < 40*time.Second {
					t.Errorf("called again after %s, want 40s or more", pause)
				}
			}
		}},
		{"stops for good at a permanent error", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.fail(100, &alerts.PermanentError{Reason: "the channel is archived"})
			f.run(48 * time.Hour)
			f.wantSent()
			if got, want := f.store.whyBroken("ch_1"), "the channel is archived"; got != want {
				t.Errorf("channel is broken because of %q, want %q", got, want)
			}
			if f.sender.calls != 1 || len(f.store.list) != 1 {
				t.Errorf("%d calls, %d notices left; want one call, and the other notice to wait until the channel is mended",
					f.sender.calls, len(f.store.list))
			}
		}},
		{"gives up on a channel that has accepted nothing for a day", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.fail(1000, errors.New("away"))
			stop := f.start()
			time.Sleep(24*time.Hour - time.Second)
			if f.store.whyBroken("ch_1") != "" {
				t.Errorf("given up before a day was over")
			}
			time.Sleep(time.Hour)
			stop()
			if got := f.store.whyBroken("ch_1"); !strings.Contains(got, "gave up after") || !strings.Contains(got, "away") {
				t.Errorf("channel is broken because of %q, want that it was given up, and why", got)
			}
		}},
		{"does not give up on the first try after a day of sleep", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			time.Sleep(72 * time.Hour)
			f.fail(3, errors.New("network is not up yet"))
			f.run(5 * time.Minute)
			f.wantSent("ch_1 inc_1 opened")
		}},
		{"does not let a slow channel hold up the others", func(t *testing.T, f *fixture) {
			for i := range 500 {
				f.add(fmt.Sprintf("inc_%d", i), "ch_slow", store.NoticeOpened)
			}
			f.add("inc_x", "ch_1", store.NoticeOpened)
			f.sender.delay = map[string]time.Duration{"ch_slow": 19 * time.Second}
			f.run(3 * time.Second)
			if !slices.Contains(f.sender.sent, "ch_1 inc_x opened") {
				t.Errorf("after 3 seconds sent %q, want that of the quick channel among it", f.sender.sent)
			}
		}},
		{"has one message under way for a channel, and sends each once", func(t *testing.T, f *fixture) {
			f.channel.Type = store.ChannelPagerDuty // which gets no digest
			for i := range 500 {
				f.add(fmt.Sprintf("inc_%d", i), "ch_1", store.NoticeOpened)
			}
			f.sender.delay = map[string]time.Duration{"ch_1": time.Second}
			f.run(15 * time.Minute)
			if f.sender.most != 1 || len(f.sender.sent) != 500 {
				t.Errorf("%d at once, %d sent; want 1 and 500", f.sender.most, len(f.sender.sent))
			}
			if unique := slices.Compact(slices.Sorted(slices.Values(f.sender.sent))); len(unique) != 500 {
				t.Errorf("%d different messages among 500", len(unique))
			}
		}},
		{"bounds what is under way over all channels", func(t *testing.T, f *fixture) {
			f.config.Workers = 3
			f.sender.delay = map[string]time.Duration{}
			for i := range 20 {
				channel := fmt.Sprintf("ch_%d", i)
				f.sender.delay[channel] = time.Second
				f.add("inc_1", channel, store.NoticeOpened)
			}
			f.run(10 * time.Second)
			if f.sender.mostOverall != 3 || len(f.sender.sent) != 20 {
				t.Errorf("%d at once, %d sent; want 3 and 20", f.sender.mostOverall, len(f.sender.sent))
			}
		}},
		{"survives a sender that panics", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_2", store.NoticeOpened)
			f.sender.panics = 2
			f.run(time.Minute)
			slices.Sort(f.sender.sent)
			f.wantSent("ch_1 inc_1 opened", "ch_2 inc_2 opened")
			if !strings.Contains(f.log.String(), "sender panicked") || !strings.Contains(f.log.String(), "dispatcher_test.go") {
				t.Errorf("the log has no panic with its stack:\n%s", f.log)
			}
			f.wantMetric("rollcall_delivery_panics_total", 2)
		}},
		{"gives up waiting for a channel that hangs", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.sender.delay = map[string]time.Duration{"ch_1": time.Hour}
			f.run(25 * time.Second)
			if got, want := f.store.settlements[0].Error, "no answer within 20s"; !strings.Contains(got, want) {
				t.Errorf("error = %q, want %q in it", got, want)
			}
		}},
		{"settles what it sent as soon as the database is back", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.store.away(nil, errors.New("database is gone"))
			stop := f.start()
			time.Sleep(30 * time.Second)
			f.store.away(nil, nil)
			time.Sleep(10 * time.Minute)
			stop()
			f.wantSent("ch_1 inc_1 opened")
			if len(f.store.settlements) != 1 {
				t.Errorf("settlements = %+v, want one", f.store.settlements)
			}
		}},
		{"leaves what it cannot settle to be sent again", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.store.away(nil, errors.New("database is gone"))
			f.run(time.Second)
			f.store.away(nil, nil)
			f.run(3 * time.Minute)
			f.wantSent("ch_1 inc_1 opened", "ch_1 inc_1 opened")
		}},
		{"says once that the database is away", func(t *testing.T, f *fixture) {
			stop := f.start()
			f.store.away(errors.New("database is gone"), nil)
			time.Sleep(time.Minute)
			f.store.away(nil, nil)
			f.add("inc_1", "ch_1", store.NoticeOpened)
			time.Sleep(time.Minute)
			stop()
			f.wantSent("ch_1 inc_1 opened")
			if got := strings.Count(f.log.String(), "database is gone"); got != 1 {
				t.Errorf("logged %d times that the database is gone, want once:\n%s", got, f.log)
			}
		}},
		{"goes on after a query that is never answered, as on a connection that went silent", func(t *testing.T, f *fixture) {
			f.store.hangs = 2
			f.add("inc_1", "ch_1", store.NoticeOpened)
			stop := f.start()
			time.Sleep(29*time.Second + 500*time.Millisecond) // between two looks, which come on the second
			f.wantSent()
			f.wantMetric("rollcall_dispatcher_last_look_timestamp_seconds", 0)
			time.Sleep(5 * time.Second)
			f.wantSent("ch_1 inc_1 opened")
			f.wantMetric("rollcall_dispatcher_last_look_timestamp_seconds", float64(time.Now().Unix()))
			stop()
			for _, line := range []string{"notices cannot be read\"", "notices can be read again"} {
				if got := strings.Count(f.log.String(), line); got != 1 {
					t.Errorf("logged %d times %q, want once:\n%s", got, line, f.log)
				}
			}
		}},
		{"stops at once while a query is not answered", func(t *testing.T, f *fixture) {
			f.store.hangs = 1
			stop := f.start()
			time.Sleep(time.Second)
			began := time.Now()
			stop()
			if took := time.Since(began); took != 0 {
				t.Errorf("stopping took %s, want no time", took)
			}
		}},
		{"names the channel in the log as people know it", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.sender.panics = 1
			f.fail(1, errors.New("away"))
			f.run(time.Minute)
			lines := 0
			for line := range strings.Lines(f.log.String()) {
				lines++
				if !strings.Contains(line, `channel_name="name of ch_1"`) {
					t.Errorf("no name in %q", line)
				}
			}
			if lines < 4 {
				t.Errorf("%d lines, want a panic, a failure and two deliveries:\n%s", lines, f.log)
			}
		}},
		{"finishes what is in hand when it is told to stop", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.sender.delay = map[string]time.Duration{"ch_1": 4 * time.Second}
			stop := f.start()
			time.Sleep(2500 * time.Millisecond)
			f.add("inc_3", "ch_2", store.NoticeOpened)
			began := time.Now()
			stop()
			if took := time.Since(began); took != 6500*time.Millisecond { // one second of it is the channel's pace
				t.Errorf("stopping took %s, want 6.5s", took)
			}
			f.wantSent("ch_1 inc_1 opened", "ch_1 inc_2 opened")
		}},
		{"stops within its grace, and leaves what was cut short due", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.sender.delay = map[string]time.Duration{"ch_1": 18 * time.Second}
			stop := f.start()
			time.Sleep(time.Second)
			began := time.Now()
			stop()
			if took := time.Since(began); took != 10*time.Second {
				t.Errorf("stopping took %s, want the grace of 10s", took)
			}
			got := f.store.settlements
			if len(got) != 2 || !got[0].RetryAt.Equal(time.Now()) || got[0].Deferred || !strings.Contains(got[0].Error, "this service stops") {
				t.Errorf("settlements = %+v, want one that is due again now and says why", got)
			} else if !got[1].RetryAt.Equal(time.Now()) || !got[1].Deferred {
				t.Errorf("settlement of what was not begun = %+v, want it given back", got[1])
			}
			f.sender.delay = nil
			f.run(10 * time.Second) // started again: no lease is in the way
			f.wantSent("ch_1 inc_1 opened", "ch_1 inc_2 opened")
		}},
		{"does not wait out a channel's pause when it is told to stop", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.fail(1, &alerts.RetryError{After: time.Minute, Err: errors.New("too many")})
			stop := f.start()
			time.Sleep(2 * time.Second)
			began := time.Now()
			stop()
			if took := time.Since(began); took != 0 {
				t.Errorf("stopping took %s, want no time", took)
			}
			f.wantSent()
		}},
		{"sends again what was sent by a process that died before it could say so", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			due, err := f.store.LeaseNotices(t.Context(), "another", time.Now(), time.Minute, 10) // and died
			if err != nil || len(due) != 1 {
				t.Fatalf("leased %v, %v", due, err)
			}
			f.run(30 * time.Second)
			f.wantSent()
			f.run(time.Minute)
			f.wantSent("ch_1 inc_1 opened")
		}},
		{"keeps secrets out of the store and the log, whatever a sender says", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.fail(1, fmt.Errorf("Post %q: refused", hook))
			f.fail(1, &alerts.RetryError{After: time.Second, Err: errors.New("cannot POST /services/T0/B0/hunter2")})
			f.fail(1, &alerts.PermanentError{Reason: "no " + hook})
			f.run(time.Minute)
			if f.sender.calls != 3 {
				t.Errorf("%d calls, want 3", f.sender.calls)
			}
			for _, text := range []string{fmt.Sprintf("%+v", f.store.settlements), f.log.String(), f.store.whyBroken("ch_1")} {
				if strings.Contains(text, "hunter2") || strings.Contains(text, "/services/") {
					t.Errorf("a secret got out:\n%s", text)
				}
			}
		}},
		{"has the owner told of a broken channel, once", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.fail(100, &alerts.PermanentError{Reason: "no such hook: " + hook})
			var told []string
			f.config.Broken = func(ctx context.Context, c store.Channel, reason string) error {
				if _, bounded := ctx.Deadline(); !bounded || f.store.whyBroken(c.ID) == "" {
					t.Errorf("told without a deadline (%v), or before it is on record", !bounded)
				}
				told = append(told, c.ID+": "+reason)
				return errors.New("nobody listens")
			}
			f.config.Unsubscribe = func(context.Context, string, string) error { t.Error("no subscription is meant"); return nil }
			f.run(time.Hour)
			if want := []string{"ch_1: no such hook: …"}; !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
			if !strings.Contains(f.log.String(), "nobody listens") {
				t.Errorf("the log does not say that nobody was told:\n%s", f.log)
			}
		}},
		{"ends a subscription from the public whose address refuses for good", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.store.list[0].Subscription = &store.Subscription{ID: "sub_1"}
			f.fail(1, &alerts.PermanentError{Reason: "no such mailbox"})
			var ended []string
			f.config.Broken = func(context.Context, store.Channel, string) error {
				t.Error("no channel of the team is meant")
				return nil
			}
			f.config.Unsubscribe = func(_ context.Context, id, reason string) error { ended = append(ended, id+": "+reason); return nil }
			f.run(time.Minute)
			if want := []string{"sub_1: no such mailbox"}; !slices.Equal(ended, want) {
				t.Errorf("ended %q, want %q", ended, want)
			}
		}},
		{"gives up a message to somebody from the public after a day, not the subscription", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.store.list[0].Subscription = &store.Subscription{ID: "sub_1"}
			f.fail(1000, errors.New("away"))
			f.config.Unsubscribe = func(context.Context, string, string) error {
				t.Error("ended though our own mail server may be away")
				return nil
			}
			f.run(48 * time.Hour)
			if got := f.store.whyBroken("ch_1"); got != "" || len(f.store.list) != 0 {
				t.Errorf("broken because of %q, %d notices left; want neither", got, len(f.store.list))
			}
		}},
		{"has a link in messages to subscriptions that ends them", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_2", store.NoticeOpened)
			f.store.list[0].Subscription = &store.Subscription{ID: "sub_1"}
			f.config.UnsubscribeURL = func(d store.Delivery) string { return "https://status.example/end/" + d.Subscription.ID }
			f.run(time.Minute)
			links := map[string]bool{}
			for _, m := range f.sender.messages {
				links[m.Unsubscribe] = true
			}
			if want := map[string]bool{"https://status.example/end/sub_1": true, "": true}; !maps.Equal(links, want) {
				t.Errorf("links %v, want one to the subscription and none to the team", links)
			}
		}},
		{"says when the next reminder is due", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeReminder)
			f.store.list[0].Endpoint.Alerting.RemindEvery = time.Hour
			f.add("inc_2", "ch_2", store.NoticeOpened)
			f.store.list[1].Endpoint.Alerting.RemindEvery = time.Hour
			f.run(time.Minute)
			next := map[string]time.Duration{}
			for _, s := range f.store.settlements {
				if !s.Next.IsZero() {
					next[s.Ref] = s.Next.Sub(s.At)
				}
			}
			if want := map[string]time.Duration{"ref of inc_1": time.Hour}; !maps.Equal(next, want) {
				t.Errorf("next %v, want %v: the opening has left its first reminder already", next, want)
			}
		}},
		{"breaks a channel of a type that nobody sends to", func(t *testing.T, f *fixture) {
			f.config.Senders = nil
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.run(time.Minute)
			if got, want := f.store.whyBroken("ch_1"), `nothing here can send to a channel of type "slack"`; got != want {
				t.Errorf("channel is broken because of %q, want %q", got, want)
			}
		}},
		{"has every count at zero before the first delivery, so that the first is an increase", func(t *testing.T, f *fixture) {
			f.run(time.Second)
			f.wantMetric("rollcall_digests_total", 0, "slack")
			for _, outcome := range []string{"sent", "passed", "deferred", "retried", "failed"} {
				f.wantMetric("rollcall_deliveries_total", 0, outcome, "slack")
			}
		}},
		{"counts how deliveries end", func(t *testing.T, f *fixture) {
			f.add("inc_1", "ch_1", store.NoticeOpened)
			f.add("inc_2", "ch_1", store.NoticeOpened)
			f.fail(2, errors.New("away"))
			stop := f.start()
			time.Sleep(time.Minute)
			f.add("inc_3", "ch_1", store.NoticeOpened)
			f.fail(1, &alerts.PermanentError{Reason: "gone"})
			time.Sleep(time.Minute)
			stop()
			f.wantMetric("rollcall_deliveries_total", 1, "failed", "slack")
			f.wantMetric("rollcall_deliveries_total", 2, "retried", "slack")
			f.wantMetric("rollcall_deliveries_total", 2, "sent", "slack")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.test(t, newFixture(t)) })
		})
	}
}

func TestTheTestButton(t *testing.T) {
	channel := store.Channel{ID: "ch_1", Name: "ops", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": hook}}
	t.Run("sends a message that says what it is", func(t *testing.T) {
		f := newFixture(t)
		if err := alerts.New(f.config).Test(t.Context(), channel); err != nil {
			t.Fatal(err)
		}
		if got, want := f.sender.messages[0].Kind, alerts.KindTest; got != want {
			t.Errorf("kind = %s, want %s", got, want)
		}
	})
	t.Run("says why it failed, without secrets", func(t *testing.T) {
		f := newFixture(t)
		f.fail(1, &alerts.PermanentError{Reason: "no such hook: " + hook})
		err := alerts.New(f.config).Test(t.Context(), channel)
		if got, want := fmt.Sprint(err), "no such hook: …"; got != want {
			t.Errorf("error = %q, want %q", got, want)
		}
	})
	t.Run("survives a panic", func(t *testing.T) {
		f := newFixture(t)
		f.sender.panics = 1
		if err := alerts.New(f.config).Test(t.Context(), channel); err == nil {
			t.Error("no error")
		}
	})
	t.Run("names a type that nobody sends to", func(t *testing.T) {
		f := newFixture(t)
		channel.Type = "carrier pigeon"
		if err := alerts.New(f.config).Test(t.Context(), channel); !strings.Contains(fmt.Sprint(err), "carrier pigeon") {
			t.Errorf("error = %v, want the type in it", err)
		}
	})
}

const hook = "https://hooks.example/services/T0/B0/hunter2"

// fixture is a dispatcher with a store and a sender that are made up.
type fixture struct {
	t      *testing.T
	config alerts.Config
	store  *notices
	sender *pretender
	log    *syncBuffer
	reg    *prometheus.Registry
	// channel and subscription are what those are like that notices are added for.
	channel      store.Channel
	subscription *store.Subscription
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, store: &notices{broken: map[string]string{}, holders: map[string]string{}, refs: map[string]string{}, attempts: map[string]int{}}, sender: &pretender{busy: map[string]int{}}, log: &syncBuffer{}}
	f.config = alerts.Config{
		Store: f.store,
		Senders: map[store.ChannelType]alerts.Sender{
			store.ChannelSlack: f.sender, store.ChannelEmail: f.sender, store.ChannelPagerDuty: f.sender,
		},
		Log: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	f.channel = store.Channel{Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": hook}}
	return f
}

// start runs a dispatcher; stop ends it and waits for that.
func (f *fixture) start() (stop func()) {
	if f.reg == nil {
		f.reg = prometheus.NewRegistry()
		f.config.Registerer = f.reg
	}
	d := alerts.New(f.config)
	f.config.Registerer = nil // once is enough when a test starts another
	ctx, cancel := context.WithCancel(f.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := d.Run(ctx); err != nil {
			f.t.Errorf("run: %v", err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (f *fixture) run(d time.Duration) {
	stop := f.start()
	time.Sleep(d + 500*time.Millisecond) // to the middle between two looks, which come on the second
	stop()
}

func (f *fixture) add(incident, channel string, kind store.NoticeKind) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	d := store.Delivery{Incident: outage(), Endpoint: weather()}
	d.Incident.ID = incident
	d.Notice = store.Notice{
		ID: store.NewID("ntc"), IncidentID: incident, ChannelID: channel, Kind: kind, CreatedAt: time.Now(), DueAt: time.Now(),
	}
	d.Subscription = f.subscription
	d.Channel = f.channel
	d.Channel.ID, d.Channel.Name = channel, "name of "+channel
	if kind == store.NoticeResolved {
		d.Incident = ended(d.Incident, time.Minute, store.ResolutionRecovered)
	}
	// The sender is told nothing but the message; its link says which incident it is about.
	d.Endpoint.Name = incident
	f.store.list = append(f.store.list, d)
}

// fail makes the next n messages to ch_1 fail, after those that fail already.
func (f *fixture) fail(n int, err error) {
	f.sender.mu.Lock()
	defer f.sender.mu.Unlock()
	for range n {
		f.sender.errs = append(f.sender.errs, err)
	}
}

func (f *fixture) wantSent(want ...string) {
	f.t.Helper()
	f.sender.mu.Lock()
	defer f.sender.mu.Unlock()
	if !slices.Equal(f.sender.sent, want) {
		f.t.Errorf("sent (-got +want):\n%s\n%s", cmp.Diff(f.sender.sent, want), f.log)
	}
}

// wantMetric checks a counter or gauge. labels are its label values, by name of the label.
func (f *fixture) wantMetric(name string, want float64, labels ...string) {
	f.t.Helper()
	families, err := f.reg.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var values []string
			for _, label := range m.GetLabel() {
				values = append(values, label.GetValue())
			}
			if family.GetName() != name || !slices.Equal(values, labels) {
				continue
			}
			if got := m.GetCounter().GetValue() + m.GetGauge().GetValue(); got != want {
				f.t.Errorf("%s%q = %v, want %v", name, labels, got, want)
			}
			return
		}
	}
	f.t.Errorf("there is no metric %s%q", name, labels)
}

// notices keeps notices as store.Store promises to.
type notices struct {
	mu          sync.Mutex
	list        []store.Delivery // in the order in which they were added, each with one notice; a settled one is dropped
	leases      int
	holders     map[string]string // of the lease, by id
	broken      map[string]string
	refs        map[string]string
	attempts    map[string]int // by incident and channel, of all of their notices together
	settlements []store.Settlement
	leaseErr    error
	settleErr   error
	hangs       int // of the next calls of LeaseNotices: they end when their context does
}

// away makes the two methods fail.
func (n *notices) away(lease, settle error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaseErr, n.settleErr = lease, settle
}

func (n *notices) whyBroken(channel string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broken[channel]
}

func (n *notices) LeaseNotices(ctx context.Context, holder string, now time.Time, lease time.Duration, limit int) ([]store.Delivery, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hangs > 0 {
		n.hangs--
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if n.leaseErr != nil {
		return nil, n.leaseErr
	}
	held := map[string]bool{} // channels that are another one's
	for _, d := range n.list {
		if d.LeaseID != "" && d.Notice.DueAt.After(now) && n.holders[d.LeaseID] != holder {
			held[d.Notice.ChannelID] = true
		}
	}
	n.leases++
	leaseID := fmt.Sprint("lease ", n.leases)
	n.holders[leaseID] = holder
	var due []store.Delivery
	at := map[string]int{} // in due, by incident and channel; -1: something stands before it
	for i := range n.list {
		d := &n.list[i]
		key := d.Notice.IncidentID + d.Notice.EventID + d.Notice.ChannelID
		k, seen := at[key]
		if d.Notice.DueAt.After(now) || n.broken[d.Notice.ChannelID] != "" || held[d.Notice.ChannelID] || seen && k < 0 || !seen && len(due) == limit {
			if !seen {
				at[key] = -1
			}
			continue
		}
		d.LeaseID, d.Ref = leaseID, n.refs[key]
		if !seen {
			at[key], due = len(due), append(due, *d)
		} else {
			due[k].Later, due[k].Incident = append(due[k].Later, d.Notice), d.Incident
		}
		d.Notice.DueAt = now.Add(lease)
	}
	return due, nil
}

// Incident returns how one stands at present, which may be another way than when it was leased.
func (n *notices) Incident(_ context.Context, id string) (store.Incident, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leaseErr != nil {
		return store.Incident{}, n.leaseErr
	}
	i := slices.IndexFunc(n.list, func(d store.Delivery) bool { return d.Incident.ID == id })
	if i < 0 {
		return store.Incident{}, store.ErrNotFound
	}
	return n.list[i].Incident, nil
}

func (n *notices) SettleNotice(_ context.Context, s store.Settlement) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.settleErr != nil {
		return n.settleErr
	}
	if err := s.Validate(); err != nil {
		return err
	}
	ids := append([]string{s.NoticeID}, s.Later...)
	mine := func(d store.Delivery) bool { return d.LeaseID == s.LeaseID && slices.Contains(ids, d.Notice.ID) }
	if !slices.ContainsFunc(n.list, mine) {
		return store.ErrNotFound
	}
	n.settlements = append(n.settlements, s)
	counted := map[string]bool{}
	for i := range n.list {
		d := &n.list[i]
		if !mine(*d) {
			continue
		}
		if !s.Deferred {
			d.Notice.Attempts++
			if key := d.Notice.IncidentID + d.Notice.ChannelID; !counted[key] {
				counted[key] = true
				n.attempts[key]++
			}
		}
		switch {
		case s.Sent:
			n.refs[d.Notice.IncidentID+d.Notice.EventID+d.Notice.ChannelID] = s.Ref
		case s.Permanent:
			n.broken[d.Notice.ChannelID] = s.Error
		case !s.Passed:
			d.Notice.DueAt, d.LeaseID = s.RetryAt, ""
		}
	}
	if s.RetryAt.IsZero() {
		n.list = slices.DeleteFunc(n.list, mine)
	}
	return nil
}

// pretender is a sender that takes its time, fails and panics as it is told.
type pretender struct {
	mu          sync.Mutex
	delay       map[string]time.Duration // by channel
	errs        []error                  // of the next calls for ch_1
	panics      int                      // of the next calls
	passes      bool                     // it has no place for anything
	calls       int
	called      map[string][]time.Time // by incident
	busy        map[string]int
	most        int // under way at once for one channel
	mostOverall int
	sent        []string
	sentAt      []time.Time
	refs        []string
	messages    []alerts.Message
}

func (p *pretender) Send(ctx context.Context, c store.Channel, ref string, m alerts.Message) (alerts.Receipt, error) {
	delay := p.begin(c.ID, m)
	defer p.end(c.ID)
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return alerts.Receipt{}, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.panics > 0 {
		p.panics--
		panic("of " + hook)
	}
	if len(p.errs) > 0 && c.ID == "ch_1" {
		err := p.errs[0]
		p.errs = p.errs[1:]
		return alerts.Receipt{}, err
	}
	if p.passes {
		return alerts.Receipt{Passed: true}, nil
	}
	p.sentAt = append(p.sentAt, time.Now())
	p.sent = append(p.sent, fmt.Sprintf("%s %s %s", c.ID, m.Endpoint, m.Kind))
	p.refs = append(p.refs, ref)
	p.messages = append(p.messages, m)
	return alerts.Receipt{Ref: "ref of " + m.Endpoint}, nil
}

func (p *pretender) begin(channel string, m alerts.Message) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.called == nil {
		p.called = map[string][]time.Time{}
	}
	p.called[m.Endpoint] = append(p.called[m.Endpoint], time.Now())
	p.busy[channel]++
	overall := 0
	for _, n := range p.busy {
		p.most = max(p.most, n)
		overall += n
	}
	p.mostOverall = max(p.mostOverall, overall)
	return p.delay[channel]
}

func (p *pretender) end(channel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[channel]--
}

// pauses returns how long lay between the attempts of the first incident.
func (p *pretender) pauses() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pauses []time.Duration
	at := p.called["inc_1"]
	for i := 1; i < len(at); i++ {
		pauses = append(pauses, at[i].Sub(at[i-1]))
	}
	return pauses
}

// syncBuffer is a buffer that a logger may write to while a test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
