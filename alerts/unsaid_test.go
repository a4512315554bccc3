package alerts_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// What somebody hears who need not, or not yet.
func TestDeliveryWithoutAWord(t *testing.T) {
	reminders := []store.NoticeKind{store.NoticeReminder, store.NoticeEscalation}
	for _, kind := range reminders {
		tests := []struct {
			name   string
			change func(i *store.Incident)
			passed string        // why nothing was said; empty: something was
			after  time.Duration // when it was
		}{
			{"of what is still open", func(*store.Incident) {}, "", 0},
			{"of what is over", func(i *store.Incident) { *i = ended(*i, time.Minute, store.ResolutionRecovered) }, "the incident is over", 0},
			{"of what somebody looks after", func(i *store.Incident) { i.AcknowledgedAt = new(time.Now()) }, "somebody has acknowledged it", 0},
			{"of what is snoozed", func(i *store.Incident) { i.SnoozedUntil = new(time.Now().Add(time.Hour)) }, "", time.Hour},
			{"of what was snoozed", func(i *store.Incident) { i.SnoozedUntil = new(time.Now().Add(-time.Hour)) }, "", 0},
		}
		for _, tt := range tests {
			t.Run(string(kind)+" "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					f.add("inc_1", "ch_1", kind)
					tt.change(&f.store.list[0].Incident)
					began := time.Now()
					f.run(2 * time.Hour)
					last := f.store.settlements[len(f.store.settlements)-1]
					if last.Passed != (tt.passed != "") || last.Error != tt.passed || last.Sent == last.Passed {
						t.Errorf("settled as %+v, want passed because %q", last, tt.passed)
					}
					if took := last.At.Sub(began); took < tt.after || took > tt.after+2*time.Second {
						t.Errorf("settled after %s, want %s", took, tt.after)
					}
					if f.store.attempts["inc_1ch_1"] != 1 {
						t.Errorf("%d attempts, want one: what is put off was not tried", f.store.attempts["inc_1ch_1"])
					}
				})
			})
		}
	}
	first := []string{"ch_1 inc_1 reminder"}
	for name, tt := range map[string]struct {
		change func(n *notices)
		want   []string // what is sent
		passed string
	}{
		"somebody acknowledges its incident": {func(n *notices) { n.list[0].Incident.AcknowledgedAt = new(time.Now()) }, first, "somebody has acknowledged it"},
		"that is over": {func(n *notices) {
			n.list[0].Incident = ended(n.list[0].Incident, time.Minute, store.ResolutionRecovered)
		}, first, "the incident is over"},
		"that goes":              {func(n *notices) { n.list[0].Incident.ID = "" }, first, "the incident is gone"},
		"the database goes away": {func(n *notices) { n.leaseErr = errors.New("away") }, append(first, "ch_1 inc_2 reminder"), ""},
	} {
		t.Run("a reminder waits for its turn, and meanwhile "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.config.Pace = func(store.ChannelType) time.Duration { return 10 * time.Second }
				f.add("inc_1", "ch_1", store.NoticeReminder)
				f.add("inc_2", "ch_1", store.NoticeReminder)
				stop := f.start()
				time.Sleep(5 * time.Second)
				f.store.mu.Lock()
				tt.change(f.store)
				f.store.mu.Unlock()
				time.Sleep(time.Minute)
				stop()
				f.wantSent(tt.want...)
				last := f.store.settlements[len(f.store.settlements)-1]
				if last.Passed != (tt.passed != "") || last.Error != tt.passed || len(f.store.settlements) != 2 {
					t.Errorf("settled as %+v, want it passed because %q", f.store.settlements, tt.passed)
				}
			})
		})
	}
	t.Run("an end is told though a reminder of it waits as well", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			f.add("inc_1", "ch_1", store.NoticeReminder)
			f.add("inc_1", "ch_1", store.NoticeResolved)
			f.run(time.Minute)
			f.wantSettled(2)
		})
	})
}

func TestDeliveryOfAnEndpointThatStandsBehindAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The parent was up again 10 minutes from the start.
		add := func(f *fixture, incident string, kind store.NoticeKind) {
			f.add(incident, "ch_1", kind)
			f.store.list[len(f.store.list)-1].BehindUntil = time.Now().Add(10 * time.Minute)
		}
		for _, tt := range []struct {
			name  string
			story func(f *fixture)
			want  []string
		}{
			{"nothing is said when it got well along with the other", func(f *fixture) {
				add(f, "inc_1", store.NoticeOpened)
				time.Sleep(11 * time.Minute)
				add(f, "inc_1", store.NoticeResolved)
			}, nil},
			{"it has time to be seen up", func(f *fixture) {
				add(f, "inc_1", store.NoticeOpened)
				time.Sleep(11 * time.Minute)
			}, nil},
			{"then it is told", func(f *fixture) {
				add(f, "inc_1", store.NoticeOpened)
				time.Sleep(12 * time.Minute)
			}, []string{"ch_1 inc_1 opened"}},
			{"an outage that went on after that of the other is told, also when it is over", func(f *fixture) {
				add(f, "inc_1", store.NoticeOpened)
				f.store.list[0].Notice.DueAt = time.Now().Add(time.Hour) // the channel was away, say
				time.Sleep(20 * time.Minute)
				add(f, "inc_1", store.NoticeResolved)
				f.store.list[1].BehindUntil = f.store.list[0].BehindUntil
				time.Sleep(41 * time.Minute)
			}, []string{"ch_1 inc_1 opened"}},
			{"what was tried before is told to its end", func(f *fixture) {
				add(f, "inc_1", store.NoticeOpened)
				f.store.list[0].Notice.Attempts, f.store.list[0].Notice.DueAt = 1, time.Now().Add(11*time.Minute)
				time.Sleep(11 * time.Minute)
				add(f, "inc_1", store.NoticeResolved)
				time.Sleep(time.Minute)
			}, []string{"ch_1 inc_1 opened"}},
			{"who stood behind nothing is told", func(f *fixture) {
				f.add("inc_1", "ch_1", store.NoticeOpened)
				f.add("inc_1", "ch_1", store.NoticeResolved)
			}, []string{"ch_1 inc_1 opened"}},
		} {
			f := newFixture(t)
			tt.story(f)
			f.run(10 * time.Second)
			if got := len(f.sender.sent); got != len(tt.want) {
				t.Errorf("%s: sent %q, want %d messages\n%s", tt.name, f.sender.sent, len(tt.want), f.log)
			}
		}
	})
}

func TestQuietHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which it is midnight of the first of January in 2000
		f := newFixture(t)
		quiet := func(incident string, kind store.NoticeKind) {
			f.subscription = &store.Subscription{
				ID: "sub_1", UserID: "usr_1", Quiet: &store.Quiet{From: "22:00", To: "07:00", Zone: "UTC"},
			}
			f.add(incident, "ch_1", kind)
			f.subscription = nil
		}
		began := time.Now()
		stop := f.start()
		quiet("inc_1", store.NoticeOpened)
		quiet("inc_2", store.NoticeOpened)
		f.add("inc_1", "ch_2", store.NoticeOpened) // somebody else's
		time.Sleep(3 * time.Hour)
		f.wantSent("ch_2 inc_1 opened")
		quiet("inc_1", store.NoticeResolved)
		time.Sleep(4*time.Hour - time.Minute)
		f.wantSent("ch_2 inc_1 opened")
		time.Sleep(2 * time.Minute)
		quiet("inc_3", store.NoticeOpened)
		time.Sleep(time.Minute)
		stop()
		if got := len(f.sender.sent); got != 4 {
			t.Errorf("sent %q, want one message about each of three incidents beside that of the other", f.sender.sent)
		}
		for _, at := range f.sender.sentAt[1:3] {
			if late := at.Sub(began.Add(7 * time.Hour)); late < 0 || late > 10*time.Second {
				t.Errorf("sent at %s, want seven o'clock", at)
			}
		}
		for key, n := range f.store.attempts {
			if n != 1 {
				t.Errorf("%d attempts for %s, want one: what is put off was not tried", n, key)
			}
		}
		f.wantMetric("rollcall_deliveries_total", 2, "deferred", "slack")
	})
}
