package agent

import (
	"slices"
	"sync"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// orphanReport stores the last report of a companion about orphaned objects on the member.
type orphanReport struct {
	news func() // wakes the agent

	mu   sync.Mutex
	last *v1alpha1.OrphanSummary // nil: no companion has reported since the agent started
}

// maxOrphanNames is the maximum length of workNames in an OrphanSummary.
const maxOrphanNames = 10

func (r *orphanReport) put(summary v1alpha1.OrphanSummary) {
	summary.WorkNames = slices.Clone(summary.WorkNames[:min(len(summary.WorkNames), maxOrphanNames)])
	r.mu.Lock()
	r.last = &summary
	r.mu.Unlock()
	r.news()
}

func (r *orphanReport) get() *v1alpha1.OrphanSummary {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// reportedOrphans returns the orphans in the status after a report, given those before it. A member without orphaned
// objects has no summary, so that a fleet without orphans costs no write.
func reportedOrphans(before, report *v1alpha1.OrphanSummary) *v1alpha1.OrphanSummary {
	switch {
	case report == nil:
		return before
	case report.Objects == 0:
		return nil
	default:
		return report.DeepCopy()
	}
}
