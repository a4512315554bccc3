package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// copyTable is a table with a column of each kind.
var copyTable = store.CopyTable{Name: "things", Columns: []store.CopyColumn{
	{Name: "text", Kind: store.CopyText}, {Name: "bytes", Kind: store.CopyBytes}, {Name: "integer", Kind: store.CopyInteger},
	{Name: "number", Kind: store.CopyNumber}, {Name: "flag", Kind: store.CopyFlag}, {Name: "time", Kind: store.CopyTime},
	{Name: "day", Kind: store.CopyDay}, {Name: "texts", Kind: store.CopyTexts}, {Name: "json", Kind: store.CopyJSON},
}}

func copyRow() []any {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	return []any{"a", []byte("b"), int64(3), 4.5, true, at, store.DayOf(at), []string{"x", "y"}, `{"m": 1, "n": [2]}`}
}

func TestCopySumTellsRowsApart(t *testing.T) {
	for name, edit := range map[string]func(row []any){
		"a text":                     func(row []any) { row[0] = "A" },
		"no text":                    func(row []any) { row[0] = nil },
		"a text that moved":          func(row []any) { row[0], row[1] = "ab", []byte{} },
		"bytes":                      func(row []any) { row[1] = []byte{0} },
		"bytes that are there":       func(row []any) { row[1] = nil },
		"an integer":                 func(row []any) { row[2] = int64(-3) },
		"a number":                   func(row []any) { row[3] = 4.500000001 },
		"a flag":                     func(row []any) { row[4] = false },
		"a microsecond":              func(row []any) { row[5] = row[5].(time.Time).Add(time.Microsecond) },
		"a day":                      func(row []any) { row[6] = row[6].(time.Time).AddDate(0, 0, 1) },
		"texts that were put in one": func(row []any) { row[7] = []string{"xy"} },
		"no texts":                   func(row []any) { row[7] = []string{} },
		"JSON":                       func(row []any) { row[8] = `{"m": 1, "n": [3]}` },
		"JSON's null, not NULL":      func(row []any) { row[8] = `null` },
	} {
		var source, copied store.CopySum
		other := copyRow()
		edit(other)
		source.AddRow(copyTable, copyRow())
		copied.AddRow(copyTable, other)
		if diff := cmp.Diff(source.Differences(copied), []string{"as many rows (1), but they do not say the same"}); diff != "" {
			t.Errorf("%s: differences (-got +want):\n%s", name, diff)
		}
	}
}

func TestCopySumOfTheSameInAnotherOrder(t *testing.T) {
	var source, copied store.CopySum
	anew, nulls := copyRow(), make([]any, len(copyTable.Columns))
	anew[8] = "{\"n\":[2],\n\"m\":1}" // as a database may set it
	anew[5] = anew[5].(time.Time).In(time.FixedZone("elsewhere", 3600))
	source.AddRow(copyTable, copyRow())
	source.AddRow(copyTable, nulls)
	copied.AddRow(copyTable, nulls)
	copied.AddRow(copyTable, anew)
	if found := source.Differences(copied); len(found) != 0 || source.Rows != 2 {
		t.Errorf("differences %q of %d rows, want none of 2", found, source.Rows)
	}
}

func copyCheck(endpoint string, minute int, verdict probe.Verdict, latency time.Duration) store.Check {
	at := time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)
	r := probe.Result{StartedAt: at, Duration: time.Second, Verdict: verdict, Kind: probe.KindMCP}
	r.Steps = []probe.Step{{Name: "initialize", Latency: latency}}
	return store.NewCheck(endpoint, "default", at, r)
}

func copySum(t testing.TB, checks ...store.Check) (sum store.CopySum) {
	t.Helper()
	if err := sum.Add(store.CopyTable{Name: "checks"}, store.CopyBatch{Checks: checks}); err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestCopySumSaysWhatDiffersInChecks(t *testing.T) {
	a, b := copyCheck("ep_a", 1, probe.Up, time.Millisecond), copyCheck("ep_a", 2, probe.Down, time.Millisecond)
	otherFact := a
	otherFact.Result.Facts.ServerName = "other"
	for name, test := range map[string]struct {
		copied store.CopySum
		want   []string
	}{
		"nothing": {copySum(t, b, a), nil},
		"a check is missing": {copySum(t, a), []string{
			"2 rows in the source, 1 in the copy",
			"endpoint ep_a at default: checks by verdict are up 1, down 1 in the source, up 1 in the copy",
		}},
		"all are missing": {store.CopySum{}, []string{
			"2 rows in the source, 0 in the copy", "endpoint ep_a at default: its checks are missing",
		}},
		"they are another's": {copySum(t, copyCheck("ep_b", 1, probe.Up, time.Millisecond), copyCheck("ep_b", 2, probe.Down, time.Millisecond)), []string{
			"endpoint ep_a at default: its checks are missing", "endpoint ep_b at default: it has no checks in the source",
		}},
		"a latency": {copySum(t, copyCheck("ep_a", 1, probe.Up, 2*time.Millisecond), b), []string{
			"endpoint ep_a at default: latencies by step add up to [2000] µs in the source, [3000] µs in the copy",
		}},
		"a time": {copySum(t, a, copyCheck("ep_a", 3, probe.Down, time.Millisecond)), []string{
			"endpoint ep_a at default: checks are from 2026-01-02T03:01:00.000000Z to 2026-01-02T03:02:00.000000Z in the source, " +
				"from 2026-01-02T03:01:00.000000Z to 2026-01-02T03:03:00.000000Z in the copy",
		}},
		"a fact": {copySum(t, otherFact, b), []string{"endpoint ep_a at default: as many checks, but they do not say the same"}},
	} {
		if diff := cmp.Diff(copySum(t, a, b).Differences(test.copied), test.want); diff != "" {
			t.Errorf("%s: differences (-got +want):\n%s", name, diff)
		}
	}
}

func TestCopySumNamesNoMorePlacesThanAnybodyReads(t *testing.T) {
	var checks []store.Check
	for i := range 30 {
		checks = append(checks, copyCheck(fmt.Sprintf("ep_%02d", i), 1, probe.Up, 0))
	}
	found := copySum(t, checks...).Differences(store.CopySum{Rows: 30})
	if len(found) != 21 || found[20] != "and 10 places more" || !strings.HasPrefix(found[0], "endpoint ep_00 ") {
		t.Errorf("differences %q, want twenty and how many there are beside", found)
	}
}

func TestCopySumRefusesWhatIsNoVerdict(t *testing.T) {
	var sum store.CopySum
	bad := copyCheck("ep_a", 1, "good", 0)
	if err := sum.Add(store.CopyTable{Name: "checks"}, store.CopyBatch{Checks: []store.Check{bad}}); err == nil || !strings.Contains(err.Error(), bad.ID) {
		t.Errorf("Add: error %v, want one that names the check", err)
	}
}
