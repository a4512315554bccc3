package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// progress shows how far a long command is: on a terminal a bar that is drawn over and over, elsewhere a line now and then.
// It is for one goroutine.
type progress struct {
	w        io.Writer
	terminal bool

	label       string
	unit        string
	done, total int64
	skipped     int64 // of done, what was there before
	begin       time.Time
	shown       time.Time
}

// How often progress is shown.
const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second
	barWidth  = 24
)

func newProgress(std stdio) *progress {
	f, isFile := std.err.(*os.File)
	dumb, _ := std.env("TERM")
	return &progress{w: std.err, terminal: isFile && dumb != "dumb" && term.IsTerminal(int(f.Fd()))}
}

// start begins to show something of total units, of which done are there already.
func (p *progress) start(label, unit string, done, total int64) {
	p.label, p.unit, p.done, p.skipped, p.total = label, unit, done, done, total
	p.begin = time.Now()
	p.shown = p.begin
	if p.terminal {
		p.draw()
	}
}

// add counts n units more.
func (p *progress) add(n int64) { p.set(p.done + n) }

// set says how many units are done.
func (p *progress) set(done int64) {
	p.done = done
	every := lineEvery
	if p.terminal {
		every = barEvery
	}
	if time.Since(p.shown) < every {
		return
	}
	p.shown = time.Now()
	if p.terminal {
		p.draw()
		return
	}
	fmt.Fprintln(p.w, p.words())
}

// end leaves the last state of what took some time, and nothing of what did not.
func (p *progress) end() {
	if p.terminal {
		p.draw()
		fmt.Fprintln(p.w)
		return
	}
	if time.Since(p.begin) >= lineEvery {
		fmt.Fprintln(p.w, p.words())
	}
}

func (p *progress) draw() {
	filled := barWidth * p.percent() / 100
	fmt.Fprintf(p.w, "\r\x1b[K[%s%s] %s", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), p.words())
}

func (p *progress) percent() int {
	if p.total <= 0 {
		return 100
	}
	return int(min(100, 100*p.done/p.total))
}

// words are like "checks: 120000 of 1000000 rows, 12%, 48000 rows/s, 18s left".
func (p *progress) words() string {
	text := fmt.Sprintf("%s: %d of %d %s, %d%%", p.label, p.done, p.total, p.unit, p.percent())
	spent := time.Since(p.begin)
	if spent < time.Second || p.done == p.skipped {
		return text
	}
	rate := float64(p.done-p.skipped) / spent.Seconds()
	text += fmt.Sprintf(", %.0f %s/s", rate, p.unit)
	if p.done < p.total {
		left := time.Duration(float64(p.total-p.done) / rate * float64(time.Second))
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}
