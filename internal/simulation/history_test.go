package simulation

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// An entry is one fact of a history.
type entry struct {
	at   time.Duration // since the start of the simulation
	text string
}

// history records the events of one simulation. It may be used concurrently.
type history struct {
	began time.Time

	mu         sync.Mutex
	entries    []entry
	writes     map[string]int // since the last call of takeWrites, by process and request
	violations []string
}

func (h *history) now() time.Duration { return time.Since(h.began) }

func (h *history) note(format string, args ...any) {
	at := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, entry{at, fmt.Sprintf(format, args...)})
}

// violated records that an oracle does not hold.
func (h *history) violated(format string, args ...any) {
	h.note("VIOLATION "+format, args...)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.violations = append(h.violations, fmt.Sprintf("%s: %s", h.now(), fmt.Sprintf(format, args...)))
}

func (h *history) problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.violations)
}

// countWrite counts a write request for the oracle of quiet.
func (h *history) countWrite(process, request string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes[process+" "+request]++
}

// takeWrites returns the writes since the last call.
func (h *history) takeWrites() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	writes := h.writes
	h.writes = map[string]int{}
	return writes
}

// hash identifies the history. Entries of one instant are in alphabetical order.
func (h *history) hash() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(h.text())))[:16]
}

func (h *history) text() string {
	h.mu.Lock()
	entries := slices.Clone(h.entries)
	h.mu.Unlock()
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = fmt.Sprintf("%14s %s", e.at, e.text)
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		if a[:14] != b[:14] {
			return 0
		}
		return strings.Compare(a, b)
	})
	return strings.Join(lines, "\n")
}
