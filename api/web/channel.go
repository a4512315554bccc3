package web

import (
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// ChannelsPage lists the channels and adds one.
type ChannelsPage struct {
	Frame
	Nameless bool // nobody told this service its own address: see the template
	Channels []ChannelRow
	Types    []ChannelType // that can be added
	Form     ChannelForm
	Problems Problems
	// What was pasted in place of a form, but for the secret itself.
	For, ForName  string   // slug and name of the endpoint that is to tell the channel; empty: none
	Place         string   // where a bot is to speak
	PasteProblem  string   // why no channel was made of it
	PasteProblems Problems // the same by the fields of Form, which is of the type it was taken for
}

func (ChannelsPage) template() string { return "channels" }

// ChannelRow is one channel in a list.
type ChannelRow struct {
	ID, Name, Type string
	How            Said   // "by webhook URL", "channel #alerts"
	Broken         string // why nothing more is sent, empty while it works
	BrokenAt       *time.Time
}

// ChannelType is a type of channel that can be chosen.
type ChannelType struct {
	Name  string // as in addresses
	Title string
}

// ChannelForm is a channel as somebody typed it.
type ChannelForm struct {
	Type, TypeTitle string
	Name            string
	Fields          []ChannelField
	Kinds           []string // of messages that a template can be previewed with; empty when it cannot
	Kind            string   // of these, the one chosen
}

// Label returns the words on the form for a field, for the list of mistakes.
func (f ChannelForm) Label(field string) string {
	for _, own := range f.Fields {
		if own.Name == field {
			return own.Label
		}
	}
	return Problems(nil).Label(field)
}

// ChannelField is one field of the form.
type ChannelField struct {
	store.ChannelField
	Value    string
	Optional bool
	Kept     bool   // the channel holds a secret here, which is kept while Value is empty
	Remove   bool   // that secret is to be removed
	Preview  string // of a template: what it makes of a message; empty when nobody asked
}

// Long reports whether several lines can be typed.
func (f ChannelField) Long() bool { return f.Kind == store.FieldLong }

// Choice reports whether one of Choices is chosen.
func (f ChannelField) Choice() bool { return f.Kind == store.FieldChoice }

// Mono reports whether every character counts.
func (f ChannelField) Mono() bool {
	return f.Secret || f.Kind == store.FieldURL || f.Kind == store.FieldLong
}

// ChannelPage edits, tests and removes one channel.
type ChannelPage struct {
	Frame
	Channel  ChannelRow
	Form     ChannelForm
	Problems Problems
	Tested   bool         // a test message was sent
	Failure  string       // why it did not arrive, without secrets; empty when it did
	Log      *DeliveryLog // nil: not shown
}

func (ChannelPage) template() string { return "channel" }

// DeliveryLog is what became of the messages to a channel, one page of it, the latest attempt first.
type DeliveryLog struct {
	Attempts []AttemptRow
	First    string // address of the first page; empty on it
	Next     string // address of the page with older attempts
}

// AttemptRow is one attempt to deliver a message.
type AttemptRow struct {
	At         time.Time
	Kind       string // of the message, such as "opened"
	Subject    string // name of what it is about; empty for an incident without one
	Endpoint   string // name; empty when the message is about none
	IncidentID string // empty when it is about none
	// Outcome is "sent", "retried" (it is tried again), "failed" (for good) or "passed" (the channel has no place for it).
	Outcome  string
	Error    string // what the channel answered, without secrets; empty when it took the message
	NoticeID string // of what is sent again by the button; empty when it cannot be
	Took     time.Duration
}

// Tag is how the outcome is shown.
func (a AttemptRow) Tag() Tag {
	switch a.Outcome {
	case "sent":
		return Tag{"up", "Sent"}
	case "retried":
		return Tag{"degraded", "To be tried again"}
	case "failed":
		return Tag{"down", "Failed"}
	case "passed":
		return Tag{"paused", "Passed over"}
	}
	return Tag{"unknown", a.Outcome}
}

// Again reports whether it makes sense to send the message again: its way has ended, and the channel has a place for it.
func (a AttemptRow) Again() bool {
	return a.NoticeID != "" && (a.Outcome == "sent" || a.Outcome == "failed")
}
