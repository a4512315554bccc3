package web

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Accents are the colours of links and buttons that follow from one that somebody chose: each can be read on every ground that
// pages have, by the contrast of at least 4.5 to 1 that WCAG 2.2 §1.4.3 asks for.
type Accents struct {
	Light, OnLight string // "#17604f", and what is written on it
	Dark, OnDark   string
}

// The grounds that are hardest to read on: the darkest of the light ones and the lightest of the dark ones in app.css.
var (
	lightGround = colour{0xf0, 0xf0, 0xec}
	darkGround  = colour{0x2a, 0x30, 0x34}
	white       = colour{0xff, 0xff, 0xff}
	black       = colour{0x0d, 0x10, 0x12}
)

// readable is a little more than is asked for, because colours are rounded.
const readable = 4.55

// AccentsOf derives them from a colour like "#17604f": it is kept where it can be, and made darker or lighter where not.
func AccentsOf(chosen string) (Accents, error) {
	c, err := parseColour(chosen)
	if err != nil {
		return Accents{}, err
	}
	light, dark := c.towards(colour{}, lightGround), c.towards(white, darkGround)
	return Accents{light.String(), white.String(), dark.String(), black.String()}, nil
}

// CSS is the style sheet that sets them.
func (a Accents) CSS() string {
	return fmt.Sprintf(":root { --accent: light-dark(%s, %s); --on-accent: light-dark(%s, %s); }\n", a.Light, a.Dark, a.OnLight, a.OnDark)
}

// colour is one of sRGB.
type colour struct{ r, g, b uint8 }

func parseColour(text string) (colour, error) {
	if len(text) == 7 && text[0] == '#' {
		if n, err := strconv.ParseUint(text[1:], 16, 32); err == nil {
			return colour{uint8(n >> 16), uint8(n >> 8 & 0xff), uint8(n & 0xff)}, nil
		}
	}
	return colour{}, errors.New("a colour is written like #17604f")
}

func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c.r, c.g, c.b) }

// towards returns c, mixed with as much of an end as it takes to be readable on a ground.
func (c colour) towards(end, ground colour) colour {
	const steps = 256
	for i := range steps {
		if mixed := c.mixed(end, float64(i)/steps); contrast(mixed, ground) >= readable {
			return mixed
		}
	}
	return end
}

func (c colour) mixed(other colour, share float64) colour {
	part := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-share) + float64(b)*share)) }
	return colour{part(c.r, other.r), part(c.g, other.g), part(c.b, other.b)}
}

// contrast is the ratio of WCAG 2.2 between two colours.
func contrast(a, b colour) float64 {
	high, low := a.luminance(), b.luminance()
	if high < low {
		high, low = low, high
	}
	return (high + 0.05) / (low + 0.05)
}

// luminance is the relative luminance of WCAG 2.2.
func (c colour) luminance() float64 {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.r) + 0.7152*linear(c.g) + 0.0722*linear(c.b)
}
