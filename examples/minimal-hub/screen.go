package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// view is the content of the screen of a live fleet, in order of importance.
type view struct {
	export  string   // the command that sets KUBECONFIG
	table   []string // the members; the first line is the header
	summary []string // what is placed and installed
	hints   []string // commands to try
	events  []string // oldest first
}

// lines returns at most height lines of at most width columns. The table comes first, then the summary and the newest
// events. The hints are omitted if there is no room for five events in addition.
func (v view) lines(width, height int, colors bool) []string {
	out := []string{v.export, ""}
	out = append(out, v.table...)
	if len(v.summary) > 0 {
		out = append(append(out, ""), v.summary...)
	}
	const pane = 2 // a blank line, and the heading of the events
	if room := height - len(out) - pane - len(v.hints) - 1; len(v.hints) > 0 && room >= min(5, len(v.events)) {
		out = append(append(out, ""), v.hints...)
	}
	if room := height - len(out) - pane; room > 0 && len(v.events) > 0 {
		out = append(out, "", "EVENTS")
		out = append(out, v.events[max(0, len(v.events)-room):]...)
	}
	out = out[:min(len(out), max(height, 0))]
	for i, line := range out {
		line = cut(line, width)
		if colors {
			line = colored(line)
		}
		out[i] = line
	}
	return out
}

// cut returns the first columns of a line.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width, 0)])
}

var states = regexp.MustCompile(`\b(True|Normal)\b|\b(False|Warning)\b|\b(Unknown)\b|^(NAME|EVENTS)\b.*`)

// colored returns a line in which states have colors.
func colored(line string) string {
	return states.ReplaceAllStringFunc(line, func(state string) string {
		color := "1" // bold
		switch state {
		case "True", "Normal":
			color = "32" // green
		case "False", "Warning":
			color = "31" // red
		case "Unknown":
			color = "33" // yellow
		}
		return "\x1b[" + color + "m" + state + "\x1b[0m"
	})
}

// frame returns the output that replaces the screen of a terminal by these lines. It moves the cursor and erases to the
// end of each line, so that nothing scrolls and nothing flickers.
func frame(lines []string) string {
	var out strings.Builder
	out.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString(line + "\x1b[K")
	}
	out.WriteString("\x1b[J")
	return out.String()
}
