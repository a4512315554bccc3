package alerts

import (
	"encoding/json"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// LocationEvent returns word of a location that lost its own network, or has it back at a time. since is when it lost it.
func LocationEvent(location string, offline bool, since, at time.Time) store.Event {
	data := locationData{Location: location, Since: store.Stamp(since)}
	ev := store.Event{At: at, Kind: store.EventLocationOffline, Severity: string(probe.RankWarning), Title: "Location " + location + " is offline"}
	if !offline {
		data.Until = new(store.Stamp(at))
		ev.Kind, ev.Severity, ev.Title = store.EventLocationOnline, string(probe.RankInfo), "Location "+location+" is back online"
	}
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // texts and times of this century always have a JSON form
	}
	ev.Data = text
	return ev
}
