package web

import "slices"

// Picker chooses endpoints: those that are listed by ticks, others by typing their slugs.
type Picker struct {
	Field    string // of the form, and of mistakes: "endpoints"
	Options  []PickOption
	Typed    string // slugs with commas between them
	More     bool   // there are more endpoints than are listed
	Label    string
	Ordered  bool // each that is chosen has a place
	Problems []string
}

// PickOption is an endpoint that can be ticked.
type PickOption struct {
	Slug, Name string
	Chosen     bool
	Place      string // counted from 1; empty where there is none
}

// Any reports whether an endpoint is chosen.
func (p Picker) Any() bool {
	return p.Typed != "" || slices.ContainsFunc(p.Options, func(o PickOption) bool { return o.Chosen })
}

// Typing reports whether there is a field for slugs.
func (p Picker) Typing() bool { return p.More || p.Typed != "" }

func contains(list []string, one string) bool { return slices.Contains(list, one) }

// Tick is one of several words that can be ticked.
type Tick struct {
	Value, Label string
	On           bool
}
