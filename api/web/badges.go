package web

// BadgesPage is where somebody makes a badge of an endpoint: what it is to show and how, what it looks like, and what to put into
// a page or a README for it.
type BadgesPage struct {
	Frame
	Slug, Name string
	Public     bool // those of others stay grey
	Form       BadgeForm
	Picture    string // address of the badge within this service
	Height     int    // of the badge, in pixels
	Snippets   []BadgeSnippet

	// What can be chosen. Objectives are the names of those that the endpoint has.
	Kinds, Windows, Quantiles, Objectives, Styles, Themes []string
}

func (BadgesPage) template() string { return "badges" }

// BadgeForm is what was chosen. What a kind does not look at is kept for another one.
type BadgeForm struct {
	Kind, Window, Quantile, Objective, Style, Theme, Label string
}

// BadgeSnippet is text that shows the badge in one kind of document.
type BadgeSnippet struct {
	ID, Label, Text string
	Rows            int // lines that it takes
}

// Alt says what the badge is of, for whoever does not see it.
func (p BadgesPage) Alt() Said { return Say("Badge of %s", p.Name) }

// badgeKindWords say what a kind of badge shows.
var badgeKindWords = map[string]string{
	"status":   "Status",
	"uptime":   "Uptime",
	"latency":  "Latency",
	"slo":      "Objective",
	"protocol": "Protocol version, or chain",
	"tools":    "Number of tools",
	"height":   "Block height",
}

// KindWords says what a kind of badge shows.
func (BadgesPage) KindWords(kind string) Said {
	if words, known := badgeKindWords[kind]; known {
		return Say(words)
	}
	return Say("%s", kind)
}

// badgeWindowWords are the windows of time in words.
var badgeWindowWords = map[string]string{
	"1h": "last hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "365 days",
}

// WindowWords puts a window of time into words.
func (BadgesPage) WindowWords(window string) Said {
	if words, known := badgeWindowWords[window]; known {
		return Say(words)
	}
	return Say("%s", window)
}

// badgeQuantileWords say how many of the checks were no slower. They are formats: a per cent sign stands twice.
var badgeQuantileWords = map[string]string{
	"p50": "half of all checks (median)", "p90": "90 %% of all checks", "p95": "95 %% of all checks", "p99": "99 %% of all checks",
}

// QuantileWords says how many of the checks were no slower than a quantile.
func (BadgesPage) QuantileWords(quantile string) Said {
	if words, known := badgeQuantileWords[quantile]; known {
		return Say(words)
	}
	return Say("%s", quantile)
}

// badgeThemeWords say what page a badge is made for.
var badgeThemeWords = map[string]string{"light": "light pages", "dark": "dark pages", "auto": "what the reader prefers"}

// ThemeWords says what page a theme is made for.
func (BadgesPage) ThemeWords(theme string) Said {
	if words, known := badgeThemeWords[theme]; known {
		return Say(words)
	}
	return Say("%s", theme)
}
