package probe

import (
	"net/url"
	"strings"
)

// Place is where an event stream may be taken up again: the id of its last event, and the wait in milliseconds.
type Place struct {
	ID    string
	Retry int64
}

// PlaceOf reads a stream to its end and returns where it stopped.
func PlaceOf(in string) Place {
	r := newEventReader(strings.NewReader(in), 1<<20)
	for {
		if _, err := r.next(); err != nil {
			return Place{r.lastID, r.retry.Milliseconds()}
		}
	}
}

// ResolveEndpoint reads the data of an endpoint event on the stream at a URL; the class is empty when messages may be
// posted there.
func ResolveEndpoint(stream, data string) (endpoint string, class Class, message string) {
	u, err := url.Parse(stream)
	if err != nil {
		return "", ClassProbeError, err.Error()
	}
	c := &conversation{url: u, secrets: NewRedactor(Target{URL: stream})}
	where, p := c.resolveEndpoint(data)
	if p != nil {
		return "", p.class, p.message
	}
	return where.String(), "", ""
}
