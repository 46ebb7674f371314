package agent

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// policyReport stores the last report of a companion about the objects that the member accepts.
type policyReport struct {
	news func() // wakes the agent

	mu       sync.Mutex
	reported bool // a companion has reported since the agent started
	last     *v1alpha1.MemberPolicySummary
}

// maxPolicyEntries is the maximum length of the lists in a MemberPolicySummary.
const maxPolicyEntries = 128

func (r *policyReport) put(summary *v1alpha1.MemberPolicySummary) {
	if summary = summary.DeepCopy(); summary != nil {
		for _, list := range []*[]string{&summary.Kinds, &summary.Namespaces} {
			if len(*list) > maxPolicyEntries {
				*list, summary.Truncated = (*list)[:maxPolicyEntries], true
			}
		}
	}
	r.mu.Lock()
	same := r.reported && equality.Semantic.DeepEqual(r.last, summary)
	r.reported, r.last = true, summary
	r.mu.Unlock()
	if !same {
		r.news()
	}
}

// get returns a function for memberReport.policy; nil: no companion has reported.
func (r *policyReport) get() func(before *v1alpha1.MemberPolicySummary) *v1alpha1.MemberPolicySummary {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.reported {
		return nil
	}
	last := r.last
	return func(*v1alpha1.MemberPolicySummary) *v1alpha1.MemberPolicySummary { return last.DeepCopy() }
}
