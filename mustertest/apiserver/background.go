package apiserver

import (
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// reconcileSigningRequest signs an approved CertificateSigningRequest.
func (s *Server) reconcileSigningRequest(key store.Key) {
	item := s.store.Get(key)
	if item == nil {
		return
	}
	var csr certificatesv1.CertificateSigningRequest
	if err := kinds.FromObject(item.Object, &csr); err != nil {
		return
	}
	signed := s.signed(&csr)
	if signed == nil {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(signed)
	if err != nil {
		return
	}
	s.edit(key, func(obj kinds.Object) bool {
		obj["status"] = content["status"]
		return true
	})
}

// aggregateRoles sets the rules of ClusterRoles that have an aggregationRule.
func (s *Server) aggregateRoles() {
	s.controllers.aggregation = false
	items, _ := s.store.List(clusterRoles, "")
	for _, item := range items {
		if item.Object["aggregationRule"] == nil {
			continue // most of them, without the conversion
		}
		var role rbacv1.ClusterRole
		if err := kinds.FromObject(item.Object, &role); err != nil || role.AggregationRule == nil {
			continue
		}
		var rules []rbacv1.PolicyRule
		for i := range role.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
			if err != nil {
				continue
			}
			for _, other := range items {
				if other == item || !selector.Matches(labels.Set(labelsOf(other.Object))) {
					continue
				}
				for _, rule := range rulesOf(other) {
					if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
						return equality.Semantic.DeepEqual(r, rule)
					}) {
						rules = append(rules, rule)
					}
				}
			}
		}
		if equality.Semantic.DeepEqual(rules, role.Rules) {
			continue
		}
		role.Rules = rules
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&role)
		if err != nil {
			continue
		}
		s.edit(item.Key, func(obj kinds.Object) bool {
			obj["rules"] = content["rules"]
			return true
		})
	}
}

func (s *Server) quotasOf(namespace string) []store.Key {
	items, _ := s.store.List(resourceQuotas, namespace)
	var out []store.Key
	for _, item := range items {
		out = append(out, item.Key)
	}
	return out
}

// reconcileQuota writes the usage of a ResourceQuota to its status.
func (s *Server) reconcileQuota(key store.Key) {
	item := s.store.Get(key)
	if item == nil {
		return
	}
	var quota corev1.ResourceQuota
	if err := kinds.FromObject(item.Object, &quota); err != nil {
		return
	}
	status := corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{}}
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
		counted, ok := quotaResource(name)
		if !ok {
			continue
		}
		objects, _ := s.store.List(counted, key.Namespace)
		status.Used[name] = *resource.NewQuantity(int64(len(objects)), resource.DecimalSI)
	}
	quota.Status = status
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&quota)
	if err != nil {
		return
	}
	s.edit(key, func(obj kinds.Object) bool {
		obj["status"] = content["status"]
		return true
	})
}

// quotaResource returns the resource that a quota counts under a name.
func quotaResource(name corev1.ResourceName) (schema.GroupResource, bool) {
	if counted, ok := strings.CutPrefix(string(name), "count/"); ok {
		return schema.ParseGroupResource(counted), true
	}
	switch name {
	case corev1.ResourcePods, corev1.ResourceServices, corev1.ResourceSecrets, corev1.ResourceConfigMaps,
		corev1.ResourceQuotas,
		corev1.ResourceReplicationControllers, corev1.ResourcePersistentVolumeClaims:
		return coreResource(string(name)), true
	}
	return schema.GroupResource{}, false
}
