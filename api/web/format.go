package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// stamp writes a moment the way every page shows it before a reader's own zone is known.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05 UTC")
}

// machine writes a moment for the datetime attribute.
func machine(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func day(t time.Time) string { return t.UTC().Format("2 Jan 2006") }

// ago says how long before now t was.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	if d < time.Second {
		return "just now"
	}
	return lasting(d) + " ago"
}

// until says how far after now t is, or how long ago when it has passed.
func until(now, t time.Time) string {
	if t.Before(now) {
		return lasting(now.Sub(t)) + " ago"
	}
	return "in " + lasting(t.Sub(now))
}

// lasting writes a duration in words, in its two largest units: "12 s", "4 min 10 s", "3 h 20 min", "2 days 4 h".
func lasting(d time.Duration) string {
	d = max(0, d)
	seconds := int64(d.Round(time.Second) / time.Second)
	days, hours, minutes := seconds/86400, seconds/3600%24, seconds/60%60
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 600:
		return join(fmt.Sprintf("%d min", minutes), seconds%60, "s")
	case seconds < 3600:
		return fmt.Sprintf("%d min", minutes)
	case days == 0:
		return join(fmt.Sprintf("%d h", hours), minutes, "min")
	case days < 7:
		return join(fmt.Sprintf("%d %s", days, plural(int(days), "day", "days")), hours, "h")
	}
	return fmt.Sprintf("%d days", days)
}

// Lasting writes a duration as the pages do.
func Lasting(d time.Duration) string { return lasting(d) }

// join adds a smaller unit unless there is none of it.
func join(large string, n int64, unit string) string {
	if n == 0 {
		return large
	}
	return fmt.Sprintf("%s %d %s", large, n, unit)
}

// latency writes a measured duration with three digits or so, which is all that it is worth.
func latency(d time.Duration) string { return milliseconds(float64(d) / float64(time.Millisecond)) }

// Measured writes a measured duration as the pages do.
func Measured(d time.Duration) string { return latency(d) }

// milliseconds writes a number of milliseconds.
func milliseconds(ms float64) string {
	switch {
	case math.IsNaN(ms) || ms < 0:
		return "–"
	case ms == 0:
		return "0 ms"
	case ms < 0.1:
		return "<0.1 ms"
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 999.5:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 9995:
		return strconv.FormatFloat(ms/1000, 'f', 2, 64) + " s"
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
}

// percent writes an uptime. It rounds down, so that only a flawless record reads 100 %; nil is no record.
func percent(p *float64) string {
	if p == nil || math.IsNaN(*p) {
		return "–"
	}
	if *p >= 100 || *p <= 0 {
		return strconv.FormatFloat(max(0, min(100, *p)), 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(math.Floor(*p*100+1e-7)/100, 'f', 2, 64) + " %"
}

// coverage says how many of the checks that were due were made, in words.
func coverage(p float64) string {
	switch {
	case p <= 0:
		return "not measured yet"
	case p >= 99.5:
		return "fully measured"
	case p < 1:
		return "less than 1 % measured"
	}
	return fmt.Sprintf("%.0f %% measured", math.Floor(p))
}

// size writes a number of bytes.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// grouped writes a whole number with its thousands set apart by narrow spaces that do not break.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, r := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// plural chooses the word that goes with n.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
