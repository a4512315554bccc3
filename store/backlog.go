package store

// backlog is a queue of checks in the form in which they go to a spool, which takes a quarter of the room that they take
// otherwise and gives the garbage collector nothing to look at.
type backlog struct {
	chunks  []chunk // oldest first
	bytes   int
	checks  int
	scratch []byte
}

// chunk is a piece of a backlog. It is moved whole.
type chunk struct {
	frames []byte
	checks int
}

// maxChunk is how large a chunk grows before the next one is begun: it is what one write brings to a spool.
const maxChunk = 64 << 10

// push puts a check at the end.
func (b *backlog) push(c Check) error {
	frame, err := appendFrame(b.scratch[:0], c)
	b.scratch = frame
	if err != nil {
		return err
	}
	last := len(b.chunks) - 1
	if last < 0 || len(b.chunks[last].frames)+len(frame) > maxChunk {
		b.chunks = append(b.chunks, chunk{})
		last++
	}
	b.chunks[last].frames = append(b.chunks[last].frames, frame...)
	b.chunks[last].checks++
	b.bytes += len(frame)
	b.checks++
	return nil
}

// pop takes the oldest check.
func (b *backlog) pop() (Check, error) { return decodeFrame(b.drop()) }

// drop takes the oldest frame.
func (b *backlog) drop() []byte {
	first := &b.chunks[0]
	size, _ := frameSize(first.frames)
	frame := first.frames[:frameHeadSize+size]
	first.frames = first.frames[len(frame):]
	first.checks--
	b.bytes -= len(frame)
	b.checks--
	if first.checks == 0 {
		b.next()
	}
	return frame
}

// take takes the oldest chunk; one without checks when there is none.
func (b *backlog) take() chunk {
	if b.checks == 0 {
		return chunk{}
	}
	c := b.chunks[0]
	b.next()
	b.bytes -= len(c.frames)
	b.checks -= c.checks
	return c
}

func (b *backlog) next() {
	b.chunks[0] = chunk{}
	b.chunks = b.chunks[1:]
}

// putBack undoes a take.
func (b *backlog) putBack(c chunk) {
	b.chunks = append([]chunk{c}, b.chunks...)
	b.bytes += len(c.frames)
	b.checks += c.checks
}
