package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"strings"
)

// tone is the colour of a message on light and on dark pages.
type tone struct{ name, light, dark string }

// The tones of badges. White text stands on the light ones, and darkInk on the dark ones, with a contrast of at least 4.5 : 1
// (WCAG 2.2 §1.4.3).
var (
	toneGreen = tone{"green", "#1a7f37", "#3fb950"}
	toneOlive = tone{"olive", "#6b6f00", "#b5b32c"}
	toneAmber = tone{"amber", "#9a6700", "#d9a038"}
	toneRed   = tone{"red", "#c62828", "#ff7b72"}
	toneBlue  = tone{"blue", "#1f6feb", "#6cb0ff"}
	toneGrey  = tone{"grey", "#5f6368", "#9aa4af"}

	tones = []tone{toneGreen, toneOlive, toneAmber, toneRed, toneBlue, toneGrey}
)

// The other colours: of the box of the label, and of the text on it and on the message.
const (
	lightLabel = "#444c56"
	lightInk   = "#ffffff"
	darkLabel  = "#2d333b"
	darkText   = "#e6edf3" // of the label
	darkInk    = "#0d1117" // of the message
)

// theme is what sort of page a badge stands on.
type theme struct {
	name   string
	dark   bool
	follow bool // light, and dark where the reader prefers that
}

// themes are all of them, the usual one first.
var themes = []theme{{name: "light"}, {name: "dark", dark: true}, {name: "auto", follow: true}}

// darkStyle turns a light badge into a dark one. It is the same for all of them, so that the policy of the answer can name it by
// its hash.
var darkStyle = func() string {
	var b strings.Builder
	b.WriteString("@media (prefers-color-scheme:dark){.label{fill:" + darkLabel + "}.left{fill:" + darkText + "}.right{fill:" + darkInk + "}.shadow{display:none}")
	for _, t := range tones {
		b.WriteString("." + t.name + "{fill:" + t.dark + "}")
	}
	return b.String() + "}"
}()

// badgePolicy lets a badge that is opened by itself be what it is and nothing else: no script, nothing loaded, no style but ours.
var badgePolicy = func() string {
	sum := sha256.Sum256([]byte(darkStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
}()

// style is how a badge is drawn. Lengths are in pixels.
type style struct {
	name     string
	height   int
	font     float64
	padding  float64 // on both sides of each text
	spacing  float64 // between letters
	baseline float64
	radius   int
	shine    bool // a faint gradient, which only darkens so that text stays readable, and a shadow under the text
	capitals bool
	bold     bool // the message
}

// styles are all of them, the usual one first.
var styles = []style{
	{name: "flat", height: 20, font: 11, padding: 6, baseline: 14, radius: 3, shine: true},
	{name: "flat-square", height: 20, font: 11, padding: 6, baseline: 14},
	{name: "for-the-badge", height: 28, font: 10, padding: 11, spacing: 1.25, baseline: 18, capitals: true, bold: true},
}

// drawing is a badge being drawn.
type drawing struct {
	bytes.Buffer
	style style
	theme theme
}

// draw returns b as an SVG picture. textLength makes every font, also one that is wider than ours, fill exactly the room that was
// measured for it.
func (b badge) draw(s style, t theme) []byte {
	label, message := b.label, b.message
	if s.capitals {
		label, message = strings.ToUpper(label), strings.ToUpper(message)
	}
	labelText, messageText := s.measure(label, false), s.measure(message, s.bold)
	labelBox, messageBox := labelText+2*s.padding, messageText+2*s.padding
	width, title := labelBox+messageBox, escape(b.label+": "+b.message)

	w := drawing{style: s, theme: t}
	w.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%d" role="img" aria-label="%s">`, px(width), s.height, title)
	w.printf(`<title>%s</title>`, title)
	if t.follow {
		w.printf(`<style>%s</style>`, darkStyle)
	}
	if s.shine {
		w.printf(`<linearGradient id="s" x2="0" y2="100%%"><stop offset="0" stop-opacity="0"/><stop offset="1" stop-opacity=".15"/></linearGradient>`)
	}
	if s.radius > 0 {
		w.printf(`<clipPath id="r"><rect width="%s" height="%d" rx="%d"/></clipPath><g clip-path="url(#r)">`, px(width), s.height, s.radius)
	} else {
		w.printf(`<g>`)
	}
	w.printf(`<rect width="%s" height="%d"%s/>`, px(labelBox), s.height, w.fill("label", lightLabel, darkLabel))
	w.printf(`<rect x="%s" width="%s" height="%d"%s/>`, px(labelBox), px(messageBox), s.height, w.fill(b.tone.name, b.tone.light, b.tone.dark))
	if s.shine {
		w.printf(`<rect width="%s" height="%d" fill="url(#s)"/>`, px(width), s.height)
	}
	w.printf(`</g><g font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="%s" text-rendering="geometricPrecision">`, px(s.font))
	w.text(label, s.padding, labelText, false, w.fill("left", lightInk, darkText))
	w.text(message, labelBox+s.padding, messageText, s.bold, w.fill("right", lightInk, darkInk))
	w.WriteString("</g></svg>\n")
	return w.Bytes()
}

func (w *drawing) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// fill returns the attributes that fill a shape in one colour or the other.
func (w *drawing) fill(class, light, dark string) string {
	switch {
	case w.theme.dark:
		return ` fill="` + dark + `"`
	case w.theme.follow:
		return ` class="` + class + `" fill="` + light + `"`
	}
	return ` fill="` + light + `"`
}

// text draws one of the two texts at x, width wide.
func (w *drawing) text(text string, x, width float64, bold bool, fill string) {
	s, attributes := w.style, ""
	if bold {
		attributes = ` font-weight="bold"`
	}
	if !measured(text) { // letters that join must not be pulled apart: they are made wider or narrower in place of that
		attributes += ` lengthAdjust="spacingAndGlyphs"`
	}
	if s.shine && !w.theme.dark {
		class := ""
		if w.theme.follow {
			class = ` class="shadow"`
		}
		w.printf(`<text aria-hidden="true"%s x="%s" y="%s" fill="#010101" fill-opacity=".3" textLength="%s"%s>%s</text>`,
			class, px(x), px(s.baseline+1), px(width), attributes, escape(text))
	}
	w.printf(`<text x="%s" y="%s"%s textLength="%s"%s>%s</text>`, px(x), px(s.baseline), fill, px(width), attributes, escape(text))
}

// px writes a length with as few digits as it needs.
func px(v float64) string { return trimZeros(fmt.Sprintf("%.2f", v)) }

// escape makes text safe inside an element and inside a quoted attribute.
func escape(text string) string {
	var b strings.Builder
	// A strings.Builder never fails.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
