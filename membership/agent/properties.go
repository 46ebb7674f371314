package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Properties that every agent collects. Besides, each ClusterProperty object of the member (API group
// about.k8s.io, of SIG-Multicluster) is a property.
const (
	// PropertyKubeSystemUID is the UID of the namespace kube-system.
	PropertyKubeSystemUID = "membership.muster.dev/kube-system-uid"
	// PropertyKubernetesVersion is the git version of the API server.
	PropertyKubernetesVersion = "membership.muster.dev/kubernetes-version"
	// PropertyNodeCount is the number of nodes, ready or not.
	PropertyNodeCount = "membership.muster.dev/node-count"
)

// What a Membership holds: see the limits of its type.
const (
	maxProperties    = 128
	maxPropertyValue = 1024 // characters, as the others
	maxVersion       = 128
	maxMessage       = 1024 // less than it takes, and enough to read
)

// problems is what was not right with the properties.
type problems struct {
	failed  []string // collectors
	invalid []string // names that no property can have
	cut     []string // properties with too long a value
	dropped int      // properties beyond the limit
}

// bounded returns the properties as a Membership takes them: sorted by name, the first of each name, no more and no
// longer than it holds.
func bounded(all []v1alpha1.Property, p *problems) []v1alpha1.Property {
	seen := map[string]bool{}
	var kept []v1alpha1.Property
	for _, property := range all {
		switch {
		case seen[property.Name]:
			continue
		case len(validation.IsQualifiedName(property.Name)) > 0 || len(property.Name) > 253:
			p.invalid = append(p.invalid, fmt.Sprintf("%.60q", property.Name))
			continue
		}
		seen[property.Name] = true
		property.Value = strings.ToValidUTF8(property.Value, "\uFFFD")
		if whole := property.Value; utf8.RuneCountInString(whole) > maxPropertyValue {
			property.Value = cut(whole, maxPropertyValue)
			p.cut = append(p.cut, property.Name)
		}
		kept = append(kept, property)
	}
	slices.SortFunc(kept, func(a, b v1alpha1.Property) int { return cmp.Compare(a.Name, b.Name) })
	if p.dropped = max(0, len(kept)-maxProperties); p.dropped > 0 {
		kept = kept[:maxProperties]
	}
	return kept
}

// condition says what was not right. It has names only, not the words of errors, which may differ each time: a
// status is written when it changed.
func (p problems) condition() metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionPropertiesCollected, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTruncated,
	}
	var says []string
	say := func(format string, names []string) {
		if len(names) > 0 {
			says = append(says, fmt.Sprintf(format, enumerate(names)))
		}
	}
	say("Collectors that failed or took too long, see the agent's log: %s.", p.failed)
	say("Not a qualified name, so left out: %s.", p.invalid)
	say("Value cut to 1024 characters: %s.", p.cut)
	if p.dropped > 0 {
		says = append(says, fmt.Sprintf("A Membership holds 128 properties; the last %d in order of their names are left out.", p.dropped))
	}
	switch {
	case len(p.failed) > 0:
		c.Reason = v1alpha1.ReasonCollectorFailed
	case len(says) == 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonCollected
		says = []string{"All properties were collected."}
	}
	c.Message = strings.Join(says, " ")
	return c
}

// enumerate lists names, in order and not too many of them.
func enumerate(names []string) string {
	const shown = 10
	names = slices.Sorted(slices.Values(names))
	text := strings.Join(names[:min(shown, len(names))], ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// cut returns the first characters of a text.
func cut(text string, limit int) string {
	runes := []rune(text)
	return string(runes[:min(limit, len(runes))])
}
