package api

import (
	"context"
	"math"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// ObjectiveState is how an endpoint fares against one of its objectives.
type ObjectiveState struct {
	Objective store.Objective
	// Attained is what was achieved in the window so far, and BudgetLeft how much of the error budget is left, below zero when
	// it is overspent; both in per cent, and nil while nothing was measured.
	Attained   *float64
	BudgetLeft *float64
	// Burn is how fast the budget was spent over "1h", "5m", "6h" and "30m": 1 spends all of it in exactly the window.
	Burn    map[string]float64
	Burning string // BurningFast or BurningSlow; empty while it is neither
}

// The values of ObjectiveState.Burning.
const (
	BurningFast = "fast"
	BurningSlow = "slow"
)

// objectiveStatus is an ObjectiveState as it stands in JSON.
type objectiveStatus struct {
	Objective
	Attained   *float64           `json:"attained"`
	BudgetLeft *float64           `json:"budget_left"`
	Burn       map[string]float64 `json:"burn"`
	Burning    string             `json:"burning"`
}

// burnWindows are those that a burn rate is told of.
var burnWindows = []string{"1h", "5m", "6h", "30m"}

func objectiveStatusJSON(o ObjectiveState) objectiveStatus {
	shown := objectiveStatus{Objective: objectiveJSON(o.Objective), Burn: map[string]float64{}, Burning: o.Burning}
	if o.Attained != nil {
		shown.Attained = new(floor3(*o.Attained))
	}
	if o.BudgetLeft != nil {
		shown.BudgetLeft = new(floor3(*o.BudgetLeft))
	}
	for _, w := range burnWindows {
		shown.Burn[w] = math.Round(o.Burn[w]*1000) / 1000
	}
	return shown
}

// objectives returns how an endpoint fares against each of its objectives.
func (s *Server) objectives(ctx context.Context, e store.Endpoint) ([]ObjectiveState, error) {
	if len(e.Objectives) == 0 {
		return nil, nil
	}
	if s.cfg.Objectives != nil {
		return s.cfg.Objectives(ctx, e)
	}
	states := make([]ObjectiveState, 0, len(e.Objectives))
	for _, o := range e.Objectives {
		states = append(states, ObjectiveState{Objective: o})
	}
	return states, nil
}

func (s *Server) listObjectives(c echo.Context) error {
	if err := queryOf(c).end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	states, err := s.objectives(ctx, o.Endpoint)
	if err != nil {
		return err
	}
	return ok(c, listOf(states, "", objectiveStatusJSON))
}
