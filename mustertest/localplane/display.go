package localplane

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// A display shows the progress of a slow operation. On a terminal it rewrites one line; on another output it prints a
// line at intervals.
type display struct {
	out     io.Writer
	inPlace bool
	verb    string
	began   time.Time

	mu     sync.Mutex // guards detail, and writing to out
	detail string

	stop    chan struct{}
	stopped sync.WaitGroup
}

// startDisplay prints the announcement, and then repeats verb with the elapsed time until end is called.
func startDisplay(out io.Writer, announcement, verb string) *display {
	d := &display{out: out, verb: verb, began: time.Now(), stop: make(chan struct{})}
	interval := 10 * time.Second
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		d.inPlace, interval = true, 200*time.Millisecond
	}
	_, _ = fmt.Fprintf(out, "muster: %s\n", announcement)
	d.stopped.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				d.draw()
			case <-d.stop:
				return
			}
		}
	})
	return d
}

// update replaces the text that is shown next to the elapsed time.
func (d *display) update(detail string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.detail = detail
}

// end stops the display and shows whether the operation succeeded.
func (d *display) end(err error) {
	close(d.stop)
	d.stopped.Wait()
	if err != nil {
		d.update("failed")
	} else {
		d.update("done")
	}
	d.draw()
	if d.inPlace {
		_, _ = fmt.Fprintln(d.out)
	}
}

func (d *display) draw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := fmt.Sprintf("muster: %s, %s", d.verb, time.Since(d.began).Truncate(time.Second))
	if d.detail != "" {
		line += ", " + d.detail
	}
	if d.inPlace {
		_, _ = fmt.Fprintf(d.out, "\r%s\x1b[K", line) // Move to the start of the line, and clear the rest of the old one.
	} else {
		_, _ = fmt.Fprintln(d.out, line)
	}
}

// openTerminal returns the user's terminal, even if stderr is redirected: "go test ./..." buffers the output of a test
// until the test ends, so the user would see nothing for minutes. Without a terminal it returns stderr.
func openTerminal() (out io.Writer, done func()) {
	nothing := func() {}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		return os.Stderr, nothing
	}
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return os.Stderr, nothing
	}
	return tty, func() { _ = tty.Close() }
}
