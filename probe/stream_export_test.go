package probe

import (
	"errors"
	"io"
)

// Frames is what a test sees of a connection that carries messages.
type Frames struct {
	Messages  []string
	Oddities  []string
	Pollution int // lines
	First     string
	End       string // "EOF", "unexpected EOF", "garbage", "too large", or the class of a problem
	Message   string // of the garbage or problem
}

// ReadFrames reads in to its end. A lenient reader passes over what is no message.
func ReadFrames(in io.Reader, f Framing, limit int64, lenient bool) Frames {
	var seen Frames
	var p *pollution
	if lenient {
		p = &pollution{}
	}
	framer := newFramer(in, f, limit, p)
	for {
		message, err := framer.next()
		if odd := framer.oddity(); odd != "" {
			seen.Oddities = append(seen.Oddities, odd)
		}
		if err != nil {
			seen.End, seen.Message = frameEnd(err)
			if p != nil {
				seen.Pollution, seen.First = p.lines, string(p.first)
			}
			return seen
		}
		seen.Messages = append(seen.Messages, string(message))
	}
}

func frameEnd(err error) (end, message string) {
	if bad, ok := errors.AsType[*garbage](err); ok {
		return "garbage", string(bad.text)
	}
	if p, ok := errors.AsType[*problem](err); ok {
		return string(p.class), p.message
	}
	if errors.Is(err, errBodyTooLarge) {
		return "too large", ""
	}
	return err.Error(), ""
}

// ErrorLines picks the lines that tell what went wrong from the standard error of a process.
func ErrorLines(text string) string { return errorLines(text) }
