package web_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// Contrast of WCAG 2.2: text needs 4.5 to 1 (1.4.3), and what tells controls and shapes apart 3 to 1 (1.4.11).
const (
	forText   = 4.5
	forShapes = 3.0
)

func TestColoursCanBeReadInLightAndInDark(t *testing.T) {
	colours := schemes(t)
	grounds := []string{"paper", "surface", "sunken"}
	washes := []string{"wash-up", "wash-degraded", "wash-down", "wash-gated", "wash-unknown"}
	type pair struct {
		text, ground string
		least        float64
	}
	var pairs []pair
	for _, ground := range grounds {
		for _, text := range []string{"ink", "soft", "accent", "up", "degraded", "down", "gated", "unknown"} {
			pairs = append(pairs, pair{text, ground, forText})
		}
		pairs = append(pairs, pair{"edge", ground, forShapes})
	}
	for _, ground := range washes {
		pairs = append(pairs, pair{"ink", ground, forText}, pair{"soft", ground, forText}, pair{"accent", ground, forText}, pair{"down", ground, forText},
			pair{ground[len("wash-"):], ground, forText}, pair{"edge", ground, forShapes})
	}
	pairs = append(pairs, pair{"on-accent", "accent", forText}, pair{"surface", "down", forText}, pair{"paper", "ink", forText})
	for _, p := range pairs {
		text, ground := colours[p.text], colours[p.ground]
		if text == nil || ground == nil {
			t.Errorf("there is no token --%s or --%s", p.text, p.ground)
			continue
		}
		for i, scheme := range []string{"light", "dark"} {
			if got := contrastOf(text[i], ground[i]); got < p.least {
				t.Errorf("--%s on --%s in %s: %.2f to 1, want %.1f at least", p.text, p.ground, scheme, got, p.least)
			}
		}
	}
}

func TestContrastIsThatOfTheStandard(t *testing.T) {
	black, white, grey := colour{}, colour{255, 255, 255}, colour{0x77, 0x77, 0x77}
	for want, got := range map[string]float64{"21.00": contrastOf(black, white), "1.00": contrastOf(grey, grey), "4.48": contrastOf(grey, white)} {
		if words := fmt.Sprintf("%.2f", got); words != want {
			t.Errorf("got %s, want %s", words, want)
		}
	}
}

// Whatever a rule says, it says it with the tokens: a colour of its own would be seen in one scheme only.
func TestNoRuleHasAColourOfItsOwn(t *testing.T) {
	rules := regexp.MustCompile(`--[a-z0-9-]+:[^;]*;`).ReplaceAllString(styleSheet(t), "")
	for _, found := range regexp.MustCompile(`[^\n]*#[0-9a-fA-F]{3,8}\b[^{;]*;`).FindAllString(rules, -1) {
		t.Errorf("a colour outside of the tokens: %s", found)
	}
}

// colour is red, green and blue.
type colour [3]float64

// schemes returns the colours of the style sheet, each for light and for dark.
func schemes(t *testing.T) map[string][]colour {
	t.Helper()
	found := map[string][]colour{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)`).FindAllStringSubmatch(styleSheet(t), -1) {
		found[m[1]] = []colour{colourOf(t, m[2]), colourOf(t, m[3])}
	}
	return found
}

func styleSheet(t *testing.T) string {
	t.Helper()
	css, err := os.ReadFile("static/app.css")
	if err != nil {
		t.Fatal(err)
	}
	return string(css)
}

func colourOf(t *testing.T, hex string) (c colour) {
	t.Helper()
	for i := range c {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c[i] = float64(n)
	}
	return c
}

// contrastOf is that of https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio.
func contrastOf(a, b colour) float64 {
	l, m := luminanceOf(a), luminanceOf(b)
	return (max(l, m) + 0.05) / (min(l, m) + 0.05)
}

func luminanceOf(c colour) float64 {
	weights, sum := [3]float64{0.2126, 0.7152, 0.0722}, 0.0
	for i, v := range c {
		v /= 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weights[i] * v
	}
	return sum
}
