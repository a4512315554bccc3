package probe

import (
	"testing"
	"time"
)

func TestLengthsOfTimeAreSaidAsPeopleSayThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                           "0 ms",
		0:                                      "0 ms",
		84 * time.Millisecond:                  "84 ms",
		999999 * time.Microsecond:              "1 s",
		2710 * time.Millisecond:                "2.7 s",
		15 * time.Second:                       "15 s",
		59990 * time.Millisecond:               "1 min",
		90 * time.Second:                       "1 min 30 s",
		6 * time.Minute:                        "6 min",
		9*time.Minute + 59600*time.Millisecond: "10 min",
		time.Hour:                              "1 h",
		time.Hour + 20*time.Minute + 29*time.Second: "1 h 20 min",
		41*time.Hour + 29*time.Minute:               "41 h 29 min",
		48 * time.Hour:                              "2 days",
		74*time.Hour + 50*time.Minute:               "3 days 2 h",
	} {
		if got := inWords(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
	if got, want := tooOld(time.Hour+time.Second, time.Hour), "1 h 1 s old, more than 1 h"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
