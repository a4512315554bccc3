package postgres_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
)

func TestMemoryKeepsWhatRecordingNeeds(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := store.Standing{
		Endpoint: store.NewEndpoint(), Open: &store.Incident{ID: "inc"},
		Others: []store.Incident{{ID: "another", Kind: store.IncidentExpiring}},
	}
	fill(reflect.ValueOf(&s.Endpoint).Elem())
	place := store.Place{EndpointID: s.Endpoint.ID, Location: "here"}
	fill(reflect.ValueOf(&place.State).Elem())
	s.State = store.State{Status: store.StatusDown, Since: at, Failure: &probe.Failure{Class: probe.ClassTimeout},
		Flips: []time.Time{at}, Hushed: &store.Hushed{IncidentID: "inc", Severity: store.StatusDown}}
	place.Hour = store.Rollup{EndpointID: s.Endpoint.ID, Location: "here", Begin: at, Counts: store.Counts{Up: 1}, Classes: map[probe.Class]int{"x": 1}}
	place.Hour.Latencies.Add(probe.Result{Verdict: probe.Up, Duration: time.Second})
	s.Places = []store.Place{place}

	got := postgres.Remembered(s)
	// What neither the judge nor package store looks at when a check is recorded. Whoever adds a member to an endpoint decides
	// whether it belongs here.
	unneeded := []string{
		"Kind", "URL", "Headers", "Request", "Options", "Command", "DegradedOver", "Public", "Tags", "Objectives",
		"CreatedAt", "UpdatedAt",
	}
	before, after := reflect.ValueOf(s.Endpoint), reflect.ValueOf(got.Endpoint)
	for i := range before.NumField() {
		name := before.Type().Field(i).Name
		same := reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface())
		if same == slices.Contains(unneeded, name) {
			t.Errorf("%s of the endpoint comes back as %v, was %v", name, after.Field(i), before.Field(i))
		}
	}
	s.Endpoint, got.Endpoint = store.Endpoint{}, store.Endpoint{}
	if !reflect.DeepEqual(got, s) {
		t.Errorf("came back as\n%+v, was\n%+v", got, s)
	}
}

func TestMemoryForgetsWhatOthersWriteTo(t *testing.T) {
	s := store.Standing{
		Endpoint: store.Endpoint{ID: "ep"}, Places: []store.Place{{EndpointID: "ep", Location: "here"}},
		Others: []store.Incident{{ID: "inc", Kind: store.IncidentChain}},
	}
	if postgres.Remembers(s) {
		t.Error("an endpoint is remembered with an incident that others are in as well")
	}
	s.Others = nil
	if !postgres.Remembers(s) {
		t.Error("an endpoint is not remembered without one")
	}
}

// fill gives every member of a struct some value, so that one that is left out shows.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Uint8:
		v.SetUint(1)
	default:
		if v.CanInt() {
			v.SetInt(7)
		} else if v.CanUint() {
			v.SetUint(7)
		}
	}
}
