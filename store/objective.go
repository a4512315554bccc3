package store

import (
	"fmt"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Objective is what an endpoint is meant to achieve over a window of time.
type Objective struct {
	Name   string  `json:"name"`   // unique within the endpoint, and part of addresses: a slug
	Target float64 `json:"target"` // per cent of the checks that count: 99.9
	// Window is how far back it looks, in whole days.
	Days int `json:"days"`
	// Under makes a check good only when it took less, in nanoseconds as JSON; 0: every check that found the endpoint
	// answering is good.
	Under time.Duration `json:"under,omitempty"`
	// Notify has channels hear of a budget that burns too fast.
	Notify bool `json:"notify,omitempty"`
}

// Bounds of objectives.
const (
	maxObjectives = 5
	maxSLODays    = 90
)

func objectiveProblems(objectives []Objective) []probe.Problem {
	var problems []probe.Problem
	if len(objectives) > maxObjectives {
		problems = append(problems, problem("objectives", "are more than %d", maxObjectives))
	}
	seen := map[string]bool{}
	for i, o := range objectives {
		field := fmt.Sprintf("objectives[%d]", i)
		if o.Name == "" || Slugify(o.Name) != o.Name || seen[o.Name] {
			problems = append(problems, problem(field+".name", "must be lower-case letters, digits and single hyphens, each name once"))
		}
		seen[o.Name] = true
		if !(o.Target >= 50 && o.Target <= 99.999) {
			problems = append(problems, problem(field+".target", "must be between 50 and 99.999 per cent"))
		}
		if o.Days < 1 || o.Days > maxSLODays {
			problems = append(problems, problem(field+".days", "must be between 1 and %d", maxSLODays))
		}
		if o.Under < 0 || o.Under > maxTimeout {
			problems = append(problems, problem(field+".under", "must be between 0s and %s", maxTimeout))
		}
	}
	return problems
}

// Tally is what the checks of a stretch of time add up to.
type Tally struct {
	Counts Counts
	Under  int // of those up or degraded, how many took less than was asked
}
