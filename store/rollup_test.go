package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func failed(v probe.Verdict, c probe.Class) probe.Result {
	return probe.Result{Verdict: v, Failure: &probe.Failure{Class: c}, Duration: time.Second}
}

func TestARollupCountsWhyChecksWereNotUp(t *testing.T) {
	var h store.Rollup
	h.Add(whole(10 * time.Millisecond))
	h.Add(failed(probe.Down, probe.ClassTimeout))
	h.Add(failed(probe.Down, probe.ClassTimeout))
	h.Add(failed(probe.Degraded, probe.ClassSlow))
	h.Add(probe.Result{Verdict: probe.Unknown})
	other := store.Rollup{EndpointID: "ep_other"}
	other.Add(failed(probe.Gated, probe.ClassAuthRequired))
	other.Add(failed(probe.Down, probe.ClassTimeout))
	if err := h.Merge(other); err != nil {
		t.Fatal(err)
	}
	if want := (store.Counts{Up: 1, Degraded: 1, Down: 3, Gated: 1, Unknown: 1}); h.Counts != want || h.EndpointID != "" {
		t.Errorf("counts %+v of %q, want %+v", h.Counts, h.EndpointID, want)
	}
	want := map[probe.Class]int{probe.ClassTimeout: 3, probe.ClassSlow: 1, probe.ClassAuthRequired: 1}
	if diff := cmp.Diff(h.Classes, want); diff != "" {
		t.Errorf("classes (-got +want):\n%s", diff)
	}
	if got := h.Latencies.Quantiles("", 0, 1); len(got) != 2 || got[0] > 11 || got[1] < 900 {
		t.Errorf("latencies from %v, want those of the checks that were up or degraded", got)
	}
}

func TestTheClassesOfARollupAreBounded(t *testing.T) {
	var h, other store.Rollup
	for i := range 100 {
		h.Add(failed(probe.Down, probe.Class(fmt.Sprint("class ", i))))
		other.Add(failed(probe.Down, probe.Class(fmt.Sprint("other ", i))))
	}
	h.Add(failed(probe.Down, "class 0"))
	if err := h.Merge(other); err != nil {
		t.Fatal(err)
	}
	if len(h.Classes) != 32 || h.Classes["class 0"] != 2 || h.Counts.Down != 201 {
		t.Errorf("%d classes, %v, counts %+v, want a bound on classes alone", len(h.Classes), h.Classes, h.Counts)
	}
}

func TestARollupComesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	full := rollupOf(random, 100)
	full.Add(failed(probe.Down, probe.ClassTimeout))
	full.Add(failed(probe.Unknown, probe.ClassRateLimited))
	sum := full.Clone()
	if err := sum.Merge(full); err != nil {
		t.Fatal(err)
	}
	maintained := full.Clone()
	maintained.AddMaintained()
	for name, h := range map[string]store.Rollup{"nothing": {}, "an hour": full, "a sum": sum, "under maintenance": maintained} {
		data, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		got := store.Rollup{EndpointID: "ep_a", Counts: store.Counts{Up: 7}, Classes: map[probe.Class]int{"old": 1}}
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := got.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(again, data); diff != "" {
			t.Errorf("%s, written again (-got +want):\n%s", name, diff)
		}
		if diff := cmp.Diff(got.Classes, h.Classes); diff != "" || got.Counts != h.Counts || got.EndpointID != "ep_a" {
			t.Errorf("%s came back as %+v\n%s", name, got, diff)
		}
	}
	var none store.Rollup
	if err := none.UnmarshalBinary(nil); err != nil || none.Counts.Total() != 0 {
		t.Errorf("no bytes are %+v, %v", none, err)
	}
}

// Roll-ups that were written before there was maintenance, and those without any, are of five counts.
func TestARollupSaysMaintenanceOnlyWhereThereWasSome(t *testing.T) {
	plain := []byte{1, 7, 0, 1, 0, 0, 0}
	var h store.Rollup
	if err := h.UnmarshalBinary(plain); err != nil || h.Counts != (store.Counts{Up: 7, Down: 1}) {
		t.Fatalf("the first version is read as %+v, %v", h.Counts, err)
	}
	if again, err := h.MarshalBinary(); err != nil || again[0] != 1 {
		t.Errorf("written as version %d, %v, want the one that older programs read", again[0], err)
	}
	h.AddMaintained()
	data, err := h.MarshalBinary()
	if err != nil || data[0] != 2 {
		t.Fatalf("written as version %d, %v, want 2", data[0], err)
	}
	counts, err := store.CountsOf(data)
	if want := (store.Counts{Up: 7, Down: 1, Maintenance: 1}); err != nil || counts != want || counts.Total() != 9 {
		t.Errorf("counts %+v, %v, want %+v", counts, err, want)
	}
	if percent, ok := counts.Uptime(); !ok || percent != 87.5 {
		t.Errorf("uptime %v, %v, want 87.5 per cent: maintenance counts neither way", percent, ok)
	}
	if err := h.UnmarshalBinary(data[:6]); err == nil {
		t.Error("a second version with five counts is read")
	}
}

func TestBrokenRollupsAreErrors(t *testing.T) {
	h := rollupOf(rand.New(rand.NewPCG(1, 2)), 3)
	h.Add(failed(probe.Down, probe.ClassTimeout))
	data, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 6; n++ { // behind the counts there may be an end between two parts
		if err := new(store.Rollup).UnmarshalBinary(data[:n]); err == nil {
			t.Errorf("the first %d bytes are read", n)
		}
	}
	for name, data := range map[string][]byte{
		"a later version":   {9},
		"a class cut short": {1, 0, 0, 0, 0, 0, 1, 7, 'a'},
		"a class uncounted": {1, 0, 0, 0, 0, 0, 1, 1, 'a'},
		"too many classes":  {1, 0, 0, 0, 0, 0, 33, 0, 0},
		"too many checks":   {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 1},
		"broken latencies":  {1, 0, 0, 0, 0, 0, 0, 1, 1},
	} {
		if err := new(store.Rollup).UnmarshalBinary(data); err == nil {
			t.Errorf("%s: %x is read", name, data)
		}
	}
}

func TestClassesComeBack(t *testing.T) {
	for _, classes := range []map[probe.Class]int{nil, {}, {probe.ClassTimeout: 2, probe.ClassDNS: 1}} {
		data, err := store.EncodeClasses(classes)
		if err != nil || (len(classes) == 0) != (data == nil) {
			t.Fatalf("%v written as %q, %v", classes, data, err)
		}
		got, err := store.DecodeClasses(data)
		if err != nil || len(got) != len(classes) || got[probe.ClassTimeout] != classes[probe.ClassTimeout] {
			t.Errorf("%v came back as %v, %v", classes, got, err)
		}
	}
	if got, err := store.DecodeClasses([]byte(`[]`)); err == nil {
		t.Errorf("a list is read as %v", got)
	}
}

func TestHoursAndDaysAreThoseOfUTC(t *testing.T) {
	at := time.Date(2026, 3, 1, 0, 30, 0, 0, time.FixedZone("east", 2*3600+1800))
	if got, want := store.HourOf(at), time.Date(2026, 2, 28, 22, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("hour of %s = %s, want %s", at, got, want)
	}
	if got, want := store.DayOf(at), time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC); got != want {
		t.Errorf("day of %s = %s, want %s", at, got, want)
	}
}

func FuzzRollup(f *testing.F) {
	h := rollupOf(rand.New(rand.NewPCG(1, 2)), 3)
	h.Add(failed(probe.Down, probe.ClassTimeout))
	data, err := h.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{1, 0, 0, 0, 0, 0, 33, 0, 0})
	h.AddMaintained()
	if data, err = h.MarshalBinary(); err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{2, 0, 0, 0, 0, 0, 1, 0})
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 33, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var h, again store.Rollup
		if err := h.UnmarshalBinary(data); err != nil {
			return
		}
		written, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalBinary(written); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if diff := cmp.Diff(again.Classes, h.Classes); diff != "" || again.Counts != h.Counts || len(h.Classes) > 32 {
			t.Errorf("%+v came back as %+v\n%s", h, again, diff)
		}
	})
}
