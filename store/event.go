package store

import (
	"encoding/json"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// EventKind says what an event tells. Kinds are stored as they are and never renamed.
type EventKind string

// EventContractChanged means that an MCP server promises other tools than before. Its data is a ContractChanged, its
// severity the worst rank of the changes.
const EventContractChanged EventKind = "contract_changed"

// The kinds of events about this service itself.
const (
	EventLocationOffline EventKind = "location_offline" // a location lost its own network
	EventLocationOnline  EventKind = "location_online"
	EventChannelBroken   EventKind = "channel_broken" // nothing more is sent to a channel
)

// Event is something that happened to an endpoint beside outages: a line of its timeline.
type Event struct {
	ID         string
	EndpointID string // empty when it is about this service itself
	At         time.Time
	Kind       EventKind
	Severity   string // breaking, warning or info
	Title      string
	Data       json.RawMessage // an object; its members depend on the kind
}

// MaxEvents is how many events of one kind are kept for an endpoint.
const MaxEvents = 1000

// EventFilter selects events of one endpoint. Zero members do not select.
type EventFilter struct {
	EndpointID string // required
	Limit      int
	Cursor     string
}

// ContractFilter selects contracts of one endpoint.
type ContractFilter struct {
	EndpointID string // required
	Limit      int
	Cursor     string
}

// EnrollEvent returns an event about this service itself with the id that a database is to keep it under.
func EnrollEvent(e Event) (Event, error) {
	if e.EndpointID != "" {
		return e, invalid([]probe.Problem{problem("endpoint", "an event about this service is of no endpoint")})
	}
	e.ID, e.At = NewID("evt"), Stamp(e.At)
	if len(e.Data) == 0 {
		e.Data = json.RawMessage("{}")
	}
	return e, nil
}

// ServiceNotices returns one notice of an event about this service itself for each of the channels.
func ServiceNotices(e Event, channels []string) []Notice {
	notices := eventNotices(e, channels, e.At)
	for i := range notices {
		notices[i].Kind = NoticeService
	}
	return notices
}
