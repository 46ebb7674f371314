package lifecycle

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
)

// Limits, in bytes, of external text. The API server rejects a request with longer text as a whole, and a leave that
// cannot be recorded never ends.
const (
	messageLimit = 1024 // of an Event's note and of RenewalAnswer.Refused, far below that of a condition's message
	entryLimit   = 256  // of an entry of LeaveStatus.Remaining
	nameLimit    = 253  // of LeaveStatus.Waiting
)

// localAddress is the local address in an error of a broken connection. Its port differs each time and is irrelevant
// to users. Without its removal every failure would be a changed status that must be written.
var localAddress = regexp.MustCompile(`\S+:\d+->`)

// FormatMessage formats external text, such as an error, for a condition, an Event or an answer: the result is valid,
// short enough, and the same for the same failure.
func FormatMessage(text string) string {
	return bounded.Text(localAddress.ReplaceAllString(text, ""), messageLimit)
}

// limitMessages limits the messages of conditions.
func limitMessages(conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].Message = FormatMessage(conditions[i].Message)
	}
}

// short returns the result of the gates with limited text.
func (g *GatesSeen) short() *GatesSeen {
	if g == nil {
		return nil
	}
	out := *g
	out.Waiting, out.Remaining = bounded.Text(g.Waiting, nameLimit), nil
	for _, entry := range g.Remaining {
		out.Remaining = append(out.Remaining, bounded.Text(localAddress.ReplaceAllString(entry, ""), entryLimit))
	}
	return &out
}

// CheckGateName returns an error if the name is not valid for a gate of the hub.
func CheckGateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("must have a name")
	case name == waitingForAgent || name == waitingForNamespace:
		return fmt.Errorf("must not have the name %q, which a leave uses for its last steps after all gates are open", name)
	case len(name) > nameLimit || !utf8.ValidString(name):
		return fmt.Errorf("must have a name of at most %d bytes of UTF-8, got %d", nameLimit, len(name))
	default:
		return nil
	}
}
