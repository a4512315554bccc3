package alerts_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/store"
)

func TestDigest(t *testing.T) {
	tests := []struct {
		name string
		test func(t *testing.T, f *fixture)
	}{
		{"twenty openings are twenty messages", func(t *testing.T, f *fixture) {
			f.open(1, 20, "ch_1")
			f.run(time.Minute)
			if got := len(f.sender.sent); got != 20 {
				t.Errorf("%d messages, want 20: %q", got, f.sender.sent)
			}
		}},
		{"twenty-one are one", func(t *testing.T, f *fixture) {
			f.open(1, 21, "ch_1")
			f.run(time.Minute)
			f.wantSent("ch_1  digest")
			f.wantSettled(21)
			f.wantMetric("rollcall_digests_total", 1, "slack")
			f.wantMetric("rollcall_deliveries_total", 1, "sent", "slack")
		}},
		{"a storm of five thousand is one, and soon", func(t *testing.T, f *fixture) {
			f.open(1, 5000, "ch_1")
			f.open(1, 5000, "ch_2")
			f.run(10 * time.Second)
			slices.Sort(f.sender.sent)
			f.wantSent("ch_1  digest", "ch_2  digest")
			f.wantSettled(10000)
			if got := len(f.store.settlements); got > 50 {
				t.Errorf("%d settlements, want few: a lease is settled at once", got)
			}
		}},
		{"a storm that goes on is one in a minute", func(t *testing.T, f *fixture) {
			f.channel.Type = store.ChannelEmail
			stop := f.start()
			for i := range 300 { // for five minutes
				f.open(10*i+1, 10*i+10, "ch_1")
				time.Sleep(time.Second)
			}
			time.Sleep(2 * time.Minute)
			stop()
			digests, at := 0, []time.Time(nil)
			for i, sent := range f.sender.sent {
				if strings.HasSuffix(sent, "digest") {
					digests, at = digests+1, append(at, f.sender.sentAt[i])
				}
			}
			if singles := len(f.sender.sent) - digests; digests > 7 || singles > 40 {
				t.Errorf("%d digests and %d other messages of 3000 openings in five minutes, want six or so and one minute's worth", digests, singles)
			}
			for i := 1; i < len(at); i++ {
				if apart := at[i].Sub(at[i-1]); apart < time.Minute {
					t.Errorf("two digests are %s apart, want a minute", apart)
				}
			}
			f.wantSettled(3000)
		}},
		{"more than twenty a minute are a storm also when they come one by one", func(t *testing.T, f *fixture) {
			f.channel.Type = store.ChannelEmail
			stop := f.start()
			for i := range 60 {
				f.open(i+1, i+1, "ch_1")
				time.Sleep(time.Second)
			}
			time.Sleep(2 * time.Minute)
			stop()
			singles := slices.DeleteFunc(slices.Clone(f.sender.sent), func(s string) bool { return strings.HasSuffix(s, "digest") })
			if len(singles) > 25 || len(f.sender.sent)-len(singles) > 2 {
				t.Errorf("sent %q, want about twenty messages and one or two digests", f.sender.sent)
			}
			f.wantSettled(60)
		}},
		{"what is no opening goes on meanwhile", func(t *testing.T, f *fixture) {
			f.open(1, 30, "ch_1")
			stop := f.start()
			time.Sleep(10 * time.Second)
			f.open(31, 60, "ch_1")
			f.add("inc_x", "ch_1", store.NoticeUpdated)
			time.Sleep(10 * time.Second)
			f.wantSent("ch_1  digest", "ch_1 inc_x updated")
			time.Sleep(time.Minute)
			stop()
			f.wantSent("ch_1  digest", "ch_1 inc_x updated", "ch_1  digest")
		}},
		{"the end of a storm is one as well, but messages that can be changed are", func(t *testing.T, f *fixture) {
			f.channel.Type = store.ChannelEmail
			f.open(1, 10, "ch_1")
			f.run(time.Minute) // ten messages
			f.open(11, 60, "ch_1")
			f.run(time.Minute) // and a digest
			if got := len(f.sender.sent); got != 11 {
				t.Fatalf("%d messages, want ten and a digest: %q", got, f.sender.sent)
			}
			f.store.refs = map[string]string{}
			for i := range 10 {
				f.store.refs[fmt.Sprintf("inc_%dch_1", i+1)] = "message"
			}
			f.resolve(1, 60, "ch_1")
			f.run(time.Minute)
			var digests, singles int
			for _, sent := range f.sender.sent[11:] {
				if strings.HasSuffix(sent, "digest") {
					digests++
				} else {
					singles++
				}
			}
			if digests != 1 || singles != 10 {
				t.Errorf("%d digests and %d other messages, want one of fifty, and ten messages changed", digests, singles)
			}
			f.wantSettled(120)
		}},
		{"one that fails comes again", func(t *testing.T, f *fixture) {
			f.open(1, 100, "ch_1")
			f.fail(2, errors.New("away"))
			f.run(time.Minute)
			f.wantSent("ch_1  digest")
			f.wantSettled(100)
		}},
		{"one that is refused for good takes one notice along, and leaves the others until the channel is mended", func(t *testing.T, f *fixture) {
			f.open(1, 100, "ch_1")
			f.fail(1, &alerts.PermanentError{Reason: "gone"})
			f.run(time.Minute)
			if got := len(f.store.list); got != 99 || f.store.whyBroken("ch_1") != "gone" {
				t.Fatalf("%d notices left, want 99", got)
			}
			f.store.broken = map[string]string{}
			f.run(time.Minute)
			f.wantSent("ch_1  digest")
		}},
		{"no digest where each incident has a key of its own", func(t *testing.T, f *fixture) {
			f.channel.Type = store.ChannelPagerDuty
			f.open(1, 100, "ch_1")
			f.run(time.Minute)
			if got := len(f.sender.sent); got != 100 || slices.Contains(f.sender.sent, "ch_1  digest") {
				t.Errorf("%d messages, want 100 and no digest", got)
			}
		}},
		{"a digest that waits is given back when the service stops", func(t *testing.T, f *fixture) {
			f.open(1, 30, "ch_1")
			stop := f.start()
			time.Sleep(3 * time.Second)
			began := time.Now()
			stop()
			if took := time.Since(began); took != 0 {
				t.Errorf("stopping took %s, want no time", took)
			}
			f.run(10 * time.Second)
			f.wantSent("ch_1  digest")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.test(t, newFixture(t)) })
		})
	}
}

// open adds the openings of incidents by number, from the first to the last.
func (f *fixture) open(first, last int, channel string) {
	for i := first; i <= last; i++ {
		f.add(fmt.Sprint("inc_", i), channel, store.NoticeOpened)
	}
}

func (f *fixture) resolve(first, last int, channel string) {
	for i := first; i <= last; i++ {
		f.add(fmt.Sprint("inc_", i), channel, store.NoticeResolved)
	}
}

// wantSettled checks that n notices were sent, and none is left.
func (f *fixture) wantSettled(n int) {
	f.t.Helper()
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	got := 0
	for _, s := range f.store.settlements {
		if s.Sent {
			got += 1 + len(s.Later)
		}
	}
	if got != n || len(f.store.list) != 0 {
		f.t.Errorf("%d notices are sent and %d are left, want %d and none", got, len(f.store.list), n)
	}
}
