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

// Properties that every agent collects. In addition, each ClusterProperty object of the member (API group about.k8s.io,
// of SIG-Multicluster) is a property.
const (
	// PropertyKubeSystemUID is the UID of the namespace kube-system.
	PropertyKubeSystemUID = "membership.muster.dev/kube-system-uid"
	// PropertyKubernetesVersion is the git version of the API server.
	PropertyKubernetesVersion = "membership.muster.dev/kubernetes-version"
	// PropertyNodeCount is the number of nodes, ready or not.
	PropertyNodeCount = "membership.muster.dev/node-count"
	// PropertyPlatform is the scheme of the nodes' spec.providerID, such as aws, azure, gce, openstack or vsphere. Like
	// the following properties, it is not reported if no node has it, and several values are joined by commas.
	PropertyPlatform = "membership.muster.dev/platform"
	// PropertyProduct is the Kubernetes distribution, if the version or the nodes identify it: ACK, AKS, EKS, GKE, IKS,
	// k0s, K3s, kind, MicroK8s, OpenShift or RKE2.
	PropertyProduct = "membership.muster.dev/product"
	// PropertyRegion is the value of the nodes' label topology.kubernetes.io/region.
	PropertyRegion = "membership.muster.dev/region"
	// PropertyZone is the value of the nodes' label topology.kubernetes.io/zone.
	PropertyZone = "membership.muster.dev/zone"
)

// The limits of the agent's reports. Those of a Membership are not lower.
const (
	maxProperties    = 128
	maxPropertyValue = 1024 // characters, as the others
	maxVersion       = 128
	maxResources     = 128
	maxMessage       = 1024 // less than the limit, and readable
)

// problems are the problems with the properties.
type problems struct {
	failed  []string // collectors
	invalid []string // invalid names of properties
	cut     []string // properties whose value is too long
	dropped int      // number of properties beyond the limit

	resources int // number of resources beyond the limit
}

// bounded returns the properties for a Membership: sorted by name, the first of each name, within the limits of the
// API.
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

// condition returns the condition for the problems. It contains only names, not the messages of errors: messages may
// differ each time, and each change of the status is a write.
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
	say("Omitted, because the name is not a qualified name: %s.", p.invalid)
	say("Value cut to 1024 characters: %s.", p.cut)
	if p.dropped > 0 {
		says = append(says, fmt.Sprintf("The limit of a Membership is 128 properties; the last %d in order of their names "+
			"are omitted.", p.dropped))
	}
	if p.resources > 0 {
		says = append(says, fmt.Sprintf("An agent reports at most 128 resources; the last %d in order of their names "+
			"are omitted.", p.resources))
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

// enumerate joins the sorted names, up to a limit.
func enumerate(names []string) string {
	const shown = 10
	names = slices.Sorted(slices.Values(names))
	text := strings.Join(names[:min(shown, len(names))], ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// cut returns the first limit characters of a text.
func cut(text string, limit int) string {
	runes := []rune(text)
	return string(runes[:min(limit, len(runes))])
}
