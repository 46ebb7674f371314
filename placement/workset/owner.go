package workset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// owner is a WorkSet as the owner of Works.
type owner struct {
	uid     types.UID
	created metav1.Time
}

func ownerOf(set *v1alpha1.WorkSet) owner { return owner{set.UID, set.CreationTimestamp} }

// claims reports whether a Work, the first one of a cluster, was written for this WorkSet and not for an earlier one
// with its name. A WorkSet that is restored from a backup claims the Works of selected clusters when it writes them.
// Works of earlier releases contain no UID, and are claimed if they are not older than the WorkSet.
func (o owner) claims(r *record) bool {
	if uid, named := r.Annotations[v1alpha1.WorkSetUIDAnnotation]; named {
		return uid == string(o.uid)
	}
	return !r.CreationTimestamp.Before(&o.created)
}

// claimsAny reports whether one of the Works of a cluster is claimed. Only the first one contains the UID.
func (o owner) claimsAny(h existing) bool {
	named := false
	for _, r := range h.records {
		if _, is := r.Annotations[v1alpha1.WorkSetUIDAnnotation]; is {
			named = true
			if o.claims(r) {
				return true
			}
		}
	}
	for _, r := range h.records {
		if !named && o.claims(r) {
			return true
		}
	}
	return len(h.records) == 0
}
