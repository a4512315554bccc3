package probe

import (
	"strconv"
	"strings"
	"time"
)

// inWords says how long something took or lasts as a person would, in at most two units and no finer than matters: "84 ms", "2.7 s",
// "4 min 10 s", "1 h 20 min", "41 h", "3 days 2 h". Pages know such words again and say them in the reader's language.
func inWords(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 999500*time.Microsecond:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	case d < 59950*time.Millisecond:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	case d < 10*time.Minute:
		return inUnits(d.Round(time.Second), 2)
	case d < 48*time.Hour:
		return inUnits(d.Round(time.Minute), 2)
	}
	return inUnits(d.Truncate(time.Hour), 2)
}

// inUnits says a duration in so many of its units, the largest first, without those that there are none of. Days begin with the second.
func inUnits(d time.Duration, most int) string {
	var words []string
	for _, unit := range []struct {
		length, from time.Duration
		name         string
	}{{24 * time.Hour, 48 * time.Hour, " days"}, {time.Hour, time.Hour, " h"}, {time.Minute, time.Minute, " min"}, {time.Second, time.Second, " s"}} {
		if d >= unit.from && len(words) < most {
			words = append(words, strconv.FormatInt(int64(d/unit.length), 10)+unit.name)
			d %= unit.length
		}
	}
	return strings.Join(words, " ")
}
