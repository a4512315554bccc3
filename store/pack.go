package store

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Packed is a check's result as Postgres keeps it, where checks are most of the database: what it has in common with the
// checks before it, as their shape, and what is its own in as few bytes as it takes. It holds what [EncodeResult] does,
// with times rounded as [Rounded] says.
//
//	Result ─┬─ Shape      JSON  kind, era, steps without their times, warnings, failure, facts that last
//	        ├─ Verdict    letter
//	        ├─ Latencies  4 bytes big endian for each step: microseconds, at most 71 minutes
//	        └─ Numbers    when it started, how long it took, phases, bytes received, facts that change with each block
type Packed struct {
	Shape     []byte // nil where it was not asked for
	ShapeID   int32  // hash of what is in Shape; never 0
	Verdict   byte   // see VerdictCode
	Latencies []byte
	Numbers   []byte
}

// Pack packs a result that TidyChecks returned; it never fails for one. Two results with the same ShapeID have the same
// Shape, in this and in every other process; but for a collision of 32 bits, so that shapes are kept by place and day.
func Pack(r probe.Result, scheduledAt time.Time) (Packed, error) {
	p, err := PackBare(r, scheduledAt)
	if err != nil {
		return Packed{}, err
	}
	p.Shape, err = EncodeShape(r)
	return p, err
}

// PackBare is Pack without Shape, which costs more than all the rest and is mostly known already; see [EncodeShape].
func PackBare(r probe.Result, scheduledAt time.Time) (Packed, error) {
	verdict := VerdictCode(r.Verdict)
	if verdict == 0 {
		return Packed{}, fmt.Errorf("pack check: %.40q is not a verdict", r.Verdict)
	}
	n := 4 * len(r.Steps)
	room := make([]byte, 0, n+16+8*len(r.Steps)+len(r.Facts.HeadHash)/2) // one allocation for both
	for _, s := range r.Steps {
		room = binary.BigEndian.AppendUint32(room, latencyMicros(s.Latency))
	}
	return Packed{
		ShapeID:   ShapeID(r),
		Verdict:   verdict,
		Latencies: room[:n:n],
		Numbers:   appendNumbers(room[n:], r, scheduledAt),
	}, nil
}

// PackCheck is PackBare for a check, with whether it was made under maintenance: see [Maintained].
func PackCheck(c Check) (Packed, error) {
	p, err := PackBare(c.Result, c.ScheduledAt)
	if err == nil && c.Maintenance {
		p.Numbers[0] |= flagMaintenance
	}
	return p, err
}

// Maintained reports whether the numbers of a packed check say that it was made under maintenance.
func Maintained(numbers []byte) bool { return len(numbers) > 0 && numbers[0]&flagMaintenance != 0 }

// Unpack returns what Pack was given, as [Rounded] leaves it. Without numbers, which is how rows of the first schema were
// carried over, everything is in the shape: its steps then have the members that EncodeResult writes, and beside them are
// started_at (as scheduled where that is not there), duration_ms and retry_after_ms.
func Unpack(scheduledAt time.Time, verdict byte, latencies, numbers, shape []byte) (probe.Result, error) {
	r, err := decodeShape(shape)
	if err != nil {
		return probe.Result{}, err
	}
	var known bool
	if r.Verdict, known = VerdictOf(verdict); !known {
		return probe.Result{}, fmt.Errorf("unpack check: %q is not the letter of a verdict", verdict)
	}
	if len(numbers) == 0 {
		if r.StartedAt.IsZero() {
			r.StartedAt = scheduledAt.UTC()
		}
		return r, nil
	}
	if len(latencies) != 4*len(r.Steps) {
		return probe.Result{}, fmt.Errorf("unpack check: %d bytes of latencies for %d steps", len(latencies), len(r.Steps))
	}
	for i := range r.Steps {
		r.Steps[i].Latency = time.Duration(binary.BigEndian.Uint32(latencies[4*i:])) * time.Microsecond
	}
	return r, readNumbers(&r, numbers, scheduledAt)
}

// The letters of verdicts. They are stored: none is ever used for something else.
const (
	codeUp       = 'u'
	codeDegraded = 'd'
	codeDown     = 'x'
	codeGated    = 'g'
	codeUnknown  = '?'
)

// VerdictCode returns the letter that stands for a verdict in a packed check: u up, d degraded, x down, g gated, ? unknown.
// It is 0 for what is not a verdict.
func VerdictCode(v probe.Verdict) byte {
	switch v {
	case probe.Up:
		return codeUp
	case probe.Degraded:
		return codeDegraded
	case probe.Down:
		return codeDown
	case probe.Gated:
		return codeGated
	case probe.Unknown:
		return codeUnknown
	}
	return 0
}

// VerdictOf is the inverse of VerdictCode.
func VerdictOf(code byte) (probe.Verdict, bool) {
	switch code {
	case codeUp:
		return probe.Up, true
	case codeDegraded:
		return probe.Degraded, true
	case codeDown:
		return probe.Down, true
	case codeGated:
		return probe.Gated, true
	case codeUnknown:
		return probe.Unknown, true
	}
	return "", false
}

// tick is what times are rounded to in a packed check, but for latencies and the duration of the check, which are kept in
// microseconds: two bytes of ticks reach to 160 ms.
const tick = 10 * time.Microsecond

// Rounded returns what is left of a result that was packed: times are in whole ticks of 10 µs, the latencies of steps and
// the duration of the check in whole microseconds; what is less than nothing is nothing, latencies end at 2³²-1 µs, and
// what is kept elsewhere (contract, memory, transcript) is gone.
func Rounded(r probe.Result) probe.Result {
	r = tidyResult(r)
	r.Contract, r.Memory = nil, probe.Memory{}
	r.StartedAt = fromTicks(ticksSince1970(r.StartedAt))
	r.Duration = time.Duration(units(r.Duration, time.Microsecond)) * time.Microsecond
	r.RetryAfter = time.Duration(units(r.RetryAfter, time.Microsecond)) * time.Microsecond
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Start = time.Duration(units(s.Start, tick)) * tick
		s.Latency = time.Duration(latencyMicros(s.Latency)) * time.Microsecond
		for _, phase := range []*time.Duration{
			&s.Phases.DNS, &s.Phases.Connect, &s.Phases.TLS, &s.Phases.FirstByte, &s.Phases.Body,
		} {
			*phase = time.Duration(phaseTicks(*phase)) * tick
		}
		s.BytesIn = max(0, s.BytesIn)
	}
	if len(r.Steps) == 0 {
		r.Steps = nil
	}
	if len(r.Warnings) == 0 {
		r.Warnings = nil
	}
	if len(r.Facts.SupportedVersions) == 0 {
		r.Facts.SupportedVersions = nil
	}
	return r
}

// units returns d in the nearest whole number of units of which a time.Duration can hold that many.
func units(d, unit time.Duration) int64 {
	n, rest := int64(d/unit), d%unit
	switch {
	case rest >= unit/2 && n < int64(math.MaxInt64/unit):
		return n + 1
	case rest <= -unit/2 && n > int64(math.MinInt64/unit):
		return n - 1
	}
	return n
}

func latencyMicros(d time.Duration) uint32 {
	return uint32(min(max(0, units(d, time.Microsecond)), math.MaxUint32))
}

func phaseTicks(d time.Duration) int64 { return max(0, units(d, tick)) }

// ticksSince1970 rounds towards the past, as Stamp does.
func ticksSince1970(t time.Time) int64 {
	micros := t.UnixMicro()
	n := micros / int64(tick/time.Microsecond)
	if micros < n*int64(tick/time.Microsecond) {
		n--
	}
	return n
}

func fromTicks(n int64) time.Time { return time.UnixMicro(n * int64(tick/time.Microsecond)).UTC() }

// shapeJSON is Packed.Shape. The view check_steps reads name, http_status, class, code and message of the steps: they are
// always there.
type shapeJSON struct {
	Kind     probe.Kind    `json:"kind"`
	Era      probe.Era     `json:"era,omitempty"`
	Steps    []stepShape   `json:"steps"`
	Warnings []warningJSON `json:"warnings,omitempty"`
	Failure  *failureShape `json:"failure,omitempty"`
	Facts    probe.Facts   `json:"facts"`
}

type stepShape struct {
	Name       string      `json:"name"`
	Method     string      `json:"method,omitempty"`
	HTTPStatus int         `json:"http_status"`
	Class      probe.Class `json:"class"`
	Code       int         `json:"code"`
	Message    string      `json:"message"`
	BytesOut   int64       `json:"bytes_out,omitempty"`
}

type failureShape struct {
	Step    string      `json:"step"`
	Class   probe.Class `json:"class"`
	Code    int         `json:"code"`
	Message string      `json:"message"`
}

// EncodeShape returns Packed.Shape of a result.
func EncodeShape(r probe.Result) ([]byte, error) {
	form := shapeJSON{Kind: r.Kind, Era: r.Era, Steps: make([]stepShape, 0, len(r.Steps)), Facts: lastingFacts(r.Facts)}
	for _, s := range r.Steps {
		form.Steps = append(form.Steps, stepShape{s.Name, s.Method, s.HTTPStatus, s.Class, s.Code, s.Message, s.BytesOut})
	}
	for _, w := range r.Warnings {
		form.Warnings = append(form.Warnings, warningJSON{w.Step, string(w.Class), w.Code, w.Message})
	}
	if f := r.Failure; f != nil {
		form.Failure = &failureShape{f.Step, f.Class, f.Code, f.Message}
	}
	shape, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("write shape of a check: %w", err)
	}
	return shape, nil
}

// lastingFacts are the facts that stay the same from check to check of a healthy endpoint; the others are in Numbers.
func lastingFacts(f probe.Facts) probe.Facts {
	f.Height, f.HeadHash, f.HeadTime, f.LagBlocks, f.Finalized = nil, "", nil, nil, nil
	return f
}

// keptShape is a shape as it is read: one that Pack wrote, or one that was carried over from the first schema.
type keptShape struct {
	Kind     probe.Kind    `json:"kind"`
	Era      probe.Era     `json:"era"`
	Steps    []stepJSON    `json:"steps"`
	Warnings []warningJSON `json:"warnings"`
	Failure  *failureShape `json:"failure"`
	Facts    probe.Facts   `json:"facts"`

	StartedAt    time.Time `json:"started_at"`
	DurationMS   float64   `json:"duration_ms"`
	RetryAfterMS float64   `json:"retry_after_ms"`
}

func decodeShape(shape []byte) (r probe.Result, err error) {
	var kept keptShape
	if err := json.Unmarshal(shape, &kept); err != nil {
		return r, fmt.Errorf("read shape of a check: %w", err)
	}
	r.Kind, r.Era, r.Facts = kept.Kind, kept.Era, kept.Facts
	r.StartedAt = kept.StartedAt.UTC()
	r.Duration, r.RetryAfter = FromMilliseconds(kept.DurationMS), FromMilliseconds(kept.RetryAfterMS)
	for _, s := range kept.Steps {
		r.Steps = append(r.Steps, s.step())
	}
	for _, w := range kept.Warnings {
		r.Warnings = append(r.Warnings, probe.Warning{Step: w.Step, Class: probe.Class(w.Class), Code: w.Code, Message: w.Message})
	}
	if f := kept.Failure; f != nil {
		r.Failure = &probe.Failure{Step: f.Step, Class: f.Class, Code: f.Code, Message: f.Message}
	}
	return r, nil
}

// ShapeID returns a hash of what EncodeShape writes, without writing it. It is kept in databases: how it is worked out
// never changes, but for what is added at its end.
func ShapeID(r probe.Result) int32 {
	h := shapeHash(1)
	h.text(string(r.Kind))
	h.text(string(r.Era))
	h.number(int64(len(r.Steps)))
	for i := range r.Steps {
		s := &r.Steps[i]
		h.text(s.Name)
		h.text(s.Method)
		h.outcome(s.Class, s.Code, s.Message)
		h.number(int64(s.HTTPStatus))
		h.number(s.BytesOut)
	}
	h.number(int64(len(r.Warnings)))
	for i := range r.Warnings {
		h.text(r.Warnings[i].Step)
		h.outcome(r.Warnings[i].Class, r.Warnings[i].Code, r.Warnings[i].Message)
	}
	h.flag(r.Failure != nil)
	if f := r.Failure; f != nil {
		h.text(f.Step)
		h.outcome(f.Class, f.Code, f.Message)
	}
	h.facts(&r.Facts)
	return h.id()
}

// shapeHash multiplies and folds eight bytes at a time. It keeps shapes apart that come about by themselves; an endpoint
// that makes two of its own alike only spoils its own record.
type shapeHash uint64

func (h *shapeHash) word(v uint64) {
	const odd = 0x9E3779B97F4A7C15 // 2⁶⁴ divided by the golden ratio
	x := (uint64(*h) ^ v) * odd
	*h = shapeHash(x ^ x>>32)
}

func (h *shapeHash) number(v int64) { h.word(uint64(v)) }

func (h *shapeHash) flag(v bool) {
	if v {
		h.word(1)
		return
	}
	h.word(0)
}

func (h *shapeHash) text(s string) {
	h.word(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h.word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	if len(s) > 0 {
		var rest uint64
		for i := range len(s) {
			rest = rest<<8 | uint64(s[i])
		}
		h.word(rest)
	}
}

func (h *shapeHash) outcome(class probe.Class, code int, message string) {
	h.text(string(class))
	h.number(int64(code))
	h.text(message)
}

func (h *shapeHash) optional(v *int) {
	h.flag(v != nil)
	if v != nil {
		h.number(int64(*v))
	}
}

func (h *shapeHash) facts(f *probe.Facts) {
	h.text(f.ProtocolVersion)
	h.number(int64(len(f.SupportedVersions)))
	for _, version := range f.SupportedVersions {
		h.text(version)
	}
	h.text(string(f.Era))
	h.text(f.ServerName)
	h.text(f.ServerVersion)
	h.optional(f.Tools)
	h.optional(f.Prompts)
	h.optional(f.Resources)
	h.text(f.Contract)
	h.flag(f.Syncing != nil)
	if f.Syncing != nil {
		h.flag(*f.Syncing)
	}
	h.text(f.ChainID)
	h.flag(f.TLSExpiresAt != nil)
	if f.TLSExpiresAt != nil {
		h.number(f.TLSExpiresAt.UnixMicro())
	}
	h.text(f.RemoteAddr)
}

func (h shapeHash) id() int32 {
	h.word(0)
	if id := int32(uint32(h)); id != 0 {
		return id
	}
	return 1
}

// The form of Numbers: a byte with the version in its upper half and flags in the lower, then varints of package
// encoding/binary, signed where they can be less than 0.
//
//	start      ticks after the scheduled time, signed
//	each step  a byte with two small numbers: the gap before the step and the rest of its latency, see appendSmall
//	           body, bytes received; of the first step, or of each with flagDialled: dns, connect, tls
//	duration   microseconds after the end of the last step that counts, signed
//	retry      with flagRetry: microseconds, signed
//	facts      with flagFacts: see appendFacts
//
// Gap and phases are in ticks. The gap lies between the end of the step before and the start of this one; the rest is what
// the phases leave of the latency, from which the time to the first byte follows.
const (
	numbersVersion = 1

	flagRetry   = 1 << 0
	flagFacts   = 1 << 1
	flagDialled = 1 << 2 // another step than the first spent time on dialling

	flagMaintenance = 1 << 3 // nothing follows: the check was made under maintenance
)

var errNumbers = errors.New("unpack check: not the numbers of a check")

func appendNumbers(b []byte, r probe.Result, scheduledAt time.Time) []byte {
	flags := numbersFlags(&r)
	b = append(b, numbersVersion<<4|flags)
	b = binary.AppendVarint(b, ticksSince1970(r.StartedAt)-ticksSince1970(scheduledAt))
	end := int64(0) // of the step before, in ticks
	for i := range r.Steps {
		s := &r.Steps[i]
		start, latency := units(s.Start, tick), latencyTicks(latencyMicros(s.Latency))
		dns, connect, tls := phaseTicks(s.Phases.DNS), phaseTicks(s.Phases.Connect), phaseTicks(s.Phases.TLS)
		body := phaseTicks(s.Phases.Body)
		b = appendSmall(b, start-end, latency-dns-connect-tls-body-phaseTicks(s.Phases.FirstByte))
		b = binary.AppendUvarint(b, uint64(body))
		b = binary.AppendUvarint(b, uint64(max(0, s.BytesIn)))
		if i == 0 || flags&flagDialled != 0 {
			b = binary.AppendUvarint(b, uint64(dns))
			b = binary.AppendUvarint(b, uint64(connect))
			b = binary.AppendUvarint(b, uint64(tls))
		}
		end = start + latency
	}
	b = binary.AppendVarint(b, units(r.Duration, time.Microsecond)-lastEnd(r.Steps))
	if flags&flagRetry != 0 {
		b = binary.AppendVarint(b, units(r.RetryAfter, time.Microsecond))
	}
	if flags&flagFacts != 0 {
		b = appendFacts(b, &r.Facts, scheduledAt)
	}
	return b
}

func numbersFlags(r *probe.Result) (flags byte) {
	if r.RetryAfter != 0 {
		flags |= flagRetry
	}
	if f := &r.Facts; f.Height != nil || f.HeadHash != "" || f.HeadTime != nil || f.LagBlocks != nil || f.Finalized != nil {
		flags |= flagFacts
	}
	for i := 1; i < len(r.Steps); i++ {
		if p := &r.Steps[i].Phases; p.DNS > 0 || p.Connect > 0 || p.TLS > 0 {
			flags |= flagDialled
		}
	}
	return flags
}

// readNumbers fills in what appendNumbers wrote.
func readNumbers(r *probe.Result, data []byte, scheduledAt time.Time) error {
	in := numbersReader{rest: data}
	head := in.byte()
	if head>>4 != numbersVersion {
		return fmt.Errorf("unpack check: version %d of the numbers is not known", head>>4)
	}
	r.StartedAt = fromTicks(ticksSince1970(scheduledAt) + in.varint())
	end := int64(0)
	for i := range r.Steps {
		s := &r.Steps[i]
		gap, rest := in.small()
		body, bytesIn := in.uvarint(), in.uvarint()
		var dns, connect, tls int64
		if i == 0 || head&flagDialled != 0 {
			dns, connect, tls = int64(in.uvarint()), int64(in.uvarint()), int64(in.uvarint())
		}
		start, latency := end+gap, latencyTicks(uint32(s.Latency/time.Microsecond))
		s.Start, s.BytesIn = time.Duration(start)*tick, int64(bytesIn)
		s.Phases = probe.Phases{
			DNS: time.Duration(dns) * tick, Connect: time.Duration(connect) * tick, TLS: time.Duration(tls) * tick,
			FirstByte: time.Duration(latency-dns-connect-tls-int64(body)-rest) * tick, Body: time.Duration(body) * tick,
		}
		end = start + latency
	}
	r.Duration = time.Duration(lastEnd(r.Steps)+in.varint()) * time.Microsecond
	r.RetryAfter = 0
	if head&flagRetry != 0 {
		r.RetryAfter = time.Duration(in.varint()) * time.Microsecond
	}
	if head&flagFacts != 0 {
		in.facts(&r.Facts, scheduledAt)
	}
	if in.bad || len(in.rest) > 0 {
		return errNumbers
	}
	return nil
}

func latencyTicks(micros uint32) int64 {
	return (int64(micros) + int64(tick/time.Microsecond)/2) / int64(tick/time.Microsecond)
}

// lastEnd returns when the last step that counts ended, in microseconds, from what is kept of it: the duration of a check
// is about that, because closing a session is not part of it.
func lastEnd(steps []probe.Step) int64 {
	for i := len(steps) - 1; i >= 0; i-- {
		if s := &steps[i]; s.Name != "close" {
			return units(s.Start, tick)*int64(tick/time.Microsecond) + int64(latencyMicros(s.Latency))
		}
	}
	return 0
}

// A gap and a rest take one byte together when they are small: each half of it is the number, moved up so that what
// rounding takes off it fits too; a half of all ones means that the number follows as a varint.
const (
	gapBias  = 1
	restBias = 2
	large    = 15
)

func appendSmall(b []byte, gap, rest int64) []byte {
	high, low := uint64(gap+gapBias), uint64(rest+restBias)
	b = append(b, byte(min(high, large)<<4|min(low, large)))
	if high >= large {
		b = binary.AppendVarint(b, gap)
	}
	if low >= large {
		b = binary.AppendVarint(b, rest)
	}
	return b
}

// The facts that change with each block: a byte that says which there are, then the height as a varint, the finalized one
// as how far it is behind, the time of the head as what it is after the scheduled time (in seconds where it is whole
// seconds), how many blocks it lags, and the hash of the head behind its length.
const (
	hasHeight = 1 << iota
	hasFinalized
	hasHeadTime
	hasHeadMicros // the time of the head is in microseconds
	hasLag
	hasHash
	hashIsHex // it is kept as bytes and written in lower case
	hashHas0x // after the prefix 0x
)

func appendFacts(b []byte, f *probe.Facts, scheduledAt time.Time) []byte {
	at := len(b)
	b = append(b, 0)
	var has byte
	height := uint64(0)
	if f.Height != nil {
		has |= hasHeight
		height = *f.Height
		b = binary.AppendUvarint(b, height)
	}
	if f.Finalized != nil {
		has |= hasFinalized
		b = binary.AppendVarint(b, int64(height-*f.Finalized))
	}
	if f.HeadTime != nil {
		has |= hasHeadTime
		if f.HeadTime.Nanosecond() < int(time.Microsecond) {
			b = binary.AppendVarint(b, f.HeadTime.Unix()-scheduledAt.Unix())
		} else {
			has |= hasHeadMicros
			b = binary.AppendVarint(b, f.HeadTime.UnixMicro()-scheduledAt.UnixMicro())
		}
	}
	if f.LagBlocks != nil {
		has |= hasLag
		b = binary.AppendVarint(b, *f.LagBlocks)
	}
	if f.HeadHash != "" {
		var form byte
		b, form = appendHash(b, f.HeadHash)
		has |= hasHash | form
	}
	b[at] = has
	return b
}

// appendHash appends the hash of a block, in half its length where it is hexadecimal, as those of most chains are.
func appendHash(b []byte, text string) (_ []byte, form byte) {
	digits, prefixed := strings.CutPrefix(text, "0x")
	if digits == "" || len(digits)%2 != 0 || strings.ContainsFunc(digits, func(c rune) bool { return !isHexDigit(c) }) {
		return appendText(b, text), 0
	}
	b = binary.AppendUvarint(b, uint64(len(digits)/2))
	for i := 0; i < len(digits); i += 2 {
		b = append(b, hexDigit(digits[i])<<4|hexDigit(digits[i+1]))
	}
	if prefixed {
		return b, hashIsHex | hashHas0x
	}
	return b, hashIsHex
}

// isHexDigit knows those in lower case alone, because they are what comes back.
func isHexDigit(c rune) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

func hexDigit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// numbersReader reads varints. What is not there, or no varint, is 0 and makes it bad.
type numbersReader struct {
	rest []byte
	bad  bool
}

func (in *numbersReader) byte() byte {
	if len(in.rest) == 0 {
		in.bad = true
		return 0
	}
	b := in.rest[0]
	in.rest = in.rest[1:]
	return b
}

func (in *numbersReader) uvarint() uint64 {
	v, size := binary.Uvarint(in.rest)
	if size <= 0 {
		in.bad, in.rest = true, nil
		return 0
	}
	in.rest = in.rest[size:]
	return v
}

func (in *numbersReader) varint() int64 {
	v := in.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// small reads what appendSmall wrote.
func (in *numbersReader) small() (gap, rest int64) {
	b := in.byte()
	gap, rest = int64(b>>4)-gapBias, int64(b&15)-restBias
	if b>>4 == large {
		gap = in.varint()
	}
	if b&15 == large {
		rest = in.varint()
	}
	return gap, rest
}

// facts reads what appendFacts wrote.
func (in *numbersReader) facts(f *probe.Facts, scheduledAt time.Time) {
	has := in.byte()
	height := uint64(0)
	if has&hasHeight != 0 {
		height = in.uvarint()
		f.Height = &height
	}
	if has&hasFinalized != 0 {
		finalized := height - uint64(in.varint())
		f.Finalized = &finalized
	}
	if has&hasHeadTime != 0 {
		after := in.varint()
		at := time.Unix(scheduledAt.Unix()+after, 0).UTC()
		if has&hasHeadMicros != 0 {
			at = time.UnixMicro(scheduledAt.UnixMicro() + after).UTC()
		}
		f.HeadTime = &at
	}
	if has&hasLag != 0 {
		lag := in.varint()
		f.LagBlocks = &lag
	}
	if has&hasHash != 0 {
		f.HeadHash = in.hash(has)
	}
}

func (in *numbersReader) hash(has byte) string {
	hash, rest, ok := cutBytes(in.rest)
	if !ok {
		in.bad, in.rest = true, nil
		return ""
	}
	in.rest = rest
	switch {
	case has&hashIsHex == 0:
		return string(hash)
	case has&hashHas0x == 0:
		return hex.EncodeToString(hash)
	}
	return "0x" + hex.EncodeToString(hash)
}
