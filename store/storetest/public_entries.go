package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func testPublicEntries(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("what was said to everybody, by incident, and nothing else", func(t *testing.T) {
		s := fresh(t).open(t)
		raise := func(title, text string) string {
			t.Helper()
			i, _, err := s.Raise(t.Context(), store.Incident{Kind: store.IncidentManual, Title: title, Severity: store.StatusDown, StartedAt: start}, "ada", text, nil)
			if err != nil {
				t.Fatal(err)
			}
			return i.ID
		}
		first, second, silent := raise("First", "It began."), raise("Second", "So did this."), raise("Silent", "")
		raise("Third", "Nobody asks.")
		act(t, s, first, store.Act{Kind: store.ActComment, At: minutes(2), Author: "ada", Text: "Among us."})
		act(t, s, first, store.Act{Kind: store.ActComment, At: minutes(3), Author: "ada", Text: "We know.", Public: true})
		act(t, s, first, store.Act{Kind: store.ActAcknowledge, At: minutes(4), Author: "ada", Public: true})
		act(t, s, second, store.Act{Kind: store.ActResolve, At: minutes(5), Author: "ada", Text: "It is over.", Public: true})

		got, err := s.PublicEntries(t.Context(), []string{first, second, silent, "inc_none"})
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string][]string{}
		for id, entries := range got {
			for _, e := range entries {
				texts[id] = append(texts[id], e.Text)
				if e.IncidentID != id || !e.Public || e.ID == "" || e.At.IsZero() || e.Author != "ada" || e.Kind == "" {
					t.Errorf("of %s: %+v", id, e)
				}
			}
		}
		want := map[string][]string{first: {"It began.", "We know."}, second: {"So did this.", "It is over."}}
		if diff := cmp.Diff(texts, want); diff != "" {
			t.Errorf("PublicEntries (-got +want):\n%s", diff)
		}
		if got, err := s.PublicEntries(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("PublicEntries of none = %v, %v", got, err)
		}
	})

	t.Run("the latest of many", func(t *testing.T) {
		s := fresh(t).open(t)
		i, _, err := s.Raise(t.Context(), store.Incident{Kind: store.IncidentManual, Title: "Long", Severity: store.StatusDown, StartedAt: start}, "ada", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range store.MaxPublicEntries + 2 {
			act(t, s, i.ID, store.Act{Kind: store.ActComment, At: minutes(n + 1), Text: fmt.Sprint(n), Public: true})
		}
		got, err := s.PublicEntries(t.Context(), []string{i.ID})
		entries := got[i.ID]
		if err != nil || len(entries) != store.MaxPublicEntries || entries[0].Text != "2" || entries[len(entries)-1].Text != fmt.Sprint(store.MaxPublicEntries+1) {
			t.Errorf("%d entries from %+v, %v, want the latest %d", len(entries), entries[:min(1, len(entries))], err, store.MaxPublicEntries)
		}
	})
}
