package store_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/store"
)

// webp returns the beginning of a WebP image with one chunk.
func webp(chunk string, body ...byte) []byte {
	body = append(body, make([]byte, 16)...)
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"), chunk...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(body))), body...)
}

func TestALogoIsKnownByItsOwnBytes(t *testing.T) {
	picture := image.NewPaletted(image.Rect(0, 0, 16, 8), color.Palette{color.Black, color.White})
	wide := image.NewPaletted(image.Rect(0, 0, 5000, 1), picture.Palette)
	encoded := func(encode func(*bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	pngOf := func(i image.Image) []byte { return encoded(func(b *bytes.Buffer) error { return png.Encode(b, i) }) }
	for name, test := range map[string]struct {
		logo      []byte
		want, bad string
	}{
		"PNG":           {pngOf(picture), "image/png", ""},
		"JPEG":          {encoded(func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) }), "image/jpeg", ""},
		"GIF":           {encoded(func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) }), "image/gif", ""},
		"lossy WebP":    {webp("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 8, 0), "image/webp", ""},
		"lossless WebP": {webp("VP8L", 0x2f, 15, 0xc0, 1, 0), "image/webp", ""},
		"extended WebP": {webp("VP8X", 0, 0, 0, 0, 15, 0, 0, 7, 0, 0), "image/webp", ""},
		"empty WebP":    {webp("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 0, 0, 0, 0), "", "must be at most 4096 pixels"},
		"other RIFF":    {webp("JUNK"), "", "must be a PNG"},
		"none":          {nil, "", "must be a PNG"},
		"SVG":           {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), "", "must be a PNG"},
		"HTML":          {[]byte(`<!doctype html><script>alert(1)</script>`), "", "must be a PNG"},
		"too wide":      {pngOf(wide), "", "must be at most 4096 pixels"},
		"too large":     {append(pngOf(picture), make([]byte, store.MaxLogo)...), "", "is larger than 100 KiB"},
	} {
		got, err := store.LogoType(test.logo)
		if got != test.want || (err == nil) != (test.bad == "") || err != nil && !strings.Contains(err.Error(), test.bad) {
			t.Errorf("%s: got %q, %v, want %q, %q", name, got, err, test.want, test.bad)
		}
	}
}

func TestADomainIsANameOfSeveralLabels(t *testing.T) {
	for domain, good := range map[string]bool{
		"status.example.com": true, "xn--sttus-gra.example": true, "a.b": false, "a.bc": true, "": true,
		"example": false, "localhost": false, "127.0.0.1": false, "[::1]": false, "status.example.com.": false,
		"status_.example.com": false, "status.example.com:443": false, "https://status.example.com": false, "-a.example": false,
		"a..example": false, "status.example.com/x": false, "*.example.com": false, strings.Repeat("a.", 130) + "example": false,
		strings.Repeat("a", 64) + ".example": false, "süd.example": false,
	} {
		err := store.StatusPage{Slug: "a", Name: "A", Domain: domain}.Validate()
		if (err == nil) != good {
			t.Errorf("%q: %v, want it to be good: %v", domain, err, good)
		}
	}
}

func FuzzLogoType(f *testing.F) {
	f.Add(webp("VP8X", 0, 0, 0, 0, 15, 0, 0, 7, 0, 0))
	f.Add([]byte("GIF89a\x10\x00\x08\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if kind, err := store.LogoType(data); err == nil && !strings.HasPrefix(kind, "image/") {
			t.Errorf("a logo of type %q", kind)
		}
	})
}
