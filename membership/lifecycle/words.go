package lifecycle

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
)

// How long, in bytes, words may be that are not this package's own: the API refuses longer ones with all that is
// written beside them, and a leave that cannot be recorded never ends.
const (
	sentenceLimit = 1024 // of an Event's note and of RenewalAnswer.Refused, far below that of a condition's message
	entryLimit    = 256  // of what is left of something
	nameLimit     = 253  // of what a leave waits for
)

// localAddress is the caller's side of a broken connection. Its port is another one each time, which tells nobody anything and
// would make every failure one to write down anew.
var localAddress = regexp.MustCompile(`\S+:\d+->`)

// Sentence is somebody else's text, such as an error, as it goes into a condition, an Event or an answer: valid, short enough,
// and the same for the same failure.
func Sentence(text string) string {
	return bounded.Text(localAddress.ReplaceAllString(text, ""), sentenceLimit)
}

// sentences makes the messages of conditions short enough.
func sentences(conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].Message = Sentence(conditions[i].Message)
	}
}

// short is what the gates said, in words that are short enough.
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

// CheckGateName returns what keeps a name from being that of a gate of the hub; nil: nothing does.
func CheckGateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("must have a name")
	case name == waitingForAgent || name == waitingForNamespace:
		return fmt.Errorf("cannot be called %q: that is what a leave waits for when all gates are open", name)
	case len(name) > nameLimit || !utf8.ValidString(name):
		return fmt.Errorf("must have a name of at most %d bytes of UTF-8: it has %d", nameLimit, len(name))
	default:
		return nil
	}
}
