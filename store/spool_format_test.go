package store_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// filled returns a check of which no field is zero, those included that are added to it one day.
func filled(t *testing.T) store.Check {
	t.Helper()
	var c store.Check
	n := 0
	fill(t, reflect.ValueOf(&c).Elem(), &n)
	c.ID = "chk_odd"
	return c
}

// lightly returns c without what does not wait for a database.
func lightly(c store.Check) store.Check {
	c.Slug, c.Epoch, c.Asked, c.Maintenance, c.Transcript, c.Result.Contract, c.Result.Transcript = "", 0, false, false, nil, nil, nil
	return c
}

// fill gives every field of v a value of its own.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(start.Add(time.Duration(*n) * time.Microsecond)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(-int64(*n))
	case reflect.Uint64:
		v.SetUint(math.MaxUint64 - uint64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	default:
		t.Fatalf("a check holds a %s, which this test cannot fill", v.Type())
	}
}

func TestEveryFieldOfACheckOutlivesAnOutage(t *testing.T) {
	for name, c := range map[string]store.Check{
		"of which nothing is zero": filled(t),
		"of which all is zero":     {ID: store.CheckID("", "", time.Time{})},
		"made by a probe":          store.NewCheck("ep_1", "eu", start, probe.Result{StartedAt: start, Duration: 80 * time.Millisecond, Verdict: probe.Up}),
		"of the year 1970":         store.NewCheck("ep_1", "eu", time.UnixMicro(0), probe.Result{StartedAt: time.UnixMicro(0).UTC()}),
		"of a year that JSON cannot hold": {ID: "chk_1", Result: probe.Result{
			StartedAt: start, Memory: probe.Memory{Head: &probe.Head{Height: 1}}, Failure: &probe.Failure{},
			Steps: []probe.Step{{}, {Latency: math.MaxInt64, Code: math.MinInt32}},
		}},
	} {
		got, err := store.ParseFrame(store.Frame(t, c))
		if err != nil {
			t.Errorf("check %s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(lightly(c), got); diff != "" {
			t.Errorf("check %s is read as another (-want +got):\n%s", name, diff)
		}
	}
}

// A stranger's clock may name a year that JSON cannot hold. Databases pass over it, and so does the spool.
func TestFactsThatJSONCannotHoldKeepNoCheckFromWaiting(t *testing.T) {
	c := store.NewCheck("ep_1", "eu", start, probe.Result{StartedAt: start, Verdict: probe.Up})
	far := time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
	c.Result.Facts = probe.Facts{ServerName: "odd\xff", HeadTime: &far}
	c.Result.Memory = probe.Memory{Head: &probe.Head{Height: 1, Time: far}}
	got, err := store.ParseFrame(store.Frame(t, c))
	if err != nil {
		t.Fatal(err)
	}
	tidy, err := store.TidyChecks([]store.Check{c, got})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tidy[0], tidy[1]); diff != "" {
		t.Errorf("what is read is not what a database keeps (-want +got):\n%s", diff)
	}
}

func TestAFrameThatWasDamagedIsNoCheck(t *testing.T) {
	whole := store.Frame(t, filled(t))
	for i := 12; i < len(whole); i++ { // the head of a frame has a checksum of its own, which is looked at before
		for _, bit := range []byte{1, 0x80} {
			damaged := slices.Clone(whole)
			damaged[i] ^= bit
			if _, err := store.ParseFrame(damaged); err == nil {
				t.Fatalf("a frame whose byte %d was damaged is read", i)
			}
		}
	}
}

func TestACheckThatWaitsIsSmall(t *testing.T) {
	if got := store.FrameBytes(t, usual(7)); got > 500 {
		t.Errorf("an up check with four steps takes %d bytes while it waits, want at most 500", got)
	}
}

// usual returns a check of an MCP server as they are by the million.
func usual(n int) store.Check {
	at := start.Add(time.Duration(n) * time.Millisecond)
	tools := 13
	r := probe.Result{
		StartedAt: at.Add(31 * time.Microsecond), Duration: 84_212_345, Kind: probe.KindMCP, Era: probe.EraLegacy, Verdict: probe.Up,
		Facts: probe.Facts{
			ProtocolVersion: "2025-11-25", Era: probe.EraLegacy, ServerName: "weather", ServerVersion: "1.4.2", Tools: &tools,
			Contract: "sha256:" + strings.Repeat("0f", 32), RemoteAddr: "192.0.2.17:443",
		},
	}
	for i, name := range []string{"initialize", "initialized", "tools/list", "close"} {
		r.Steps = append(r.Steps, probe.Step{
			Name: name, Method: name, Start: time.Duration(i) * 21_123_456, Latency: 20_987_654 + time.Duration(n), HTTPStatus: 200, BytesIn: 512, BytesOut: 140,
			Phases: probe.Phases{FirstByte: 19_876_543, Body: 412_345},
		})
	}
	r.Steps[0].Phases.DNS, r.Steps[0].Phases.Connect, r.Steps[0].Phases.TLS = 1_212_121, 8_123_456, 15_654_321
	return store.NewCheck(fmt.Sprintf("ep_0198%028d", n%1000), "frankfurt", at, r)
}
