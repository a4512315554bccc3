package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func testAlerting(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("who hears what, what it stands behind and what it is meant to achieve come back as given", func(t *testing.T) {
		s := fresh(t).open(t)
		late := newChannel(t, s, "late")
		a, b := newEndpoint(t, s, "a"), newEndpoint(t, s, "b")
		full := func(e *store.Endpoint) {
			e.Alerting = store.Alerting{
				Notify: []store.Status{store.StatusDown, store.StatusDegraded}, UnknownAfter: time.Hour, RemindEvery: 2 * time.Hour, FlapChanges: 4,
				Escalation: []store.EscalationStep{{After: 10 * time.Minute, Channels: []string{late.ID}}},
			}
			e.DependsOn = []string{b.ID, a.ID}
			e.Objectives = []store.Objective{{Name: "fast", Target: 99.9, Days: 30, Under: 800 * time.Millisecond, Notify: true}, {Name: "up", Target: 95, Days: 7}}
		}
		e := newEndpoint(t, s, "Weather", full)
		want := e
		full(&want)
		if diff := cmp.Diff(e, want); diff != "" {
			t.Errorf("CreateEndpoint (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(overview(t, s, e.Slug).Endpoint, want); diff != "" {
			t.Errorf("Endpoint (-got +want):\n%s", diff)
		}
		edit(t, s, e, func(e *store.Endpoint) {
			e.Alerting, e.DependsOn, e.Objectives = store.Alerting{Notify: []store.Status{}}, []string{a.ID}, nil
		})
		got := overview(t, s, e.Slug).Endpoint
		if got.Alerting.Notify == nil || len(got.Alerting.Notify) != 0 || got.Alerting.Tells(store.StatusDown) {
			t.Errorf("alerting %+v, want one that tells nothing", got.Alerting)
		}
		if diff := cmp.Diff(got.DependsOn, []string{a.ID}); diff != "" || got.Objectives != nil {
			t.Errorf("objectives %v, parents (-got +want):\n%s", got.Objectives, diff)
		}
		if err := s.DeleteEndpoint(t.Context(), a.Slug); err != nil {
			t.Fatal(err)
		}
		if got := overview(t, s, e.Slug).DependsOn; got != nil {
			t.Errorf("parents %v after theirs went, want none", got)
		}
	})

	t.Run("a channel that goes leaves every escalation", func(t *testing.T) {
		s := fresh(t).open(t)
		late, later := newChannel(t, s, "late"), newChannel(t, s, "later")
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) {
			e.Alerting.RemindEvery = time.Hour
			e.Alerting.Escalation = []store.EscalationStep{
				{After: time.Minute, Channels: []string{late.ID}}, {After: time.Hour, Channels: []string{late.ID, later.ID}},
			}
		})
		if err := s.DeleteChannel(t.Context(), late.ID); err != nil {
			t.Fatal(err)
		}
		want := store.Alerting{RemindEvery: time.Hour, Escalation: []store.EscalationStep{{After: time.Hour, Channels: []string{later.ID}}}}
		if diff := cmp.Diff(overview(t, s, e.Slug).Alerting, want); diff != "" {
			t.Errorf("alerting (-got +want):\n%s", diff)
		}
		edit(t, s, e, func(e *store.Endpoint) { e.Name = "Rain" })
	})

	t.Run("what is named must be there, and nothing stands behind itself", func(t *testing.T) {
		s := fresh(t).open(t)
		a := newEndpoint(t, s, "a")
		b := newEndpoint(t, s, "b", behind(a))
		c := newEndpoint(t, s, "c", behind(b))
		update := func(e store.Endpoint, change func(*store.Endpoint)) error {
			_, err := s.UpdateEndpoint(t.Context(), e.Slug, func(e *store.Endpoint) error { change(e); return nil })
			return err
		}
		for name, test := range map[string]struct {
			change func(*store.Endpoint)
			field  string
		}{
			"itself":         {func(e *store.Endpoint) { e.DependsOn = []string{a.ID} }, "depends_on[0]"},
			"its child":      {func(e *store.Endpoint) { e.DependsOn = []string{b.ID} }, "depends_on[0]"},
			"its grandchild": {func(e *store.Endpoint) { e.DependsOn = []string{c.ID} }, "depends_on[0]"},
			"nothing there":  {func(e *store.Endpoint) { e.DependsOn = []string{"ep_none"} }, "depends_on[0]"},
			"hostile text":   {func(e *store.Endpoint) { e.DependsOn = []string{"\x00"} }, "depends_on[0]"},
			"no such channel": {func(e *store.Endpoint) {
				e.Alerting.Escalation = []store.EscalationStep{{After: 1, Channels: []string{"ch_none"}}}
			}, "escalation[0].channels[0]"},
			"no text a channel": {func(e *store.Endpoint) {
				e.Alerting.Escalation = []store.EscalationStep{{After: 1, Channels: []string{"\x00"}}}
			}, "escalation[0].channels[0]"},
		} {
			t.Log(name)
			wantInvalid(t, update(a, test.change), test.field)
		}
		wantInvalid(t, update(c, func(e *store.Endpoint) { e.DependsOn = []string{a.ID, a.ID} }), "depends_on[1]")
		if err := update(c, func(e *store.Endpoint) { e.DependsOn = []string{a.ID, b.ID} }); err != nil {
			t.Errorf("two parents, of which one stands behind the other: %v", err)
		}
		if got := overview(t, s, a.Slug).DependsOn; got != nil {
			t.Errorf("a stands behind %v, want nothing", got)
		}
	})
}
