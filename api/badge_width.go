package api

import (
	"math"
	"unicode"
	"unicode/utf8"
)

// widths are how wide characters of a font are, in thousandths of its size.
type widths struct {
	ascii [0x7f - 0x20]int  // from space to tilde
	latin [0x180 - 0xa0]int // from the no-break space to the end of Latin Extended-A
}

// measure returns how wide text is in this style, one pixel at least.
func (s style) measure(text string, bold bool) float64 {
	table := &regularWidths
	if bold {
		table = &boldWidths
	}
	sum := 0
	for _, r := range text {
		sum += table.of(r, bold)
	}
	spaces := s.spacing * float64(max(0, utf8.RuneCountInString(text)-1))
	return max(1, math.Ceil(float64(sum)*s.font/1000+spaces))
}

// of returns how wide a character is. Of characters that fonts differ about, or that few fonts have, it is a guess, on the wide
// side: textLength puts it right.
func (w *widths) of(r rune, bold bool) int {
	switch {
	case r >= 0x20 && r < 0x7f:
		return w.ascii[r-0x20]
	case r >= 0xa0 && r < 0x180:
		return w.latin[r-0xa0]
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf): // stand on, around or between others
		return 0
	case r >= 0x1f3fb && r <= 0x1f3ff: // colours the one before it
		return 0
	case r >= 0x1f1e6 && r <= 0x1f1ff: // two make a flag
		return emojiWidth / 2
	case unicode.Is(emojiBlocks, r):
		return emojiWidth
	case unicode.Is(wideBlocks, r):
		return wideWidth
	}
	switch sign, known := signWidths[r]; {
	case known && bold:
		return sign.bold
	case known:
		return sign.regular
	}
	return otherWidth
}

// measured reports whether the width of text is known, and not guessed.
func measured(text string) bool {
	for _, r := range text {
		_, sign := signWidths[r]
		latin := r >= 0x20 && r < 0x7f || r >= 0xa0 && r < 0x180
		if !latin && !sign {
			return false
		}
	}
	return true
}

// What characters without a measure of their own are taken to be: Greek and Cyrillic letters, and those of most other scripts,
// about as wide as an average capital; East Asian ones a full em, as UAX #11 has them; emoji wider than their line.
const (
	otherWidth = 700
	wideWidth  = 1000
	emojiWidth = 1250
)

// wideBlocks and emojiBlocks are whole blocks, not single characters: for those in between, wide is the better guess.
var (
	wideBlocks = &unicode.RangeTable{
		R16: []unicode.Range16{
			{0x1100, 0x115f, 1}, {0x2e80, 0xa4cf, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1},
			{0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
		},
		R32: []unicode.Range32{{0x16fe0, 0x18cff, 1}, {0x1b000, 0x1b2ff, 1}, {0x20000, 0x3fffd, 1}},
	}
	emojiBlocks = &unicode.RangeTable{
		R16: []unicode.Range16{{0x2600, 0x26ff, 1}, {0x2705, 0x2705, 1}, {0x274c, 0x274c, 1}, {0x2b50, 0x2b55, 1}},
		R32: []unicode.Range32{{0x1f000, 0x1faff, 1}},
	}
)

// signWidths are those of signs that stand in labels.
var signWidths = map[rune]struct{ regular, bold int }{
	'–': {500, 500},
	'—': {1000, 1000},
	'‘': {318, 380},
	'’': {318, 380},
	'“': {518, 657},
	'”': {518, 657},
	'•': {590, 639},
	'…': {1000, 1000},
	'€': {636, 696},
	'™': {1000, 1000},
	'←': {838, 838},
	'→': {838, 838},
	'≤': {838, 838},
	'≥': {838, 838},
	'∞': {833, 833},
	'✓': {838, 838},
}

// Measured of DejaVu Sans. Verdana, which most machines have instead, shares its proportions.
var (
	regularWidths = widths{
		ascii: [...]int{
			318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
			636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
			748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
			615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
			337, 636, 838,
		},
		latin: [...]int{
			318, 401, 636, 636, 636, 636, 337, 500, 500, 1000, 471, 612, 838, 0, 1000, 500, 500, 838, 401, 401, 500, 636, 636,
			318, 500, 401, 471, 612, 969, 969, 969, 531, 684, 684, 684, 684, 684, 684, 974, 698, 632, 632, 632, 632, 295, 295,
			295, 295, 775, 748, 787, 787, 787, 787, 787, 838, 787, 732, 732, 732, 732, 611, 605, 630, 613, 613, 613, 613, 613,
			613, 982, 550, 615, 615, 615, 615, 278, 278, 278, 278, 612, 634, 612, 612, 612, 612, 612, 838, 612, 634, 634, 634,
			634, 592, 635, 592, 684, 613, 684, 613, 684, 613, 698, 550, 698, 550, 698, 550, 698, 550, 770, 635, 775, 635, 632,
			615, 632, 615, 632, 615, 632, 615, 632, 615, 775, 635, 775, 635, 775, 635, 775, 635, 752, 634, 916, 695, 295, 278,
			295, 278, 295, 278, 295, 278, 295, 278, 590, 556, 295, 278, 656, 579, 579, 557, 278, 557, 278, 557, 375, 557, 342,
			562, 284, 748, 634, 748, 634, 748, 634, 813, 748, 634, 787, 612, 787, 612, 787, 612, 1070, 1023, 695, 411, 695,
			411, 695, 411, 635, 521, 635, 521, 635, 521, 635, 521, 611, 392, 611, 392, 611, 392, 732, 634, 732, 634, 732, 634,
			732, 634, 732, 634, 732, 634, 989, 818, 611, 592, 611, 685, 525, 685, 525, 685, 525, 352,
		},
	}
	boldWidths = widths{
		ascii: [...]int{
			348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696, 696, 696, 696, 696,
			696, 696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995,
			837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716,
			678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712,
			365, 712, 838,
		},
		latin: [...]int{
			348, 456, 696, 696, 636, 696, 365, 500, 500, 1000, 564, 646, 838, 0, 1000, 500, 500, 838, 438, 438, 500, 736, 636,
			380, 500, 438, 564, 646, 1035, 1035, 1035, 580, 774, 774, 774, 774, 774, 774, 1085, 734, 683, 683, 683, 683, 372,
			372, 372, 372, 838, 837, 850, 850, 850, 850, 850, 838, 850, 812, 812, 812, 812, 724, 738, 719, 675, 675, 675, 675,
			675, 675, 1048, 593, 678, 678, 678, 678, 343, 343, 343, 343, 687, 712, 687, 687, 687, 687, 687, 838, 687, 712, 712,
			712, 712, 652, 716, 652, 774, 675, 774, 675, 774, 675, 734, 593, 734, 593, 734, 593, 734, 593, 830, 716, 838, 716,
			683, 678, 683, 678, 683, 678, 683, 678, 683, 678, 821, 716, 821, 716, 821, 716, 821, 716, 837, 712, 974, 790, 372,
			343, 372, 343, 372, 343, 372, 343, 372, 343, 744, 686, 372, 343, 775, 665, 665, 637, 343, 637, 343, 637, 479, 637,
			557, 642, 371, 837, 712, 837, 712, 837, 712, 983, 837, 712, 850, 687, 850, 687, 850, 687, 1167, 1094, 770, 493,
			770, 493, 770, 493, 720, 595, 720, 595, 720, 595, 720, 595, 682, 478, 682, 478, 682, 478, 812, 712, 812, 712, 812,
			712, 812, 712, 812, 712, 812, 712, 1103, 924, 724, 652, 724, 725, 582, 725, 582, 725, 582, 435,
		},
	}
)
