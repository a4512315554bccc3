package probe

// Verdict is what one check says about its endpoint. Verdicts are stored as they are and never renamed.
type Verdict string

// The five verdicts.
const (
	Up       Verdict = "up"
	Degraded Verdict = "degraded" // answers, but wrong in part or too slow
	Down     Verdict = "down"
	Gated    Verdict = "gated"   // alive, wants credentials we were not given or no longer accepts ours
	Unknown  Verdict = "unknown" // we could not tell: blocked, rate limited, our own network
)

// Verdicts lists all verdicts, best first.
func Verdicts() []Verdict { return []Verdict{Up, Degraded, Gated, Unknown, Down} }
