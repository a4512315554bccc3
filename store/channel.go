package store

import (
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Channel is where notices go. Secrets holds what must be encrypted at rest and is never shown.
type Channel struct {
	ID       string
	Name     string
	Type     ChannelType
	Settings map[string]string // what may be shown, by the names of ChannelType.Fields
	Secrets  map[string]string // what may not
	// Broken is why nothing more is sent here, in the channel's own words; empty while it works.
	Broken    string
	BrokenAt  *time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Validate returns everything that is wrong with c as an Invalid, nil when it can be kept. No problem repeats a secret.
func (c Channel) Validate() error {
	problems := nameProblems("name", c.Name)
	spec, ok := c.Type.Spec()
	if !ok {
		names := make([]string, 0, len(channelSpecs))
		for _, s := range channelSpecs {
			names = append(names, string(s.Type))
		}
		problems = append(problems, problem("type", "unknown channel type %.40q: use %s", c.Type, strings.Join(names, ", ")))
		return invalid(problems)
	}
	return invalid(slices.Concat(problems, spec.problems(c)))
}

// Value returns what c has under the name of a field, secret or not.
func (c Channel) Value(field string) string {
	if v, ok := c.Secrets[field]; ok {
		return v
	}
	return c.Settings[field]
}

// problems returns what is wrong with the fields of c.
func (s ChannelSpec) problems(c Channel) []probe.Problem {
	var problems []probe.Problem
	for _, f := range s.Fields {
		switch v := c.Value(f.Name); {
		case v == "" && f.Required:
			problems = append(problems, problem(f.Name, "is required"))
		case v == "":
		case len(v) > f.limit():
			problems = append(problems, problem(f.Name, "is longer than %d bytes", f.limit()))
		case f.Kind == FieldURL:
			problems = append(problems, webURLProblems(f.Name, v)...)
		case f.Kind == FieldChoice && !slices.Contains(f.Choices, v):
			problems = append(problems, problem(f.Name, "must be one of %s", strings.Join(f.Choices, ", ")))
		case f.Secret && f.Kind == FieldText && strings.ContainsAny(v, " \t\r\n"):
			problems = append(problems, problem(f.Name, "holds white space: copy it again"))
		case f.shape != nil && !f.shape.pattern.MatchString(v):
			problems = append(problems, problem(f.Name, "%s", f.shape.problem))
		}
	}
	for _, group := range []map[string]string{c.Settings, c.Secrets} {
		for name := range group {
			f, known := s.Field(name)
			_, secret := c.Secrets[name]
			if !known || f.Secret != secret {
				problems = append(problems, problem(name, "does not belong to a channel of type %s", s.Type))
			}
		}
	}
	if s.check != nil {
		problems = append(problems, s.check(c)...)
	}
	slices.SortStableFunc(problems, func(a, b probe.Problem) int { return strings.Compare(a.Field, b.Field) })
	return problems
}
