package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/muster-sdk/muster/membership/admin"
)

const (
	// quietFor is how long a step may take before it is shown while it is in progress.
	quietFor = 2 * time.Second
	redraw   = 120 * time.Millisecond
)

var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// progress shows steps. On a terminal it rewrites one line. On another output it prints one line for each completed
// step, and one for a step that waits for longer than quietFor.
type progress struct {
	w        io.Writer
	terminal bool

	mu    sync.Mutex
	step  admin.Step // in progress, unless Done
	since time.Time  // when the step began
	shown admin.Step // the last step that was shown
	frame int

	stop, stopped chan struct{}
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, stop: make(chan struct{}), stopped: make(chan struct{}), step: admin.Step{Done: true}}
	if file, is := w.(*os.File); is {
		p.terminal = term.IsTerminal(int(file.Fd()))
	}
	go p.run()
	return p
}

// notify records a step, and prints the step when it is complete. Package admin calls notify for each step.
func (p *progress) notify(step admin.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if step.Doing != p.step.Doing || p.step.Done {
		p.since = time.Now()
	}
	p.step = step
	if step.Done {
		p.clear()
		line := capitalized(step.Doing)
		if step.Detail != "" {
			line += ": " + step.Detail
		}
		fmt.Fprintln(p.w, line)
	}
}

// end stops the display. If a step is in progress, end removes it, because the error describes it.
func (p *progress) end() {
	close(p.stop)
	<-p.stopped
	p.clear()
}

func (p *progress) run() {
	defer close(p.stopped)
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticker.C:
			p.show(now)
		}
	}
}

func (p *progress) show(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step.Done || now.Sub(p.since) < quietFor {
		return
	}
	line := capitalized(p.step.Doing)
	if p.step.Detail != "" {
		line += ": " + p.step.Detail
	}
	if p.terminal {
		p.frame++
		fmt.Fprintf(p.w, "\r\x1b[K%c %s (%s)", frames[p.frame%len(frames)], fit(line, p.width()-12),
			now.Sub(p.since).Round(time.Second))
		return
	}
	if p.step != p.shown {
		p.shown = p.step
		fmt.Fprintf(p.w, "%s ...\n", line)
	}
}

func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *progress) width() int {
	if file, is := p.w.(*os.File); is {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return width
		}
	}
	return 80
}

// fit truncates a line to a width, so that the line can be rewritten. It does not truncate below 20 columns.
func fit(line string, width int) string {
	runes := []rune(line)
	if width < 20 || len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}
