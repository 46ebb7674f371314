package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReplacePolicy says in which order a cluster that can no longer be chosen and the one that replaces it go and come.
//
// +kubebuilder:validation:Enum=BeforeEvict;EvictFirst
type ReplacePolicy string

const (
	// BeforeEvict keeps a healthy cluster until another is ready in its place. It is the default.
	BeforeEvict ReplacePolicy = "BeforeEvict"
	// EvictFirst lets go at once, so that there is never more than was asked for.
	EvictFirst ReplacePolicy = "EvictFirst"
)

// RecoveryPolicy defines what happens when a cluster that was replaced recovers.
//
// +kubebuilder:validation:Enum=Stay;Return
type RecoveryPolicy string

const (
	// Stay keeps the replacement. It is the default.
	Stay RecoveryPolicy = "Stay"
	// Return moves the placement back to the cluster.
	Return RecoveryPolicy = "Return"
)

// FailoverPolicy lets a placement leave clusters whose health is bad or unknown, and says how it leaves clusters that
// it can no longer be on: those with a NoExecute taint that it does not tolerate, or no longer. Changes of its own
// policy take effect at once and are not bounded by it.
type FailoverPolicy struct {
	// replace says whether a cluster is left before its replacement is ready. BeforeEvict: the placement stays on the
	// cluster until another one is ready in its place, so the workloads on a member that returns are deleted only
	// then. A cluster stays if there is no replacement. With type PickAll no cluster has a replacement, so none is
	// awaited. EvictFirst: the cluster is left at once. Unset: BeforeEvict.
	// +kubebuilder:default=BeforeEvict
	// +optional
	Replace ReplacePolicy `json:"replace,omitempty"`

	// maxEvictions is the maximum number of clusters that are left in each period, from 1 to 10000. Clusters that are no
	// longer in the fleet do not count. Unset: 1.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="maxEvictions must be from 1 to 10000; leave it out for 1"
	// +optional
	MaxEvictions *int32 `json:"maxEvictions,omitempty"`

	// periodSeconds is the length of the period of maxEvictions, from 1 to 86400. Unset: 60.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 86400",message="periodSeconds must be from 1 to 86400 (a day); leave it out for 60"
	// +optional
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`

	// recovery defines what happens when a cluster that was replaced recovers.
	// +kubebuilder:default=Stay
	// +optional
	Recovery RecoveryPolicy `json:"recovery,omitempty"`
}

// EvictionCount is the number of clusters that were left at about the same time.
type EvictionCount struct {
	// time is the end of the second in which the clusters were left, or a later time if evictions were counted together.
	// +required
	Time metav1.Time `json:"time"`
	// count is the number of clusters.
	// +required
	Count int32 `json:"count"`
}

// MaxEvictionCounts is how many times of evictions are remembered. Of more, those that are closest to each other are
// counted together.
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
