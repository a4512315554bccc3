package probe

import (
	"errors"
	"io"
)

// ReadEvents returns the events of a stream, as "name|data", and the error that ended it.
func ReadEvents(in io.Reader, limit int) (events []string, unfinished bool, err error) {
	r := newEventReader(in, limit)
	for {
		e, err := r.next()
		if err != nil {
			return events, r.unfinished(), err
		}
		events = append(events, e.name+"|"+string(e.data))
	}
}

// Envelope is what a test sees of a JSON-RPC message.
type Envelope struct {
	ID     string
	Result string
	Error  *RPCError
	Call   bool
	Notes  []string
}

// RPCError is what a test sees of a JSON-RPC error.
type RPCError struct {
	Code    int
	Message string
}

// ReadEnvelope reads one message; the class is empty when it could be read.
func ReadEnvelope(raw []byte, strict bool) (Envelope, Class, string) {
	e, err := readEnvelope(raw, strict)
	if bad, ok := errors.AsType[*badMessage](err); ok {
		return Envelope{}, bad.class, bad.message
	}
	seen := Envelope{ID: string(e.id), Result: string(e.result), Call: e.call, Notes: e.notes}
	if e.err != nil {
		seen.Error = &RPCError{e.err.Code, e.err.Message}
	}
	return seen, "", ""
}

// Tidy makes text fit to be shown.
func Tidy(s string, max int) string { return tidy(s, max) }
