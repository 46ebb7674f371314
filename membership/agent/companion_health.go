package agent

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Limits of the entries of status.agents, see the type Membership.
const (
	maxCompanions    = 15 // beside the agent itself
	maxCompanionName = 63
)

// companionHealth records the companions that fail. A companion fails from its first error until it has run for
// companionStable, so that repeated failures change the status only if the message changes.
type companionHealth struct {
	news func() // wakes the agent

	mu       sync.Mutex
	failures map[string]string // messages by companion
}

// failed records an error of a companion.
func (h *companionHealth) failed(name string, err error) {
	h.set(name, cut("The companion failed and is called again: "+err.Error(), maxMessage))
}

// recovered records that a companion has run for companionStable, or has returned nil.
func (h *companionHealth) recovered(name string) { h.set(name, "") }

func (h *companionHealth) set(name, failure string) {
	h.mu.Lock()
	changed := h.failures[name] != failure
	if h.failures == nil {
		h.failures = map[string]string{}
	}
	h.failures[name] = failure
	h.mu.Unlock()
	if changed && h.news != nil {
		h.news()
	}
}

func (h *companionHealth) failing(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failures[name] != ""
}

// companionReport is the health of the companion with a name.
type companionReport struct {
	name    string
	healthy metav1.Condition
}

// report returns the health of each companion. A companion that has not failed is healthy, also before it is called:
// otherwise each join would cost the hub another write.
func (h *companionHealth) report(all []*companion) []companionReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	var reports []companionReport
	for _, each := range all[:min(len(all), maxCompanions)] {
		healthy := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonCompanionReady, Message: "The companion has not failed."}
		if failure := h.failures[each.Name()]; failure != "" {
			healthy.Status, healthy.Reason = metav1.ConditionFalse, v1alpha1.ReasonCompanionFailed
			healthy.Message = failure
		}
		reports = append(reports, companionReport{cut(each.Name(), maxCompanionName), healthy})
	}
	return reports
}

// reportCompanions sets the entries of the companions, and removes entries of companions that do not exist any more.
// Entries of other agents stay unchanged.
// Entries of other agents stay unchanged.
func reportCompanions(status *v1alpha1.MembershipStatus, reports []companionReport, set setCondition) {
	status.Agents = slices.DeleteFunc(status.Agents, func(a v1alpha1.AgentStatus) bool {
		healthy := meta.FindStatusCondition(a.Conditions, v1alpha1.ConditionHealthy)
		return healthy != nil &&
			(healthy.Reason == v1alpha1.ReasonCompanionReady || healthy.Reason == v1alpha1.ReasonCompanionFailed) &&
			!slices.ContainsFunc(reports, func(r companionReport) bool { return r.name == a.Type })
	})
	for _, r := range reports {
		if r.name != v1alpha1.MembershipAgent {
			set(&agentStatus(status, r.name).Conditions, r.healthy)
		}
	}
}
