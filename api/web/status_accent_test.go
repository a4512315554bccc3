package web_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/rollcallhq/rollcall/api/web"
)

// luminance is worked out once more here, from the definition.
func luminance(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(text[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
		v := float64(n>>(8*i)&0xff) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	high, low := luminance(t, a), luminance(t, b)
	return (max(high, low) + 0.05) / (min(high, low) + 0.05)
}

func TestAnAccentCanBeReadOnEveryGround(t *testing.T) {
	css, err := os.ReadFile("static/app.css")
	if err != nil {
		t.Fatal(err)
	}
	grounds := regexp.MustCompile(`--(paper|surface|sunken|wash-[a-z]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(string(css), -1)
	if len(grounds) < 3 {
		t.Fatalf("app.css names %d grounds", len(grounds))
	}
	for _, chosen := range []string{"#000000", "#ffffff", "#ffff00", "#00ff00", "#0000ff", "#ff0000", "#808080", "#17604f", "#7fd1b9", "#010203"} {
		a, err := web.AccentsOf(chosen)
		if err != nil {
			t.Fatal(err)
		}
		for _, ground := range grounds {
			if got := contrast(t, a.Light, ground[2]); got < 4.5 {
				t.Errorf("%s becomes %s: %.2f to 1 on the light %s, want 4.5", chosen, a.Light, got, ground[1])
			}
			if got := contrast(t, a.Dark, ground[3]); got < 4.5 {
				t.Errorf("%s becomes %s: %.2f to 1 on the dark %s, want 4.5", chosen, a.Dark, got, ground[1])
			}
		}
		if got := min(contrast(t, a.Light, a.OnLight), contrast(t, a.Dark, a.OnDark)); got < 4.5 {
			t.Errorf("%s: what is written on it has a contrast of %.2f, want 4.5", chosen, got)
		}
	}
}

func TestAnAccentThatCanBeReadStaysAsItIs(t *testing.T) {
	for chosen, want := range map[string]web.Accents{
		"#17604f": {Light: "#17604f", OnLight: "#ffffff", Dark: "#74a096", OnDark: "#0d1012"},
		"#7fd1b9": {Light: "#477567", OnLight: "#ffffff", Dark: "#7fd1b9", OnDark: "#0d1012"},
	} {
		if got, err := web.AccentsOf(chosen); got != want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", chosen, got, err, want)
		}
	}
	for _, bad := range []string{"", "red", "#12345", "#1234567", "#12345g", "#12345;"} {
		if got, err := web.AccentsOf(bad); err == nil {
			t.Errorf("%q becomes %+v", bad, got)
		}
	}
}
