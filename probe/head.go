package probe

import (
	"fmt"
	"math"
	"time"
)

// view is all that the verdict on the head of a chain depends on. No clock is read: the time is that of the answer.
type view struct {
	head   Head
	before Memory
	peers  []*Head // those that count: see among
	limits chainLimits
	unit   string // what heights count
}

// chainLimits are the bounds that a chain is judged by.
type chainLimits struct {
	prior    time.Duration // time between two blocks by the preset; zero when it has no idea
	pace     time.Duration // the measured time where there is one, else prior
	known    bool          // the chain has an entry in its preset
	lagging  uint64        // blocks behind that make a node degraded
	syncing  uint64        // and down
	maxAge   time.Duration // of the newest block; zero: its age says nothing
	idle     bool          // blocks are made on demand: time says nothing
	finality uint64        // blocks from the last final one to the newest that are too many; zero: not judged
}

// unknownAge bounds the age of the newest block of a chain whose pace is not known.
const unknownAge = time.Hour

// limitsOf returns the limits of a chain: those of the target, else of the preset, else of the family.
func limitsOf(p *preset, chain string, options Chain, measured BlockPace) chainLimits {
	data := p.Default
	l := chainLimits{}
	if known := p.chain(chain); known != nil {
		data, l.known = *known, true
	}
	l.prior = data.BlockTime.duration()
	l.pace = l.prior
	if average, ok := measured.measured(); ok {
		l.pace = average
	}
	l.lagging, l.syncing = data.Lagging, data.Syncing
	if l.syncing == 0 {
		l.lagging, l.syncing = p.Default.Lagging, p.Default.Syncing
	}
	if options.Lagging > 0 {
		l.lagging = uint64(options.Lagging)
	}
	if options.Syncing > 0 {
		l.syncing = uint64(options.Syncing)
	}
	l.syncing = max(l.syncing, l.lagging)
	l.finality = data.Finality
	l.idle = data.Idle || options.MaxAge < 0
	switch {
	case l.idle:
	case options.MaxAge > 0:
		l.maxAge = options.MaxAge
	case data.MaxAge > 0:
		l.maxAge = max(data.MaxAge.duration(), l.standstill())
	case l.pace > 0:
		l.maxAge = l.standstill()
	default:
		l.maxAge = unknownAge
	}
	return l
}

// standstill is how long a chain may go without a block before that is one too many missing; zero when nobody knows.
func (l chainLimits) standstill() time.Duration {
	if l.pace == 0 || l.idle {
		return 0
	}
	return max(10*l.pace, time.Minute)
}

// farAge is how old the newest block may be before the node is of no use, as a multiple of the age that degrades it.
const farAge = 5

// clockTolerance is how far in the future a block may lie: clocks differ by so much without harm.
const clockTolerance = 5 * time.Second

// finding is one thing that a view of a chain shows.
type finding struct {
	class   Class
	code    int // of the error that says so; 0 when none does
	message string
	warning bool // decides nothing
}

func found(class Class, format string, args ...any) finding {
	return finding{class: class, message: fmt.Sprintf(format, args...)}
}

func warning(class Class, format string, args ...any) finding {
	return finding{class: class, message: fmt.Sprintf(format, args...), warning: true}
}

// judgement is what a view comes to.
type judgement struct {
	findings []finding
	memory   Memory
	lag      *int64 // nil when there is nothing to compare with
}

// judge compares a head with what the endpoint showed before, with the clock and with its peers.
//
//	the clock             skew, age
//	the check before      regression, standstill
//	peers                 all of them standing still, lag, forks
func (v view) judge() judgement {
	var j judgement
	j.memory, j.findings = v.remember()
	since := j.memory.Head.Since
	still := v.standsStill(since)
	if v.halted(still) {
		j.findings = append(j.findings, found(ClassChainHalted, "all %d endpoints of the chain stand still at %d%s",
			1+len(v.peers), v.head.Height, v.ageWords()))
	} else {
		j.findings = append(j.findings, v.age()...)
		if still {
			j.findings = append(j.findings, found(ClassHeadStalled, "no new %s for %s, still at %d%s%s",
				v.unit, inWords(v.head.Seen.Sub(since)), j.memory.Head.Height, v.ageWords(), v.hint()))
		}
	}
	lag := v.lag()
	j.lag = lag.blocks
	if lag.blocks != nil {
		j.findings = append(j.findings, v.judgeLag(lag, &j.memory)...)
	}
	j.findings = append(j.findings, v.fork()...)
	return j
}

// maxRollback is the largest step back that a load balancer over nodes of different progress explains.
const maxRollback = 1024

// remember returns what the next check should know. While an endpoint shows lower heights than before, the highest one
// stays: behind a load balancer the heights of several nodes alternate, and only a height above all of them is progress.
// It is given up after a large rollback, or when it was not seen again for so long that the lower one must be the truth.
func (v view) remember() (Memory, []finding) {
	m := v.before
	head := v.head
	head.Since = head.Seen
	m.Since = nil
	before := v.before.Head
	if before == nil || before.Chain != head.Chain {
		m.Head, m.Finalized = &head, nil
		if before != nil {
			m.Block, m.Over, m.Far = BlockPace{}, 0, 0
		}
		return m, nil
	}
	head.Every = before.cadence(head.Seen)
	switch {
	case head.Height > before.Height:
		m.Block = v.before.Block.next(*before, head, v.limits.prior)
	case head.Height == before.Height:
		if !before.Since.IsZero() {
			head.Since = before.Since
		}
	case before.Height-head.Height > maxRollback:
		m.Head, m.Finalized = &head, nil
		return m, []finding{warning(ClassHeadRegressed, "a large rollback: %d %ss lower than the %d of the check before", before.Height-head.Height, v.unit, before.Height)}
	default:
		back := warning(ClassHeadRegressed, "%d %s lower than before: %d after %d", before.Height-head.Height, plural(before.Height-head.Height, v.unit), head.Height, before.Height)
		if head.Seen.Sub(before.Seen) <= max(v.limits.standstill(), time.Minute) {
			kept := *before
			m.Head = &kept
			return m, []finding{back}
		}
		m.Head = &head
		return m, []finding{back}
	}
	m.Head = &head
	return m, nil
}

// maxCadence bounds how seldom an endpoint may be asked to be compared with others at all.
const maxCadence = 10 * time.Minute

// cadence returns how often the endpoint is asked, by the time from h to the next head. A check that follows soon, to
// confirm another one, lowers it but little.
func (h Head) cadence(next time.Time) time.Duration {
	return max(min(next.Sub(h.Seen), maxCadence), h.Every*3/4)
}

// standsStill reports whether no block has come for too long.
func (v view) standsStill(since time.Time) bool {
	limit := v.limits.standstill()
	return limit > 0 && !since.IsZero() && v.head.Seen.Sub(since) > limit
}

// age judges the time of the newest block.
func (v view) age() []finding {
	if v.head.Height == 0 && v.head.Hash != "" && v.head.Time.IsZero() && v.limits.known && v.limits.standstill() > 0 {
		return []finding{found(ClassHeadBehind, "still at %s 0: it has nothing of its chain yet", v.unit)}
	}
	if v.head.Time.IsZero() {
		return nil
	}
	age := max(v.head.Seen.Sub(v.head.Time), -math.MaxInt64) // the most negative one has no opposite
	limit := v.limits.maxAge
	switch {
	case age < -clockTolerance:
		return []finding{warning(ClassClockSkew, "the newest %s lies %s in the future: one of two clocks is wrong", v.unit, inWords(-age))}
	case limit == 0 || age <= limit:
		return nil
	case age > farAge*limit && v.limits.pace > 0:
		return []finding{found(ClassHeadBehind, "the newest %s, %d, is %s%s", v.unit, v.head.Height, tooOld(age, farAge*limit), v.hint())}
	default:
		return []finding{found(ClassHeadLagging, "the newest %s, %d, is %s%s", v.unit, v.head.Height, tooOld(age, limit), v.hint())}
	}
}

// tooOld says that an age is beyond its limit, to the second where rounding would make them the same.
func tooOld(age, limit time.Duration) string {
	old, most := inWords(age), inWords(limit)
	if old == most && age >= time.Minute {
		old = inUnits(age.Round(time.Second), 4)
	}
	return old + " old, more than " + most
}

// ageWords tells the age of the head where it is known.
func (v view) ageWords() string {
	if v.head.Time.IsZero() {
		return ""
	}
	return fmt.Sprintf(", which is %s old", inWords(v.head.Seen.Sub(v.head.Time)))
}

// hint says what to set for a chain that may be made to stand still.
func (v view) hint() string {
	if v.limits.known {
		return ""
	}
	return fmt.Sprintf("; a chain that makes %ss on demand needs a max_age below zero", v.unit)
}

func plural(n uint64, unit string) string {
	if n == 1 {
		return unit
	}
	return unit + "s"
}

// severity returns how bad it is to be so many blocks behind: nothing, ClassHeadLagging or ClassHeadBehind. Both a number
// of blocks and a time must be exceeded: on chains of many blocks a second a dozen of them is noise, on chains of ten
// minutes two may be chance. Without a pace there is no time to judge, and the larger number is needed for the lesser
// verdict.
func (l chainLimits) severity(blocks uint64) Class {
	if l.pace == 0 {
		if blocks > l.syncing {
			return ClassHeadLagging
		}
		return ""
	}
	late := float64(blocks) * float64(l.pace) // as a number: a lying node may be 2^64 blocks behind
	switch {
	case blocks > l.syncing && late > float64(max(10*l.pace, time.Minute)):
		return ClassHeadBehind
	case blocks > l.lagging && late > float64(max(3*l.pace, 10*time.Second)):
		return ClassHeadLagging
	default:
		return ""
	}
}

// finality judges the tags of a chain: finalized ≤ safe ≤ latest, and final blocks stay final. A few blocks of
// disorder are the trace of a load balancer, or of the time between two calls.
func (v view) finality(finalized, safe *uint64) ([]finding, *uint64) {
	before := v.before.Finalized
	if v.before.Head == nil || v.before.Head.Chain != v.head.Chain {
		before = nil
	}
	if finalized == nil {
		return nil, before
	}
	slack := max(v.limits.lagging, 2)
	final, head := *finalized, v.head.Height
	var findings []finding
	switch {
	case final > head+slack:
		findings = append(findings, found(ClassFinality, "%s %d is final, but the newest is %d", v.unit, final, head))
	case safe != nil && final > *safe+slack:
		findings = append(findings, found(ClassFinality, "%s %d is final, but only %d is safe", v.unit, final, *safe))
	case safe != nil && *safe > head+slack:
		findings = append(findings, found(ClassFinality, "%s %d is safe, but the newest is %d", v.unit, *safe, head))
	case v.limits.finality > 0 && head > final && head-final > v.limits.finality:
		findings = append(findings, found(ClassFinality, "the last final %s, %d, is %d behind the newest: more than %d", v.unit, final, head-final, v.limits.finality))
	}
	if before == nil || final >= *before {
		return findings, finalized
	}
	back := *before - final
	if back > max(slack, v.limits.finality/4) {
		return append(findings, found(ClassFinality, "%s %d was final, %d is the last final one after it", v.unit, *before, final)), finalized
	}
	if v.head.Height < v.before.Head.Height {
		return findings, before // all of it is lower, which is said already
	}
	return append(findings, warning(ClassFinality, "the last final %s went back by %d, from %d", v.unit, back, *before)), before
}
