package web

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// Spoken is what only the language of a reader gives its words: a sentence, a time, a number. The template function say says it, and
// so does every sentence that has it among its arguments. As a fmt.Stringer it speaks English.
type Spoken interface {
	fmt.Stringer
	in(l Language) string
}

// What sentences have among their arguments.
type (
	// Duration is a length of time in words: "4 min 10 s".
	Duration time.Duration
	// Latency is a measured length of time: "84 ms".
	Latency time.Duration
	// Milliseconds are a Latency as charts have it.
	Milliseconds float64
	// Day is a day in UTC: "2 Jan 2006".
	Day time.Time
	// Moment is a time to the second, in UTC.
	Moment time.Time
	// Percent is an uptime; what is no number is no record.
	Percent float64
	// Words are those of Language.words: plain English from elsewhere.
	Words string
	// List is said with commas between.
	List []Spoken
)

func (d Latency) in(l Language) string      { return l.latency(time.Duration(d)) }
func (d Milliseconds) in(l Language) string { return l.milliseconds(float64(d)) }
func (d Day) in(l Language) string          { return l.day(time.Time(d)) }
func (m Moment) in(l Language) string       { return l.stamp(time.Time(m)) }
func (p Percent) in(l Language) string      { return l.percent((*float64)(&p)) }
func (w Words) in(l Language) string        { return l.words(string(w)) }
func (s Said) in(l Language) string         { return l.say(s.Key, s.Args...) }

// A sentence does not break within a length of time, so that no unit stands alone on a line.
func (d Duration) in(l Language) string {
	return strings.ReplaceAll(l.lasting(time.Duration(d)), " ", "\u00a0")
}

func (s List) in(l Language) string {
	said := make([]string, 0, len(s))
	for _, one := range s {
		said = append(said, one.in(l))
	}
	return strings.Join(said, ", ")
}

func (d Duration) String() string     { return d.in(english) }
func (d Latency) String() string      { return d.in(english) }
func (d Milliseconds) String() string { return d.in(english) }
func (d Day) String() string          { return d.in(english) }
func (m Moment) String() string       { return m.in(english) }
func (p Percent) String() string      { return p.in(english) }
func (w Words) String() string        { return string(w) }
func (s Said) String() string         { return s.in(english) }
func (s List) String() string         { return s.in(english) }

// In says s in the language of a tag.
func (s Said) In(tag string) string { return s.in(languageOf(tag)) }

// PercentOf returns an uptime that may be unknown.
func PercentOf(p *float64) Percent {
	if p == nil {
		return Percent(math.NaN())
	}
	return Percent(*p)
}

// stamp writes a moment the way every page shows it before a reader's own zone is known.
func (l Language) stamp(t time.Time) string {
	if t.IsZero() {
		return l.say("never")
	}
	return l.day(t) + t.UTC().Format(", 15:04:05 UTC")
}

// machine writes a moment for the datetime attribute.
func machine(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (l Language) day(t time.Time) string { return l.dates.write(t, cmp.Or(l.dates.Day, "2 Jan 2006")) }

// date writes a day whose year is clear.
func (l Language) date(t time.Time) string { return l.dates.write(t, cmp.Or(l.dates.Short, "2 Jan")) }

// dates are how a language writes days, unless it does as English does: layouts of package time, and the names of the months that stand
// for Jan to Dec in them.
type dates struct {
	Day    string   `json:"day"`
	Short  string   `json:"short"`
	Months []string `json:"months"`
}

func (d dates) write(t time.Time, layout string) string {
	t = t.UTC()
	text := t.Format(layout)
	if len(d.Months) != 12 {
		return text
	}
	return strings.Replace(text, t.Format("Jan"), d.Months[t.Month()-1], 1)
}

// ago says how long before now t was.
func (l Language) ago(now, t time.Time) string {
	if t.IsZero() {
		return l.say("never")
	}
	d := now.Sub(t)
	if d < time.Second {
		return l.say("just now")
	}
	return l.away(d, "%s ago", "%d days ago")
}

// agoMark is an element that says how long before now t was: exactly where it is pointed at, and in the reader's zone by the script.
func (l Language) agoMark(now, t time.Time) template.HTML {
	return template.HTML(`<time datetime="` + machine(t) + `" data-ago title="` + //nolint:gosec // what is said in words is escaped
		template.HTMLEscapeString(l.stamp(t)) + `">` + template.HTMLEscapeString(l.ago(now, t)) + `</time>`)
}

// until says how far after now t is, or how long ago when it has passed.
func (l Language) until(now, t time.Time) string {
	if t.Before(now) {
		return l.away(now.Sub(t), "%s ago", "%d days ago")
	}
	return l.away(t.Sub(now), "in %s", "in %d days")
}

// away says how far off something is, by a sentence for any length of time and one for days alone, which many languages inflect.
func (l Language) away(d time.Duration, sentence, days string) string {
	if n := int(d.Round(time.Second) / (24 * time.Hour)); n >= 7 {
		return l.say(days, n)
	}
	return l.say(sentence, l.lasting(d))
}

// lasting writes a duration in words, in its two largest units: "12 s", "4 min 10 s", "3 h 20 min", "2 days 4 h". times.js does the
// same.
func (l Language) lasting(d time.Duration) string {
	d = max(0, d)
	seconds := int64(d.Round(time.Second) / time.Second)
	days, hours, minutes := seconds/86400, seconds/3600%24, seconds/60%60
	switch {
	case seconds < 60:
		return l.say("%d s", seconds)
	case seconds < 600:
		return l.two("%d min", minutes, "%d s", seconds%60)
	case seconds < 3600:
		return l.say("%d min", minutes)
	case days == 0:
		return l.two("%d h", hours, "%d min", minutes)
	case days < 7:
		return l.two("%d days as a length", days, "%d h", hours)
	}
	return l.say("%d days as a length", days)
}

// two adds a smaller unit unless there is none of it.
func (l Language) two(large string, n int64, small string, m int64) string {
	if m == 0 {
		return l.say(large, n)
	}
	return l.say(large, n) + " " + l.say(small, m)
}

// latency writes a measured duration with three digits or so, which is all that it is worth.
func (l Language) latency(d time.Duration) string {
	return l.milliseconds(float64(d) / float64(time.Millisecond))
}

// milliseconds writes a number of milliseconds.
func (l Language) milliseconds(ms float64) string {
	switch {
	case math.IsNaN(ms) || ms < 0:
		return "–"
	case ms == 0:
		return "0 ms"
	case ms < 0.1:
		return "<" + l.number(0.1, 1) + " ms"
	case ms < 10:
		return l.number(ms, 1) + " ms"
	case ms < 999.5:
		return l.number(ms, 0) + " ms"
	case ms < 9995:
		return l.number(ms/1000, 2) + " s"
	}
	return l.number(ms/1000, 1) + " s"
}

// number writes a number with so many digits behind the decimal separator, and none between thousands.
func (l Language) number(v float64, digits int) string {
	return l.decimal(strconv.FormatFloat(v, 'f', digits, 64))
}

// decimal puts the language's decimal separator into a number that is written already, or that begins a text.
func (l Language) decimal(text string) string { return strings.Replace(text, ".", l.separator, 1) }

// percent writes an uptime. It rounds down, so that only a flawless record reads 100 %; nil is no record.
func (l Language) percent(p *float64) string {
	if p == nil || math.IsNaN(*p) {
		return "–"
	}
	if *p >= 100 || *p <= 0 {
		return l.number(max(0, min(100, *p)), 0) + " %"
	}
	return l.number(math.Floor(*p*100+1e-7)/100, 2) + " %"
}

// coverage says how many of the checks that were due were made, in words.
func (l Language) coverage(p float64) string {
	switch {
	case p <= 0:
		return l.say("not measured yet")
	case p >= 99.5:
		return l.say("fully measured")
	case p < 1:
		return l.say("less than 1 %% measured")
	}
	return l.say("%d %% measured", int(p))
}

// size writes a number of bytes.
func (l Language) size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return l.number(float64(n)/1e3, 1) + " kB"
	}
	return l.number(float64(n)/1e6, 1) + " MB"
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

func (l Language) yesNo(yes bool) string {
	if yes {
		return l.say("yes")
	}
	return l.say("no")
}
