package api

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

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

var styles = []style{
	{name: "flat", height: 20, font: 11, padding: 6, baseline: 14, radius: 3, shine: true},
	{name: "flat-square", height: 20, font: 11, padding: 6, baseline: 14},
	{name: "for-the-badge", height: 28, font: 10, padding: 11, spacing: 1.25, baseline: 18, capitals: true, bold: true},
}

// badgeStyle returns the style asked for; the first when there is no such style.
func badgeStyle(c echo.Context) style {
	for _, s := range styles {
		if s.name == c.QueryParam("style") {
			return s
		}
	}
	return styles[0]
}

// draw returns b as an SVG picture. textLength makes every font, also one that is wider than ours, fill exactly the
// room that was measured for it.
func (b badge) draw(s style) []byte {
	label, message := b.label, b.message
	if s.capitals {
		label, message = strings.ToUpper(label), strings.ToUpper(message)
	}
	labelText, messageText := s.measure(label, false), s.measure(message, s.bold)
	labelBox, messageBox := labelText+2*s.padding, messageText+2*s.padding
	width := labelBox + messageBox
	title := escape(b.label + ": " + b.message)

	var w bytes.Buffer
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%d" role="img" aria-label="%s">`, px(width), s.height, title)
	fmt.Fprintf(&w, `<title>%s</title>`, title)
	if s.shine {
		w.WriteString(`<linearGradient id="s" x2="0" y2="100%"><stop offset="0" stop-opacity="0"/><stop offset="1" stop-opacity=".15"/></linearGradient>`)
	}
	fmt.Fprintf(&w, `<clipPath id="r"><rect width="%s" height="%d" rx="%d"/></clipPath>`, px(width), s.height, s.radius)
	fmt.Fprintf(&w, `<g clip-path="url(#r)"><rect width="%s" height="%d" fill="%s"/><rect x="%s" width="%s" height="%d" fill="%s"/>`,
		px(labelBox), s.height, badgeLabel, px(labelBox), px(messageBox), s.height, b.color)
	if s.shine {
		fmt.Fprintf(&w, `<rect width="%s" height="%d" fill="url(#s)"/>`, px(width), s.height)
	}
	fmt.Fprintf(&w, `</g><g fill="%s" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="%s" text-rendering="geometricPrecision">`,
		badgeText, px(s.font))
	s.text(&w, label, s.padding, labelText, false)
	s.text(&w, message, labelBox+s.padding, messageText, s.bold)
	w.WriteString("</g></svg>\n")
	return w.Bytes()
}

// text draws one of the two texts at x, width wide.
func (s style) text(w *bytes.Buffer, text string, x, width float64, bold bool) {
	weight := ""
	if bold {
		weight = ` font-weight="bold"`
	}
	if s.shine {
		fmt.Fprintf(w, `<text aria-hidden="true" x="%s" y="%s" fill="#010101" fill-opacity=".3" textLength="%s"%s>%s</text>`,
			px(x), px(s.baseline+1), px(width), weight, escape(text))
	}
	fmt.Fprintf(w, `<text x="%s" y="%s" textLength="%s"%s>%s</text>`, px(x), px(s.baseline), px(width), weight, escape(text))
}

// measure returns how wide text is in this style.
func (s style) measure(text string, bold bool) float64 {
	table := &regularWidths
	if bold {
		table = &boldWidths
	}
	sum := 0
	for _, r := range text {
		switch {
		case r >= ' ' && int(r-' ') < len(table):
			sum += table[r-' ']
		case r < 0x1100:
			sum += otherWidth
		default:
			sum += wideWidth
		}
	}
	spaces := s.spacing * float64(max(0, utf8.RuneCountInString(text)-1))
	return math.Ceil(float64(sum)*s.font/1000 + spaces)
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

// How wide the characters from space to tilde are in DejaVu Sans, in thousandths of the font size. Verdana, which most
// machines have instead, shares its proportions.
var (
	regularWidths = [...]int{
		318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636, 636,
		636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
		603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635,
		634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
	}
	boldWidths = [...]int{
		348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696, 696, 696, 696, 696, 696,
		696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995, 837, 850,
		733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716, 678, 435, 716,
		712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
	}
)

// What the others are taken to be: Latin, Greek and Cyrillic letters about as wide as an average capital, everything
// from Hangul on a full em.
const (
	otherWidth = 700
	wideWidth  = 1000
)
