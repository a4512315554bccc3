package alerts_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/store"
)

func TestPace(t *testing.T) {
	tests := []struct {
		name string
		test func(t *testing.T, f *fixture)
	}{
		{"a Slack channel gets at most one message a second", func(t *testing.T, f *fixture) {
			f.open(1, 15, "ch_1")
			f.sender.delay = map[string]time.Duration{"ch_1": 300 * time.Millisecond}
			f.run(time.Minute)
			f.wantApart(15, time.Second)
		}},
		{"also when one comes after another has gone", func(t *testing.T, f *fixture) {
			wake := make(chan struct{}, 1)
			f.config.Wake = wake
			stop := f.start()
			for i := range 5 {
				f.open(i, i, "ch_1")
				wake <- struct{}{}
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			stop()
			f.wantApart(5, time.Second)
		}},
		{"channels do not wait for one another", func(t *testing.T, f *fixture) {
			for i := range 10 {
				f.open(i, i, fmt.Sprint("ch_", i))
			}
			f.run(500 * time.Millisecond)
			if got := len(f.sender.sent); got != 10 {
				t.Errorf("%d messages within a second, want ten, one in each channel", got)
			}
		}},
		{"mail has no pace", func(t *testing.T, f *fixture) {
			f.channel.Type = store.ChannelEmail
			f.open(1, 15, "ch_1")
			f.run(100 * time.Millisecond)
			if got := len(f.sender.sent); got != 15 {
				t.Errorf("%d messages at once, want 15", got)
			}
		}},
		{"a pace may be given", func(t *testing.T, f *fixture) {
			f.config.Pace = func(store.ChannelType) time.Duration { return 3 * time.Second }
			f.channel.Type = store.ChannelEmail
			f.open(1, 10, "ch_1")
			f.run(time.Minute)
			f.wantApart(10, 3*time.Second)
		}},
		{"a channel that wants to be left alone for long gets nothing, and nothing is lost", func(t *testing.T, f *fixture) {
			f.open(1, 3, "ch_1")
			f.fail(1, &alerts.RetryError{After: 50 * time.Minute, Err: errors.New("too many")})
			stop := f.start()
			time.Sleep(10 * time.Minute)
			f.open(4, 5, "ch_1")
			time.Sleep(39 * time.Minute)
			f.sender.mu.Lock()
			if f.sender.calls != 1 {
				t.Errorf("%d calls, want the one that was refused", f.sender.calls)
			}
			f.sender.mu.Unlock()
			time.Sleep(10 * time.Minute)
			stop()
			f.wantSettled(5)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.test(t, newFixture(t)) })
		})
	}
}

// wantApart checks that n messages were sent, and that no two of them are closer together than a pace.
func (f *fixture) wantApart(n int, pace time.Duration) {
	f.t.Helper()
	f.sender.mu.Lock()
	defer f.sender.mu.Unlock()
	if got := len(f.sender.sentAt); got != n {
		f.t.Errorf("%d messages, want %d", got, n)
	}
	for i := 1; i < len(f.sender.sentAt); i++ {
		if apart := f.sender.sentAt[i].Sub(f.sender.sentAt[i-1]); apart < pace {
			f.t.Errorf("messages %d and %d are %s apart, want %s", i, i+1, apart, pace)
		}
	}
}
