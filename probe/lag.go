package probe

import (
	"math"
	"time"
)

// maxPeers bounds how many heads are compared with each other.
const maxPeers = 200

// freshFor is how long the head of a peer counts, when nobody says how often that peer is asked.
const freshFor = time.Minute

// among returns v with the peers that it can be compared with: of the same chain, beyond doubt, and seen not long ago, the
// highest of each origin, because a node that is registered twice does not bear itself out. Peers are not to change meanwhile.
func (v view) among(peers []Head) view {
	peers = peers[:min(len(peers), maxPeers)]
	v.peers = make([]*Head, 0, len(peers))
	voices := make(map[string]int, len(peers)) // indexes into v.peers by origin
	for i := range peers {
		p := &peers[i]
		if !v.comparesWith(p) {
			continue
		}
		at, heard := voices[p.Origin]
		switch {
		case p.Origin == "" || !heard:
			voices[p.Origin] = len(v.peers)
			v.peers = append(v.peers, p)
		case p.Height > v.peers[at].Height:
			v.peers[at] = p
		}
	}
	return v
}

// comparesWith reports whether the head of a peer says anything about ours.
func (v *view) comparesWith(p *Head) bool {
	if p.Chain == "" || p.Chain != v.head.Chain {
		return false
	}
	if p.Origin != "" && p.Origin == v.head.Origin {
		return false // the same node under another address: it bears out nothing, and is no sign that the chain has halted
	}
	age := v.head.Seen.Sub(p.Seen)
	return age <= max(2*p.Every, freshFor) && age >= -freshFor
}

// moment is when a head was true: halfway between question and answer.
func (h Head) moment() time.Time {
	if h.Asked.IsZero() || h.Asked.After(h.Seen) {
		return h.Seen
	}
	return h.Asked.Add(h.Seen.Sub(h.Asked) / 2)
}

// projected returns the height that p should have at the moment of our own head. One that stands still is taken as it is:
// a chain that has halted makes no blocks.
func (v *view) projected(p *Head) uint64 {
	pace := v.limits.pace
	if pace <= 0 || v.limits.idle || !p.Since.IsZero() && v.head.Seen.Sub(p.Since) > v.limits.standstill() {
		return p.Height
	}
	blocks := math.Floor(float64(v.head.moment().Sub(p.moment())) / float64(pace))
	if blocks < 0 {
		return p.Height - min(p.Height, uint64(-blocks))
	}
	return p.Height + min(uint64(blocks), math.MaxUint64-p.Height)
}

// lagging is how far a head is behind its reference. Blocks is nil when there is nothing to compare with, which is not
// the same as zero.
type lagging struct {
	blocks       *int64
	reference    uint64
	who          string // whose head the reference is
	corroborated bool   // at least one other endpoint is as far or farther
}

// lag compares the head with its peers. The reference is the second highest of at least three heads, so that a single
// endpoint which is ahead, or lies, does not condemn the others. With two heads it is the higher one, which nobody
// corroborates.
func (v view) lag() lagging {
	if len(v.peers) == 0 {
		return lagging{}
	}
	type sample struct {
		height uint64
		who    string
	}
	highest, second := sample{height: v.head.Height}, sample{}
	for i, p := range v.peers {
		switch s := (sample{v.projected(p), p.Endpoint}); {
		case s.height > highest.height:
			highest, second = s, highest
		case i == 0 || s.height > second.height:
			second = s
		}
	}
	l := lagging{reference: highest.height, who: highest.who}
	if len(v.peers) > 1 {
		l = lagging{reference: second.height, who: second.who, corroborated: true}
	}
	var behind int64
	if l.reference > v.head.Height {
		behind = int64(min(l.reference-v.head.Height, math.MaxInt64))
	}
	l.blocks = &behind
	return l
}

// judgeLag turns a lag into a finding once two checks in a row have seen it. What nobody corroborates degrades at most.
func (v view) judgeLag(l lagging, m *Memory) []finding {
	class := v.limits.severity(uint64(*l.blocks))
	if class == "" {
		m.Over, m.Far = 0, 0
		return nil
	}
	m.Over = min(m.Over+1, 1000)
	if class == ClassHeadBehind {
		m.Far = min(m.Far+1, 1000)
	} else {
		m.Far = 0
	}
	if m.Far < 2 || !l.corroborated {
		class = ClassHeadLagging
	}
	behind := uint64(*l.blocks)
	words := found(class, "%d %s%s behind %s", behind, plural(behind, v.unit), v.lateWords(behind), l.words())
	words.warning = m.Over < 2
	if words.warning {
		words.message += ", seen for the first time"
	}
	return []finding{words}
}

// lateWords says how long a chain takes for so many blocks, where that is known.
func (v view) lateWords(blocks uint64) string {
	if v.limits.pace <= 0 {
		return ""
	}
	late := float64(blocks) * float64(v.limits.pace)
	if late > float64(1000*24*time.Hour) {
		return ""
	}
	return " (" + inWords(time.Duration(late)) + ")"
}

// words names the reference.
func (l lagging) words() string {
	switch {
	case l.who == "" && l.corroborated:
		return "its peers"
	case l.who == "":
		return "its only peer, which nobody else confirms"
	case l.corroborated:
		return l.who + " and others"
	default:
		return l.who + ", which nobody else confirms"
	}
}

// halted reports whether it is the chain that stands still and not this endpoint: every other fresh endpoint, at least
// one, has stood at this very height for too long as well. Still says whether this endpoint is known to; the age of a
// block may tell before the history of an endpoint does.
func (v view) halted(still bool) bool {
	limit := v.limits.standstill()
	old := v.limits.maxAge > 0 && !v.head.Time.IsZero() && v.head.Seen.Sub(v.head.Time) > v.limits.maxAge
	if limit == 0 || !still && !old {
		return false
	}
	for _, p := range v.peers {
		stands := !p.Since.IsZero() && v.head.Seen.Sub(p.Since) > limit || !p.Time.IsZero() && v.head.Seen.Sub(p.Time) > limit
		if p.Height != v.head.Height || !stands {
			return false
		}
	}
	return len(v.peers) > 0
}

// fork compares block hashes: at the landmark below the head; where nobody tells of it, at the height of the head, as
// peers at that height tell it and as peers one block ahead name their parent; else at the height below. A block that most
// others do not have is a fork of its own, with one other it is a disagreement.
func (v view) fork() []finding {
	height, own := v.head.Height, v.head.Hash
	var votes map[string]int
	if m := v.head.Mark; m != nil {
		height, own = m.Height, m.Hash
		votes = v.marksAt(height)
	}
	if len(votes) == 0 {
		height, own = v.head.Height, v.head.Hash
		votes = v.hashesAt(height)
	}
	if len(votes) == 0 && height > 0 {
		height, own = height-1, v.head.Parent
		votes = v.hashesAt(height)
	}
	if own == "" {
		return nil
	}
	agree, most, other := 1, 0, ""
	for hash, n := range votes {
		if hash == own {
			agree += n
		} else if n > most || n == most && hash < other {
			most, other = n, hash
		}
	}
	switch {
	case most == 0:
		return nil
	case most > agree:
		return []finding{found(ClassChainFork, "%s %d is %s here and %s at %d others", v.unit, height, shortHash(own), shortHash(other), most)}
	case most == agree:
		return []finding{warning(ClassChainFork, "%s %d is %s here and %s elsewhere", v.unit, height, shortHash(own), shortHash(other))}
	default:
		return nil // most others have the block of this endpoint
	}
}

// hashesAt counts the peers by the block that they have at a height.
func (v view) hashesAt(height uint64) map[string]int {
	votes := map[string]int{}
	for _, p := range v.peers {
		switch {
		case p.Height == height && p.Hash != "":
			votes[p.Hash]++
		case p.Height == height+1 && p.Parent != "":
			votes[p.Parent]++
		}
	}
	return votes
}

func shortHash(hash string) string { return clip(hash, 12) }
