package web

import (
	"fmt"
	"strings"
	"time"
)

// BudgetPoint is how much of an error budget was left at the end of a day, in per cent.
type BudgetPoint struct {
	Day  time.Time
	Left float64
}

// BudgetChart shows how an error budget went in the window of its objective, day by day.
type BudgetChart []BudgetPoint

// A budget that is overspent is drawn down to this many per cent.
const budgetFloor = -25.0

func (c BudgetChart) y(left float64) int {
	return height(max(left, budgetFloor)-budgetFloor, 100-budgetFloor)
}

// First is the oldest day, of which there is one at least.
func (c BudgetChart) First() BudgetPoint { return c[0] }

// Last is the newest.
func (c BudgetChart) Last() BudgetPoint { return c[len(c)-1] }

// ViewBox is the coordinate system of the plot.
func (c BudgetChart) ViewBox() string { return fmt.Sprintf("0 0 %d %d", len(c)*slotWidth, plotHeight) }

// Width is how wide the plot is.
func (c BudgetChart) Width() int { return len(c) * slotWidth }

// Zero is where nothing is left.
func (c BudgetChart) Zero() int { return c.y(0) }

// Line is what was left, as steps.
func (c BudgetChart) Line() string {
	var b strings.Builder
	for i, p := range c {
		if i == 0 {
			fmt.Fprintf(&b, "M0 %d", c.y(p.Left))
		}
		fmt.Fprintf(&b, "V%dH%d", c.y(p.Left), (i+1)*slotWidth)
	}
	return b.String()
}

// Area is the ground between the line and nothing left.
func (c BudgetChart) Area() string {
	if len(c) == 0 {
		return ""
	}
	return fmt.Sprintf("%sV%dH0z", c.Line(), c.Zero())
}

// Burn is how fast a budget went over some time.
type Burn struct {
	Over  string  // "1h"
	Rate  float64 // 1 spends all of it in exactly the window
	Limit float64 // above which somebody is told
}

// burnTop is the rate at the end of a bar.
const burnTop = 20.0

// Width is how much of the bar is filled, in per cent of it.
func (b Burn) Width() string { return per100(max(0, min(b.Rate, burnTop)), burnTop) }

// At is where the limit stands, in per cent of the bar.
func (b Burn) At() string { return per100(min(b.Limit, burnTop), burnTop) }

// High reports whether it is above its limit.
func (b Burn) High() bool { return b.Rate > b.Limit }
