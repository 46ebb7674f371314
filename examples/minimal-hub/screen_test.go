package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func sampleView() view {
	v := view{
		export:  "export KUBECONFIG=/tmp/a-folder-with-a-long-name/kubeconfig",
		table:   []string{"NAME   READY", "east   True", "west   Unknown"},
		summary: []string{"Placement shop: 1 of 1 selected."},
		hints:   []string{"kubectl get memberclusters", "kubectl delete membercluster east"},
	}
	for i := range 50 {
		v.events = append(v.events, fmt.Sprintf("event %02d %s", i, strings.Repeat("é", 100)))
	}
	return v
}

// TestView_FitsEveryTerminal checks that no frame is larger than its terminal, so that none scrolls.
func TestView_FitsEveryTerminal(t *testing.T) {
	v := sampleView()
	for _, width := range []int{0, 1, 20, 79, 80, 81, 200} {
		for height := range 60 {
			lines := v.lines(width, height, false)
			require.LessOrEqual(t, len(lines), height)
			for _, line := range lines {
				require.LessOrEqual(t, utf8.RuneCountInString(line), width)
			}
			require.LessOrEqual(t, strings.Count(frame(lines), "\n"), max(height-1, 0))
		}
	}
}

// TestView_EightyByTwentyFour checks that a common terminal shows every part, with the newest events.
func TestView_EightyByTwentyFour(t *testing.T) {
	text := strings.Join(sampleView().lines(80, 24, false), "\n")
	for _, part := range []string{
		"export KUBECONFIG=", "west   Unknown", "Placement shop", "kubectl get", "EVENTS", "event 49",
	} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "event 00")

	// A small terminal has no room for hints, but for the members and for events.
	text = strings.Join(sampleView().lines(40, 12, false), "\n")
	require.NotContains(t, text, "kubectl get")
	require.Contains(t, text, "event 49")
}

func TestView_Colors(t *testing.T) {
	lines := sampleView().lines(80, 24, true)
	require.Contains(t, lines, "east   \x1b[32mTrue\x1b[0m")
	require.Contains(t, lines, "west   \x1b[33mUnknown\x1b[0m")
	require.NotContains(t, strings.Join(sampleView().lines(80, 24, false), "\n"), "\x1b")
}
