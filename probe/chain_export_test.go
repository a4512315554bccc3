package probe

import (
	"encoding/json"
	"slices"
	"time"
)

// JudgeHead judges a head by the limits of its chain. A finding is its class, with a question mark when it is a warning.
func JudgeHead(kind Kind, head Head, before Memory, peers []Head, options Chain) (findings []string, words []string, after Memory, lag *int64) {
	p := presetOf(kind)
	v := view{head: head, before: before, limits: limitsOf(p, head.Chain, options, before.Block), unit: p.Unit}.among(peers)
	j := v.judge()
	findings, words = told(j.findings)
	return findings, words, j.memory, j.lag
}

// JudgeFinality judges the tags of a chain.
func JudgeFinality(kind Kind, head Head, before Memory, finalized, safe *uint64) (findings []string, kept *uint64) {
	p := presetOf(kind)
	v := view{head: head, before: before, limits: limitsOf(p, head.Chain, Chain{}, before.Block), unit: p.Unit}
	found, kept := v.finality(finalized, safe)
	findings, _ = told(found)
	return findings, kept
}

func told(found []finding) (findings, words []string) {
	for _, f := range found {
		mark := ""
		if f.warning {
			mark = "?"
		}
		findings, words = append(findings, string(f.class)+mark), append(words, f.message)
	}
	return findings, words
}

// NextPace is the pace after one more look.
func NextPace(b BlockPace, before, head Head, prior time.Duration) BlockPace {
	return b.next(before, head, prior)
}

// ReadPreset says what is wrong with a file of presets.
func ReadPreset(raw []byte) error {
	_, err := readPreset(raw)
	return err
}

// ChainPriors returns what a preset knows of a chain: its block time, and the lags that degrade a node and take it down.
func ChainPriors(kind Kind, chain string) (blockTime time.Duration, degraded, down uint64, known bool) {
	l := limitsOf(presetOf(kind), presetOf(kind).canonical(chain), Chain{}, BlockPace{})
	return l.prior, l.lagging, l.syncing, l.known
}

// Extracted is what one value of an answer was read as.
type Extracted struct {
	Number, Text, Problem string
	Time                  time.Time
}

// Extract reads a value, as presets write it, from an answer.
func Extract(spec string, raw []byte) Extracted {
	var v value
	if err := v.UnmarshalText([]byte(spec)); err != nil {
		return Extracted{Problem: err.Error()}
	}
	var x Extracted
	var err error
	d := newTree(raw)
	switch {
	case v.encoding.isNumber():
		n, problem := d.number(v)
		if err = problem; err == nil {
			x.Number = n.String()
		}
	case v.encoding.isTime():
		x.Time, err = d.time(v)
	case v.encoding.isText():
		x.Text, err = d.text(v)
	default:
		err = d.shaped(v)
	}
	if err != nil {
		x.Problem = err.Error()
	}
	return x
}

// ExtractAll reads all that any preset may want to know from one answer, as the conversation does, and returns how many
// values it found.
func ExtractAll(raw []byte) (found int) {
	tell := func(err error) {
		if err == nil {
			found++
		}
	}
	for _, kind := range Families() {
		p := presetOf(kind)
		for _, call := range slices.Concat(p.everyCalls()...) {
			d := newTree(raw)
			tell(call.check(d))
			r := call.Read
			for _, v := range []value{r.Height, r.Finalized, r.Safe, r.Peers} {
				_, err := d.height(v)
				tell(err)
			}
			for _, v := range []value{r.Hash, r.Parent, r.Chain, r.Software} {
				_, err := d.text(v)
				tell(err)
			}
			_, err := d.time(r.Time)
			tell(err)
			for _, way := range call.Distance {
				way.read(d, Head{})
			}
			for _, rule := range call.Findings {
				rule.fits(d)
			}
		}
		if p.Subscription != nil && p.Subscription.delivers(raw, "x", json.RawMessage(`"x"`)) {
			found++
		}
		e := &rpcError{raw: raw, Data: raw}
		if rule := p.errorRule(e); rule != nil {
			_, err := newTree(e.raw).height(rule.Data)
			tell(err)
		}
	}
	if body, err := readObject(raw); err == nil {
		openRippled(body)
		openTON(body, raw)
	}
	return found
}

// Delivers reports whether a message is an event of the family's subscription, made by a request of this id and answered
// with ack.
func Delivers(kind Kind, message, request, ack string) bool {
	return presetOf(kind).Subscription.delivers([]byte(message), request, json.RawMessage(ack))
}
