package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReplacePolicy defines whether a cluster that must be left is removed before or after its replacement is ready.
//
// +kubebuilder:validation:Enum=BeforeEvict;EvictFirst
type ReplacePolicy string

const (
	// BeforeEvict keeps a healthy cluster until its replacement is ready. It is the default.
	BeforeEvict ReplacePolicy = "BeforeEvict"
	// EvictFirst removes a cluster immediately, so that a placement never has more clusters than desired.
	EvictFirst ReplacePolicy = "EvictFirst"
)

// RecoveryPolicy defines what happens when a cluster that was replaced recovers.
//
// +kubebuilder:validation:Enum=Stay;Return
type RecoveryPolicy string

const (
	// Stay keeps the replacement. It is the default.
	Stay RecoveryPolicy = "Stay"
	// Return moves the placement back to the recovered cluster.
	Return RecoveryPolicy = "Return"
)

// FailoverPolicy allows a placement to leave clusters that are unhealthy or whose health is unknown. It also defines
// how the placement leaves clusters that it may no longer use: those with a NoExecute taint that it does not tolerate,
// or that it tolerates no longer. Changes of the policy of the placement take effect immediately, and are not limited
// by the FailoverPolicy.
type FailoverPolicy struct {
	// replace defines whether a cluster is left before its replacement is ready. BeforeEvict: the placement stays on the
	// cluster until the replacement is ready, so the workloads on a member that recovers are not deleted before that. A
	// cluster without a replacement stays. With type PickAll a cluster never has a replacement, so it is left without one.
	// EvictFirst: the cluster is left immediately. Unset: BeforeEvict.
	// +kubebuilder:default=BeforeEvict
	// +optional
	Replace ReplacePolicy `json:"replace,omitempty"`

	// maxEvictions is the maximum number of clusters that are left in each period, from 1 to 10000. Clusters that are no
	// longer in the fleet do not count. Unset: 1.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="maxEvictions must be from 1 to 10000; leave it out for 1"
	// +optional
	MaxEvictions *int32 `json:"maxEvictions,omitempty"`

	// periodSeconds is the length in seconds of the period that maxEvictions applies to, from 1 to 86400. Unset: 60.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 86400",message="periodSeconds must be from 1 to 86400 (a day); leave it out for 60"
	// +optional
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`

	// recovery defines what happens when a cluster that was replaced recovers. Stay keeps the replacement, and Return
	// moves the placement back. Unset: Stay.
	// +kubebuilder:default=Stay
	// +optional
	Recovery RecoveryPolicy `json:"recovery,omitempty"`
}

// EvictionCount is the number of clusters that were left at about the same time.
type EvictionCount struct {
	// time is the end of the second in which the clusters were left, or a later time if several evictions are merged into
	// one entry.
	// +required
	Time metav1.Time `json:"time"`
	// count is the number of clusters.
	// +required
	Count int32 `json:"count"`
}

// MaxEvictionCounts is the maximum number of entries in status.recentEvictions. If there are more, the entries that are
// closest to each other in time are merged.
const MaxEvictionCounts = 64

// Validate returns all errors of the policy, in the order of its fields. It checks the rules of the
// CustomResourceDefinition. The path may be nil.
func (p *FailoverPolicy) Validate(path *field.Path) field.ErrorList {
	errs := oneOf(cmp.Or(p.Replace, BeforeEvict), path.Child("replace"), BeforeEvict, EvictFirst)
	if n := p.MaxEvictions; n != nil && (*n < 1 || *n > 10000) {
		errs = append(errs,
			field.Invalid(path.Child("maxEvictions"), *n, "maxEvictions must be from 1 to 10000; leave it out for 1"))
	}
	if n := p.PeriodSeconds; n != nil && (*n < 1 || *n > 86400) {
		errs = append(errs,
			field.Invalid(path.Child("periodSeconds"), *n, "periodSeconds must be from 1 to 86400 (a day); leave it out for 60"))
	}
	return append(errs, oneOf(cmp.Or(p.Recovery, Stay), path.Child("recovery"), Stay, Return)...)
}
